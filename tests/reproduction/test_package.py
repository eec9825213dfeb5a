"""The package of `fedplan reproduce`, and what fedplan says without it."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import fedplan.cli

ROOT = Path(__file__).parents[2]


def test_its_command_is_an_entry_point_of_fedplan():
    declared = tomllib.loads((ROOT / "reproduction" / "pyproject.toml").read_text())["project"]
    (found,) = entry_points(group="fedplan.commands", name="reproduce")
    assert declared["entry-points"]["fedplan.commands"] == {"reproduce": found.value}
    assert declared["version"] == fedplan.__version__


def test_without_it_fedplan_says_where_the_command_is(fedplan, monkeypatch):
    monkeypatch.setattr("fedplan.cli.commands.entry_points", lambda **_: EntryPoints())
    result = fedplan("reproduce", "setup3")
    assert result.code == 2 and "pip install ./reproduction" in result.err
    assert "reproduce" not in fedplan("-h").out
    unknown = fedplan("nothing")
    assert unknown.code == 2 and "No such command" in unknown.err
