"""Output: results as JSON or as facts and tables, errors with every problem, and plots."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from fedplan.atomic import check_target
from fedplan.cli import WHEN_STOPPED
from fedplan.errors import FedplanError, InputError
from fedplan.strictjson import to_json
from fedplan.words import Table

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table as Grid

    from fedplan.figures import Figure
    from fedplan.studies.experiment import Experiment


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON document; what has no finite value becomes null."""
    click.echo(to_json(value, indent=2))


# Control characters, which names of files and devices may contain and a terminal would obey.
_WRITTEN_OUT = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}


def picked(result: Any, *names: str) -> dict[str, Any]:
    """These attributes of a result, by name; each is None without a result."""
    return {name: result and getattr(result, name) for name in names}


def fail(error: FedplanError | click.ClickException) -> int:
    """Report an error, as JSON too where JSON was asked for, and return its exit code."""
    problems = error.problems if isinstance(error, InputError) else ()
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if _wants_json():
        details = {
            "type": type(error).__name__,
            "message": text,
            "problems": [asdict(problem) for problem in problems],
        }
        print_json({"success": False, "error": details})
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
    text = text.translate(_WRITTEN_OUT)
    if len(lines := text.splitlines()) > 1:
        text = "\n".join(["several problems:", *(f"  {line}" for line in lines)])
    click.echo(f"Error: {text}", err=True)
    return error.exit_code


def note_kept(store_url: str) -> None:
    """From here on, an interrupted command says that its runs are kept."""
    kept = f"Runs that had ended are kept in {store_url}: the same command resumes from there."
    click.get_current_context().meta[WHEN_STOPPED] = f"Stopped. {kept}"


def _wants_json() -> bool:
    # The error may come before the options are parsed, so the words themselves are looked at.
    words = sys.argv[1:]
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def check_file(path: str | None, suffixes: Sequence[str] = (".png", ".svg", ".html")) -> None:
    """Refuse a file that cannot be written, or has none of these endings, before any work is done.

    The default endings are those of figures.
    """
    if path is not None:
        check_target(path, suffixes)


def draw(
    path: str | None, figure: Callable[[], Figure | None], *, otherwise: str, when: bool = True
) -> None:
    """Draw into the file, if one was asked for; say so once the command has printed its result.

    otherwise : why nothing is drawn if `when` is false or there is no figure.
    """
    if path is None:
        return
    from fedplan.figures import save_figure

    words = f"Not drawn: {path}, because {otherwise}."
    if when and (data := figure()) is not None:
        save_figure(data, path)
        words = f"Drawn: {path}"
    say_at_the_end(words)


def say_at_the_end(words: str) -> None:
    """Say it on standard error, once the command has printed its result."""
    click.get_current_context().call_on_close(lambda: click.echo(words, err=True))


def console() -> Console:
    """A console on standard output; plain without a terminal or with NO_COLOR."""
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

    # Piped output keeps whole lines; a terminal wraps at its own width.
    return PipedConsole(width=None if sys.stdout.isatty() else 110, highlight=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values beside each other; values may have rich's markup."""

    facts: Iterable[tuple[str, str]]
    title: str | None = None


class Marked(str):
    """A cell with rich's markup; any other is shown as it is."""

    __slots__ = ()


Block = Facts | Table | str


def print_result(
    output_format: str, document: Mapping[str, Any], blocks: Iterable[Block], *, code: int = 1
) -> None:
    """Print the document or the blocks, as was asked for; without success end with the code."""
    if output_format == "json":
        print_json(document)
    else:
        print_blocks(blocks)
    if not document["success"]:
        raise click.exceptions.Exit(code)


def print_blocks(blocks: Iterable[Block]) -> None:
    """Print the blocks, with an empty line between two."""
    out = console()
    for place, block in enumerate(blocks):
        if place:
            out.print()
        if isinstance(block, str):
            out.print(block.translate(_WRITTEN_OUT), markup=False)
            continue
        if isinstance(block, Facts) and block.title is not None:
            out.print(block.title)
        out.print(_grid(block))


def _grid(block: Facts | Table) -> Grid:
    from rich.markup import escape
    from rich.table import Table as Grid

    if isinstance(block, Facts):
        grid, indent = Grid.grid(padding=(0, 3)), "" if block.title is None else "  "
        for name, value in block.facts:
            grid.add_row(indent + name, value.translate(_WRITTEN_OUT))
        return grid
    grid = Grid(box=None, title=block.title or None, title_justify="left")
    for name in block.head:
        justify: JustifyMethod = "left" if name in block.left else "right"
        grid.add_column(name, justify=justify, no_wrap=name in block.whole)
    for row in block.rows:
        cells = (cell if isinstance(cell, Marked) else escape(cell) for cell in row)
        grid.add_row(*(cell.translate(_WRITTEN_OUT) for cell in cells))
    return grid


def who_trains(
    law: str, clients_per_round: int | None, groups: int | None, num_clients: int
) -> tuple[str, str]:
    """Who trains in a round, as a fact with its name.

    >>> who_trains("turns", None, 6, 20), who_trains("shuffled", 4, None, 20)
    (('groups that take turns', '[bold]6[/] (20 clients)'),
     ('clients per round (shuffled)', '[bold]4[/] of 20'))
    """
    if clients_per_round is None:
        return "groups that take turns", f"[bold]{groups or 0:,}[/] ({num_clients:,} clients)"
    name = "clients per round" if law == "uniform" else f"clients per round ({law})"
    return name, f"[bold]{clients_per_round:,}[/] of {num_clients:,}"


def study_in_words(experiment: Experiment) -> str:
    """A study's name, data and model."""
    study = experiment.study
    return f"{study.name}: {experiment.data_name}, {study.task.model}"
