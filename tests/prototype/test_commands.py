from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prototype.conftest import left_of

from fedplan.prototype.state import read_state


def test_without_the_tools_up_says_what_is_missing_and_what_works(fedplan, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = fedplan("prototype", "up", "--folder", tmp_path / "lab")
    assert result.code == 2
    for words in ("the command ip", "the command tc", "iproute2", "With --plain"):
        assert words in result.err
    assert not (tmp_path / "lab").exists()


def test_without_root_up_says_so():
    code = """
import os
from fedplan.prototype.machine import check_machine
if os.geteuid() == 0:
    os.setuid(65534)
check_machine()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "root (try sudo)" in done.stderr and "With --plain" in done.stderr


@pytest.mark.parametrize("name", ["", "../x", "Lab", "-x", "a" * 40, "a.b"])
def test_names_that_would_not_do_as_names_are_refused(fedplan, name):
    for command in ("up", "status", "down", "certs"):
        result = fedplan("prototype", command, "--name", name)
        assert result.code == 2
        assert "--name must be" in result.err


def test_where_nothing_is_up_status_and_down_say_so(fedplan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is no prototype in lab" in fedplan("prototype", "status", "--name", "lab").out
    assert "nothing to remove" in fedplan("prototype", "down", "--name", "lab").out
    assert fedplan("prototype", "status", "--format", "json").json["up"] is False
    assert fedplan("prototype", "down", "--format", "json").json["removed"] is None
    assert list(tmp_path.iterdir()) == []


def test_certs_makes_a_set_once(fedplan, tmp_path):
    words = ("prototype", "certs", "--devices", 2, "--folder", tmp_path, "--address", "link.lan")
    made = fedplan(*words, "--format", "json").json["made"]
    assert len(made) == 3 + 2 * 2
    assert "All was there" in fedplan(*words).out
    other = fedplan(*words, "--address", "other.lan")
    assert other.code == 2 and "must be for other.lan" in other.err


@pytest.mark.slow
def test_plain_needs_no_root_and_no_tools_but_flowers(folder, command_line):
    done = command_line("prototype", "up", "--plain", "--devices", 2, "--folder", folder)
    assert done.returncode == 0, done.stderr
    state = read_state(folder)
    flwr = Path(sys.executable).with_name("flwr")
    assert f"env FLWR_HOME={folder}/flwr {flwr} run APP prototype" in done.stdout
    assert state.host == "127.0.0.1"
    shown = command_line("prototype", "status", "--folder", folder).stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [
        ["superlink", "yes"],
        ["pi3-1", "yes"],
        ["pi4-1", "yes"],
    ]
    os.kill(int(shown.splitlines()[2].split()[2]), 9)
    shown = command_line("prototype", "status", "--folder", folder).stdout
    assert shown.splitlines()[2].split()[:2] == ["pi3-1", "no"]
    removed = command_line("prototype", "down", "--folder", folder)
    assert removed.returncode == 0 and "0 namespaces" in removed.stdout
    assert left_of(state) == []
