"""The list of commands: it is there before any of them is imported, and says what each says."""

from __future__ import annotations

import inspect
import subprocess
import sys

import click
import pytest

from fedplan.cli.commands import cli


@pytest.mark.parametrize("name", cli.commands)
def test_a_command_begins_its_help_as_the_list_of_commands_says(name):
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.name == name
    listed = cli.commands[name].help
    assert listed == inspect.cleandoc(command.help).partition("\n\n")[0].replace("\n", " ")


def test_help_and_lists_import_neither_the_planner_nor_a_study():
    code = (
        "import sys; from fedplan.cli import main; sys.argv = ['fedplan', *{words}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({{'scipy', 'pydantic', 'fedplan.planning', 'fedplan.studies'}} & set(sys.modules))"
    )
    for words in (["--help"], ["list", "--help"], ["export", "--help"]):
        call = [sys.executable, "-c", code.format(words=words)]
        shown = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        assert shown.splitlines()[-1] == "set()", words
