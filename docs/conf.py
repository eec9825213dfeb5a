"""The documentation site: the repository's own Markdown pages, and reference made from the code.

The source folder is the repository, so that links between pages are the same here as in a
checkout: `sphinx-build -c docs . build/docs`.
"""

from __future__ import annotations

import re
import sys
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

import click
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import fedplan
from fedplan.cli.commands import cli

sys.path.insert(0, str(Path(__file__).parents[1] / "tools" / "prototype"))
from commands import PROGRAM, prototype

project = "fedplan"
author = "The fedplan developers"
copyright = author  # noqa: A001
version = release = fedplan.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/**.md",
    "examples/*/README.md",
    "benchmarks/README.md",
    "reproduction/README.md",
    "reproduction/prototype.md",
    "reproduction/participation.md",
    "reproduction/suite.md",
    "reproduction/fresh.md",
    "reproduction/leaderboard.md",
    "reproduction/results/*/README.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "tools"]  # not looked into
nitpicky = True
nitpick_ignore_regex = [
    # Packages without a site here to link to.
    (r"py:.*", r"(numpy|torch|flwr|collections|os|pathlib|socket)\..*"),
    # Parts of signatures that are nobody's to use, and aliases of types.
    (r"py:.*", r"fedplan\.flower\.(exchange\.Clock|rounds\.Made|journal\.Journal)"),
    (r"py:.*", r"fedplan\.(planning\.turns\.Choice|participation\.grouping\.Grouping)"),
    (r"py:.*", r"fedplan\.profiling\.(meters\.Window|transfer\.Address)"),
    (r"py:.*", r"fedplan\.studies\.(\w+\.Study|archive\.T|keys\.(Planning|Task)Table|sinks\.Sink)"),
    (r"py:.*", r"ArrayLike|FloatArray|IntArray|Backend|fedplan\.notebook\.Row"),
]

myst_heading_anchors = 3

default_role = "code"
smartquotes = False  # they make one dash of the two before an option
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "fedplan"
html_extra_path = ["site/index.html"]
html_static_path = ["site/static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

INDEXES = ("docs/README", "docs/decisions/README")
# The pages with a section for every command of a program.
PROGRAMS = {
    "docs/reference/cli": ("fedplan", cli),
    "docs/reference/prototype": (PROGRAM, prototype),
}
ITEM = re.compile(r"^(?:-|\d+\.) \[(.*?)\]\((.*?)\.md\)", re.MULTILINE)


def toctrees(page: str) -> str:
    """The links that begin the items of a page's lists, section by section, for the sidebar."""
    blocks = []
    for section in re.split(r"^## ", "\n" + page, flags=re.MULTILINE):
        links = [f"{text} <{target}>" for text, target in ITEM.findall(section)]
        if links:
            caption = "" if section.startswith("\n") else f":caption: {section.splitlines()[0]}\n"
            blocks.append("\n".join(["```{toctree}", f":hidden:\n{caption}", *links, "```", ""]))
    return "\n".join(blocks)


def usage_of(program: str, group: click.Group, name: str) -> str:
    """How a command is used, and its examples, as its -h has them."""
    parent = click.Context(group, info_name=program)
    command = group.get_command(parent, name)
    if command is None:
        raise LookupError(f"{program} has no command {name}: install what brings it")
    context = click.Context(command, info_name=name, parent=parent)
    usage = command.get_usage(context).removeprefix("Usage: ")
    examples = cleandoc(command.help or "").partition("Examples:\n")[2].partition("\n\n")[0]
    return f"```text\n{usage}\n```\n\nExamples:\n\n```text\n{dedent(examples)}\n```"


def complete(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Add what a checkout does not show: the sidebar, and usage and examples of each command."""
    source[0] = re.sub(r"\n\n```(?=\n)", "\n```", source[0])  # doctest needs the empty line
    if docname in INDEXES:
        source[0] += "\n\n" + toctrees(source[0])
    if docname in PROGRAMS:
        program, group = PROGRAMS[docname]
        source[0] = re.sub(
            rf"^## {program} (.*)$",
            lambda found: f"{found[0]}\n\n{usage_of(program, group, found[1])}",
            source[0],
            flags=re.MULTILINE,
        )


PARAMETER = re.compile(r"^(\w+(?:(?:, | or )\w+)*) : (.*)$")


def list_parameters(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Turn `name : meaning` lines of a docstring into a list of definitions."""
    made: list[str] = []
    in_list = False
    for line in lines:
        found = PARAMETER.match(line)
        if found:
            if not in_list and made and made[-1]:
                made.append("")
            made += [re.sub(r"(\w+)(?=, | or |$)", r"``\1``", found[1]), f"    {found[2]}"]
        else:
            made.append(line)
        in_list = bool(found) or (in_list and line.startswith("    "))
    lines[:] = made


def name_aliases(
    _app: Sphinx,
    _what: str,
    _name: str,
    _obj: object,
    _options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write aliases of types as they are called, within unions as well."""
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return signature and alias.sub(r"\1", signature), returns and alias.sub(r"\1", returns)


def setup(app: Sphinx) -> None:
    """Connect the above."""
    app.add_lexer("csv", TextLexer)  # there is no lexer of its own
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", list_parameters)
    app.connect("autodoc-process-signature", name_aliases)
