"""Kills of each command that writes: nothing is lost, doubled or different, nothing left over.

At moments drawn from the command's name: `pytest -m slow tests/studies/test_kills.py`.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from children import start
from stored_runs import check_integrity

pytestmark = pytest.mark.slow
KILLS = 10
PREPARED = ("run", "demo", "seeds=2", "--format", "json")
COMMANDS = {
    "run": (*PREPARED, "--report", "run.html"),
    "sweep": (
        "sweep", "demo", "clients-per-round=5,20", "local-steps=30,60", "seeds=2", "rounds=60",
        "target-loss=0.6", "--format", "json", "--plot", "sweep.png",
    ),
    "compare": (
        "compare", "demo", "--course", "online", "--course", "K=5,E=20", "--course", "fedtune",
        "--seeds", "2", "--format", "json",
    ),
    "report": ("report", "demo", "-o", "report.html"),
    "export": ("export", "demo", "-o", "runs.csv"),
    "reproduce": (
        "reproduce", "setup3", "--quick", "--table-only", "rounds=60", "--format", "json",
    ),
}  # fmt: skip
ALONE = ("report", "export")  # what they write follows from the store alone, byte for byte


def begin(words, folder):
    return start(
        [sys.executable, "-m", "fedplan.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        seconds=900,
    )


def finish(words, folder):
    return answer_of(begin(words, folder), words)


def answer_of(process, words):
    """What it has printed in the end, where that is to be read by programs."""
    out, _ = process.communicate()
    assert process.returncode in (0, 1)
    answer = json.loads(out) if "json" in words else {}
    for setup in answer.get("setups", []):
        setup.pop("took_s")  # by the clock
    return answer


def files(folder):
    """Every file of a folder, and the content of those that a command has written."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rows(folder):
    """The runs that are stored, and the moment when each was."""
    if not (folder / "fedplan.db").exists():
        return {}
    query = "SELECT experiment, setting, seed, num_rounds, created FROM runs"
    with closing(sqlite3.connect(folder / "fedplan.db")) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return {}
        found = connection.execute(query).fetchall()
    known = {row[:3]: row[3:] for row in found}
    assert len(known) == len(found), "a run is stored once"
    return known


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A store with a study, for what only reads."""
    folder = tmp_path_factory.mktemp("prepared")
    finish(PREPARED, folder)
    return folder / "fedplan.db"


@pytest.mark.parametrize("name", COMMANDS)
def test_ten_kills_change_nothing(tmp_path, request, name):
    words, moments = COMMANDS[name], random.Random(name)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        if name in ALONE:
            shutil.copy(request.getfixturevalue("prepared"), folder)
    began = time.monotonic()
    answer = finish(words, whole)
    took_s = time.monotonic() - began
    made = files(whole)
    kept, cut_short = rows(killed), 0
    for _ in range(KILLS):
        process = begin(words, killed)
        time.sleep(moments.uniform(0.2, 1.0) * took_s)
        process.kill()
        process.communicate()
        cut_short += process.returncode == -9
        if (killed / "fedplan.db").exists():
            check_integrity(killed / "fedplan.db")
        now = rows(killed)
        for run, (num_rounds, created) in kept.items():
            assert now[run] == (num_rounds, created) or now[run][0] > num_rounds
        kept = now
        for path, content in files(killed).items():  # a target is whole, or not there
            target = Path(path)
            if name in ALONE and path in made:
                assert content == made[path]
            elif target.suffix == ".html" and not target.name.startswith("."):
                assert content.rstrip().endswith(b"</html>")
    assert finish(words, killed) == answer
    assert files(killed).keys() == made.keys(), "nothing is left over"
    assert len(rows(killed)) == len(rows(whole))
    assert cut_short, "no kill came in time"
    check_integrity(killed / "fedplan.db")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ALONE])
def test_two_at_once_come_to_the_same_as_one(tmp_path, name):
    words = COMMANDS[name]
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    for folder in (whole, shared):
        folder.mkdir()
    answer = finish(words, whole)
    both = [begin(words, shared) for _ in range(2)]
    assert [answer_of(process, words) for process in both] == [answer, answer]
    assert files(shared).keys() == files(whole).keys(), "nothing is left over"
    assert len(rows(shared)) == len(rows(whole))
    check_integrity(shared / "fedplan.db")
