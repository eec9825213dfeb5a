from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from federation import down
from fedplan.errors import InputError
from machine import check_machine
from processes import find_processes

TOOL = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shaped_machine():
    """Skips, and says why, where devices cannot be limited."""
    try:
        check_machine()
    except InputError as error:
        pytest.skip(f"NOT TESTED: namespaces and quotas. {error}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder whose prototype is gone afterwards, whatever the test has done."""
    path = tmp_path_factory.mktemp("prototype")
    yield path
    with contextlib.suppress(InputError):
        down(path)


@pytest.fixture(scope="module")
def tool():
    """Run the tool as a user would: a process of its own."""

    def run(*words):
        command = [sys.executable, TOOL, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True)

    return run


@pytest.fixture
def run_code():
    """Run a few lines that import the tool's modules, in a process of their own; its errors."""

    def run(code):
        command = [sys.executable, "-c", code]
        return subprocess.run(command, cwd=TOOL, capture_output=True, text=True).stderr

    return run


@pytest.fixture
def start_up():
    """Start `up` and let it work; it is killed in the end, if it has not been before."""
    started = []

    def run(*words):
        process = subprocess.Popen(
            [sys.executable, TOOL, "up", *map(str, words)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def left_of():
    """Find what is still there of a prototype: processes, namespaces, links, cgroups."""
    return _left_of


def _left_of(state):
    words, links = _said("ip", "netns"), _said("ip", "link")
    groups = [
        folder
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu")
        if Path(root).is_dir()
        for folder in Path(root).iterdir()
    ]
    return [
        *find_processes(state.id),
        *(word for word in words if state.id in word),
        *(word for word in links if word.startswith("device")),
        *(group for group in groups if state.id in group.name),
    ]


def _said(program, *words):
    if shutil.which(program) is None:  # then there cannot be any
        return []
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return done.stdout.split()
