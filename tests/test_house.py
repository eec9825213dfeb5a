"""The house rules: what is exported, what imports what, what is documented."""

from __future__ import annotations

import importlib
import inspect
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from docs.pages import PAGES, ROOT

import fedplan
from commands import PROGRAM, prototype
from fedplan.cli.commands import cli

PROGRAMS = [
    pytest.param("fedplan", cli, "cli.md", id="fedplan"),
    pytest.param(PROGRAM, prototype, "prototype.md", id="prototype"),
]
PAPER_TO_CODE = ROOT / "docs" / "explanation" / "paper-to-code.md"


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout


def commands_of(group: click.Group) -> list[tuple[str, click.Command]]:
    """Every command, those of other packages too."""
    context = click.Context(group)
    names = group.list_commands(context)
    return [(name, command) for name in names if (command := group.get_command(context, name))]


def test_every_exported_name_can_be_imported_and_nothing_else_is_promised():
    assert set(dir(fedplan)) == set(fedplan.__all__)
    for name in fedplan.__all__:
        assert getattr(fedplan, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = fedplan.no_such_name
    hinted = set(re.findall(r"import \w+ as (\w+)$", inspect.getsource(fedplan), re.MULTILINE))
    assert hinted == set(fedplan.__all__) - {"__version__"}


def test_import_and_planning_pull_in_nothing_but_numpy_and_scipy():
    code = """
import sys
before = set(sys.modules)
import fedplan
for name in fedplan.__all__: getattr(fedplan, name)
new = {name.split('.')[0] for name in set(sys.modules) - before}
from importlib.metadata import packages_distributions
homes = packages_distributions()
print(' '.join({home for name in new for home in homes.get(name, [])}))
"""
    # numpy brings charset-normalizer along where it happens to be installed, scipy 1.12 packaging.
    brought = {"fedplan", "charset-normalizer", "packaging"}
    assert set(python(code).split()) - brought == {"numpy", "scipy"}


def test_help_is_quick():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    help_ = subprocess.run(
        [sys.executable, "-m", "fedplan.cli", "-h"], capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Seconds of the processor, not of the wall: other work may be going on.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5
    assert "fedplan plan --example" in help_.stdout


def test_import_contracts_hold():
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("program", "group", "page"), PROGRAMS)
def test_every_command_and_option_is_documented_and_has_an_example(program, group, page):
    reference = (ROOT / "docs" / "reference" / page).read_text()
    for name, command in commands_of(group):
        section = reference.split(f"## {program} {name}\n")[1].split("\n## ")[0]
        assert "Examples:" in command.get_help(click.Context(command))
        for parameter in command.params:
            shown = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.metavar
            assert f"`{shown}" in section, f"{name} {shown}"
        known = {word for parameter in command.params for word in parameter.opts}
        assert set(re.findall(r"^\| `(--?[a-z][a-z0-9-]*)", section, re.MULTILINE)) <= known, name


@pytest.mark.parametrize(("program", "group", "page"), PROGRAMS)
def test_examples_of_commands_are_understood(program, group, page):
    commands = dict(commands_of(group))
    for name, command in commands.items():
        text = inspect.cleandoc(command.help).partition("Examples:\n")[2].partition("\n\n")[0]
        assert text, name
        for line in text.replace("\\\n", " ").splitlines():
            typed = re.split(r" {3,}(?=[a-z])", line.strip())[0]  # then a remark
            assert typed.startswith(f"{program} ")
            word, *options = shlex.split(typed.removeprefix(program))
            assert commands[word].make_context(name, options)


def test_the_paper_page_names_functions_and_tests_that_exist():
    rows = [line for line in PAPER_TO_CODE.read_text().splitlines() if line.startswith("| ")]
    functions = {
        name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+\.[A-Za-z_.]+)`", row)
    }
    assert len(functions) > 15
    for dotted in functions:
        package, module, *path = dotted.split(".")
        value = importlib.import_module(f"fedplan.{package}.{module}")
        for part in path:
            value = getattr(value, part)
    tests = {name for row in rows for name in re.findall(r"`(tests/[a-z_0-9/]+\.py)`", row)}
    assert tests and all((ROOT / name).is_file() for name in tests)
    data = {name for row in rows for name in re.findall(r"`(reproduction/results/[^`]+)`", row)}
    assert len(data) > 5 and all((ROOT / name).exists() for name in data)


def test_every_figure_and_table_of_the_paper_has_a_row_with_a_test():
    rows = [line.split(" | ") for line in PAPER_TO_CODE.read_text().splitlines()]
    first = {row[0].removeprefix("| "): row for row in rows if len(row) > 3}
    for figure in (3, 4, 5):
        named = [name for name in first if name.startswith(f"Figure {figure} ")]
        panels = {letter for name in named for letter in re.findall(r"\(([a-e])\)", name)}
        assert panels == set("abcde"), figure
        assert all("tests/" in first[name][-1] for name in named)
    assert {f"Table I, Setup {setup}" for setup in (1, 2, 3)} < first.keys()


def test_every_row_of_the_paper_says_whether_it_is_reproduced():
    text = PAPER_TO_CODE.read_text().partition("## The cubic")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] != "| paper"]
    assert len(rows) > 60
    for row in rows:
        assert row[2].startswith(("reproduced", "differs", "not testable here")), row[0]
        assert any("tests/" in cell for cell in row), row[0]
    named = {row[0].removeprefix("| ") for row in rows}
    panels = {f"Figure {number} ({letter})" for number in (3, 4, 5) for letter in "abcde"}
    assert panels | {"Remark on Theorem 2", "Algorithm 1"} < named


def test_every_number_of_the_paper_is_on_the_page():
    page = PAPER_TO_CODE.read_text()
    mentioned = set()
    for numbers in re.findall(r"Eq\. (\d+(?:, \d+)*)", page):
        mentioned |= {int(number) for number in numbers.split(", ")}
    assert mentioned >= set(range(1, 30))
    for kind, count in (("Lemma", 2), ("Theorem", 4), ("Corollary", 4), ("Algorithm", 2)):
        for number in range(1, count + 1):
            assert f"{kind} {number}" in page
    lines = set()
    for start, end in re.findall(r"Algorithm 2, lines? (\d+)(?:[-,] ?(\d+))?", page):
        lines |= set(range(int(start), int(end or start) + 1))
    assert lines == set(range(1, 14))


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_number_is_left_to_be_filled_in():
    for page in PAGES:
        assert not re.search(r"@[\w-]+@|TODO|XXX", page.read_text()), page.name


def test_the_version_stands_in_one_piece():
    assert f'version = "{fedplan.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {fedplan.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {fedplan.__version__}" in (ROOT / "CHANGELOG.md").read_text()
