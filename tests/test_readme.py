"""What the README and the how-to pages tell people to type works as typed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "fedplan" / "studies" / "builtin" / "demo.toml"
FILES = ROOT / "docs" / "reference" / "files.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
COMMANDS = [
    pytest.param(command.split("#")[0], id=f"{page.stem}: {command}")
    for page in PAGES
    for command in re.findall(r"^\$ fedplan (.*)$", page.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_the_documentation_work(fedplan, tmp_path, monkeypatch, command):
    fleet, pilots = re.findall(r"```text\n(.*?)```", FILES.read_text(), re.DOTALL)
    (tmp_path / "fleet.csv").write_text(fleet)
    (tmp_path / "pilots.csv").write_text(pilots)
    shutil.copy(DEMO, tmp_path / "study.toml")
    monkeypatch.chdir(tmp_path)
    result = fedplan(*shlex.split(command))
    assert result.code == 0, result.err
    assert result.out


def test_make_targets_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
