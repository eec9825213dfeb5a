from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedplan.errors import InputError
from fedplan.prototype import down
from fedplan.prototype.machine import check_machine
from fedplan.prototype.processes import find_processes

FEDPLAN = [sys.executable, "-m", "fedplan.cli"]


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
def command_line():
    """Run the command line as a user would: a process of its own."""

    def run(*words):
        return subprocess.run([*FEDPLAN, *map(str, words)], capture_output=True, text=True)

    return run


@pytest.fixture
def start_up():
    """Start `up` and let it work; it is killed in the end, if it has not been before."""
    started = []

    def run(*words):
        process = subprocess.Popen(
            [*FEDPLAN, "prototype", "up", *map(str, words)],
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


def left_of(state):
    """What is still there of a prototype: processes, namespaces, links, cgroups."""
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
