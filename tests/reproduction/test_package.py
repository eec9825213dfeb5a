"""The package of `fedplan reproduce`: it uses documented names, and fedplan does without it."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import fedplan.cli

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "reproduction" / "fedplan_reproduction"


def imported_names():
    """Every name of fedplan that the package imports, with its module."""
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(r"fedplan(\.|$)", node.module or ""):
                yield from ((node.module, alias.name) for alias in node.names)


def test_it_imports_documented_names_alone():
    pages = [ROOT / "docs" / "reference" / name for name in ("api.md", "api-packages.md")]
    text = "".join(page.read_text() for page in pages)
    found = set(imported_names())
    assert len(found) > 30
    for module, name in found - {("fedplan.studies", "Progress"), ("fedplan.studies", "Report")}:
        assert re.search(rf"`?{re.escape(module)}\b", text), module
        assert (
            re.search(rf"\b{name}\b", text) or f"automodule:: {module}\n   :members:\n" in text
        ), f"{module}.{name}"


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
