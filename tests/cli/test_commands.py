"""The list of commands: it is there before any of them is imported, and says what each says."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import click
import pytest

from fedplan.cli.commands import cli


@pytest.mark.parametrize("name", cli.commands)
def test_a_command_begins_its_help_as_the_list_of_commands_says(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.name == name
    listed = cli.commands[name].help
    assert listed == inspect.cleandoc(command.help).partition("\n\n")[0].replace("\n", " ")


def test_help_imports_nothing_slow():
    code = (
        "import sys; from fedplan.cli import main; sys.argv = ['fedplan', *{words}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({slow} & set(sys.modules))"
    )
    light = {"scipy", "pydantic", "fedplan.planning", "fedplan.studies"}
    heavy = {"scipy.optimize", "scipy.stats", "numba", "matplotlib.figure", "plotly"}
    for words, slow in (
        (["--help"], light),
        (["list", "--help"], light),
        (["export", "--help"], light),
        (["run", "--help"], heavy),
        (["plan", "--help"], heavy),
    ):
        call = [sys.executable, "-c", code.format(words=words, slow=slow)]
        shown = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        assert shown.splitlines()[-1] == "set()", words


def test_a_broken_command_of_another_package_says_so_and_hides_no_other(fedplan, monkeypatch):
    found = EntryPoints([EntryPoint("theirs", "no_such_package:run", "fedplan.commands")])
    monkeypatch.setattr("fedplan.cli.commands.entry_points", lambda **keys: found.select(**keys))
    shown = fedplan("--help")
    assert shown.code == 0 and "simulate" in shown.out
    said = fedplan("theirs", "--fast", "x")
    assert (
        said.code == 1
        and "no_such_package:run cannot be loaded" in said.err
        and "Upgrade" in said.err
    )
