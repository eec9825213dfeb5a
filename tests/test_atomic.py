"""Files that are whole or not there, and what killed processes leave beside them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from fedplan.atomic import draft_of

WRITES = """
import os, signal, sys
from fedplan.atomic import draft_of
with draft_of(sys.argv[1]) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_goes_with_the_next_file(tmp_path):
    target = tmp_path / "runs.csv"
    target.write_text("old")
    killed = subprocess.run([sys.executable, "-c", WRITES, target], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 2
    assert target.read_text() == "old"
    foreign = tmp_path / ".fedplan-00000000-1-0123456789abcdef.tmp"  # of another machine
    foreign.touch()
    with draft_of(target) as draft:
        draft.write_text("new")
    assert sorted(tmp_path.iterdir()) == [foreign, target] and target.read_text() == "new"


def test_what_another_process_is_writing_stays(tmp_path):
    with draft_of(tmp_path / "a.csv") as mine:
        mine.write_text("mine")
        others = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{os.getppid()}-"))
        others.touch()
        with draft_of(tmp_path / "b.csv") as draft:
            draft.write_text("b")
        assert mine.exists() and others.exists()


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "runs.csv"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError), draft_of(target) as draft:
        draft.write_text("half \ud800", encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target] and target.read_text() == "old"
