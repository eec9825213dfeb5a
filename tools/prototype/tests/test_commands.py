from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from state import read_state

TOOL = Path(__file__).parents[1]


def test_of_fedplan_it_uses_what_the_reference_documents():
    # The paper's Setup 1 is trained on the devices by fedplan's own course, and needs more of it.
    setup1 = {"light.py", "light_grid.py", "setup1.py", "setup1_picture.py"}
    paths = [path for path in TOOL.glob("*.py") if path.name not in setup1]
    sources = "\n".join(path.read_text() for path in paths)
    lines = re.findall(r"^ *(?:from|import) (fedplan.*)", sources, re.MULTILINE)
    assert {line.partition(" import ")[0] for line in lines} == {"fedplan.errors"}
    names = {name for line in lines for name in line.partition(" import ")[2].split(", ")}
    assert names == {"FedplanError", "InputError", "InputProblem"}


def test_it_runs_from_any_folder_and_help_has_its_examples(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = tool("up", "-h")
    assert shown.returncode == 0
    assert "Usage: python tools/prototype up [OPTIONS]" in shown.stdout
    assert "python tools/prototype up --plain --devices 3" in shown.stdout
    without = tool()
    assert without.returncode == 2 and "Commands:" in without.stderr


def test_errors_are_json_too_where_json_was_asked_for(tool):
    wrong = tool("up", "--profile", "pi-mixx", "--format", "json")
    assert wrong.returncode == 2 and "Error: pi-mixx: there is no such file" in wrong.stderr
    error = json.loads(wrong.stdout)["error"]
    assert error["type"] == "InputError"
    assert [problem["source"] for problem in error["problems"]] == ["pi-mixx"]
    misspelt = tool("status", "--fromat", "json")
    assert misspelt.returncode == 2
    assert "Usage: python tools/prototype status" in misspelt.stderr


def test_a_reader_that_has_seen_enough_is_no_error(tool):
    command = [sys.executable, str(TOOL), "status", "--name", "none"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_tools_up_says_what_is_missing_and_what_works(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = tool("up", "--folder", tmp_path / "lab")
    assert result.returncode == 2
    for words in ("the command ip", "the command tc", "iproute2", "With --plain"):
        assert words in result.stderr
    assert not (tmp_path / "lab").exists()


def test_without_root_up_says_so(run_code):
    said = run_code("""
import os
from machine import check_machine
if os.geteuid() == 0:
    os.setuid(65534)
check_machine()
""")
    assert "root (try sudo)" in said and "With --plain" in said


@pytest.mark.parametrize("name", ["", "../x", "Lab", "-x", "a" * 40, "a.b"])
def test_names_that_would_not_do_as_names_are_refused(tool, name):
    for command in ("up", "status", "down", "certs"):
        result = tool(command, "--name", name)
        assert result.returncode == 2
        assert "--name must be" in result.stderr


def test_where_nothing_is_up_status_and_down_say_so(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is no prototype in lab" in tool("status", "--name", "lab").stdout
    assert "nothing to remove" in tool("down", "--name", "lab").stdout
    assert json.loads(tool("status", "--format", "json").stdout)["up"] is False
    assert json.loads(tool("down", "--format", "json").stdout)["removed"] is None
    assert list(tmp_path.iterdir()) == []


def test_certs_makes_a_set_once(tool, tmp_path):
    words = ("certs", "--devices", 2, "--folder", tmp_path, "--address", "link.lan")
    made = json.loads(tool(*words, "--format", "json").stdout)["made"]
    assert len(made) == 3 + 2 * 2
    assert "All was there" in tool(*words).stdout
    other = tool(*words, "--address", "other.lan")
    assert other.returncode == 2 and "must be for other.lan" in other.stderr


@pytest.mark.slow
def test_plain_needs_no_root_and_no_tools_but_flowers(folder, tool, left_of):
    done = tool("up", "--plain", "--devices", 2, "--folder", folder)
    assert done.returncode == 0, done.stderr
    state = read_state(folder)
    flwr = Path(sys.executable).with_name("flwr")
    assert f"env FLWR_HOME={folder}/flwr {flwr} run APP prototype" in done.stdout
    assert state.host == "127.0.0.1"
    shown = tool("status", "--folder", folder).stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [
        ["superlink", "yes"],
        ["pi3-1", "yes"],
        ["pi4-1", "yes"],
    ]
    os.kill(int(shown.splitlines()[2].split()[2]), 9)
    shown = tool("status", "--folder", folder).stdout
    assert shown.splitlines()[2].split()[:2] == ["pi3-1", "no"]
    removed = tool("down", "--folder", folder)
    assert removed.returncode == 0 and "0 namespaces" in removed.stdout
    assert left_of(state) == []
