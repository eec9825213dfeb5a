"""Output: JSON without surprises, errors with every problem, numbers people can read."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedplan.errors import FedplanError, InputError
from fedplan.strictjson import to_json

if TYPE_CHECKING:
    from rich.console import Console

    from fedplan.figures import Figure


_WHEN_STOPPED = "fedplan.when_stopped"


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document; what has no finite value becomes null."""
    click.echo(to_json(value, indent=2))


def fail(error: FedplanError | click.ClickException) -> int:
    """Report an error, as JSON too where JSON was asked for, and return its exit code."""
    problems = error.problems if isinstance(error, InputError) else ()
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if _wants_json():
        details = {
            "type": type(error).__name__,
            "message": text,
            "problems": [
                {"source": p.source, "line": p.line, "column": p.column, "message": p.message}
                for p in problems
            ],
        }
        print_json({"success": False, "error": details})
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
    lines = text.splitlines()
    if len(lines) == 1:
        click.echo(f"Error: {text}", err=True)
    else:
        click.echo(
            "\n".join(["Error: several problems:", *(f"  {line}" for line in lines)]), err=True
        )
    return error.exit_code


def note_kept(store_url: str) -> None:
    """From here on, an interrupted command has runs that are kept, and can go on."""
    kept = f"Runs that had ended are kept in {store_url}: the same command goes on from there."
    click.get_current_context().meta[_WHEN_STOPPED] = f"Stopped. {kept}"


def when_stopped(context: click.Context | None) -> str:
    """What to say of a command that was interrupted."""
    return "Stopped." if context is None else str(context.meta.get(_WHEN_STOPPED, "Stopped."))


def _wants_json() -> bool:
    # The error may come before the options are parsed, so the words themselves are looked at.
    words = sys.argv[1:]
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def check_plot(path: str | None) -> None:
    """Refuse a plot file that cannot be written before any work is done."""
    if path is not None:
        from fedplan.figures import check_path

        check_path(path)


def check_file(path: str | None, suffixes: Sequence[str]) -> None:
    """Refuse another file that cannot be written, or has none of these endings."""
    if path is not None:
        from fedplan.atomic import check_target

        check_target(path, suffixes)


def check_folder(path: str | None) -> None:
    """Refuse what would stand in a folder that is not there, before any work is done."""
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise InputError(f"there is no folder {Path(path).parent} to write {path} into. Make it.")


def save_plot(data: Figure, path: str) -> None:
    """Draw into the file, and say so once the command has printed its result."""
    from fedplan.figures import save_figure

    save_figure(data, path)
    context = click.get_current_context()
    context.call_on_close(lambda: click.echo(f"Drawn: {path}", err=True))


def say_not_drawn(path: str, reason: str) -> None:
    """Say, once the command has printed its result, why a plot that was asked for is not there."""
    context = click.get_current_context()
    context.call_on_close(lambda: click.echo(f"Not drawn: {path}, for {reason}.", err=True))


def console() -> Console:
    """A console on standard output; plain without a terminal or with NO_COLOR."""
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

    # Piped output keeps whole lines; a terminal wraps at its own width.
    return PipedConsole(width=None if sys.stdout.isatty() else 110, highlight=False)


def amount(value: float) -> str:
    """A number people can read: four digits, or all before the point.

    >>> amount(0.123456), amount(58240.09), amount(float("inf"))
    ('0.1235', '58,240', 'inf')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def seconds(value: float) -> str:
    """A duration people can read.

    >>> seconds(0.25), seconds(75.0), seconds(1236.0), seconds(13200.0), seconds(200000.0)
    ('0.25 s', '75 s', '20.6 min', '3.67 h', '2.31 d')
    >>> seconds(math.inf)
    'inf'
    """
    if value == math.inf:
        return "inf"
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if value < limit:
            return f"{value / size:.3g} {unit}"
    return f"{value / 86_400:,.3g} d" if value < 86_400_000 else f"{value / 86_400:,.0f} d"


def joules(value: float) -> str:
    """An energy people can read.

    >>> joules(12.3), joules(45600.0), joules(2.37e6), joules(7.2e6), joules(math.inf)
    ('12.3 J', '45.6 kJ', '2,370 kJ', '2 kWh', 'inf')
    """
    if value == math.inf:
        return "inf"
    if value < 1e3:
        return f"{value:.3g} J"
    if value < 3.6e6:
        return f"{value / 1e3:.3g} kJ" if value < 999.5e3 else f"{value / 1e3:,.0f} kJ"
    return f"{value / 3.6e6:,.4g} kWh"


def small(value: float, unit: str) -> str:
    """A small amount people can read.

    >>> small(2.5961e-06, "s"), small(0.25, "J"), small(12.3, "s"), small(0.0, "s")
    ('2.6 µs', '250 mJ', '12.3 s', '0 s')
    """
    if value == 0 or value >= 1:
        return f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
    for prefix, size in (("m", 1e-3), ("µ", 1e-6), ("n", 1e-9), ("p", 1e-12)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def difference(ratio: float) -> str:
    """A cost against the plan's.

    >>> difference(1.262), difference(5.6), difference(12.0), difference(1.0)
    ('+26.2%', '5.6 x', '12 x', 'same')
    """
    if abs(ratio - 1) < 5e-4:
        return "same"
    if ratio < 3:
        return f"{ratio - 1:+.1%}"
    return f"{ratio:,.1f} x" if ratio < 10 else f"{ratio:,.0f} x"


def who_trains(
    law: str, clients_per_round: int | None, groups: int | None, num_clients: int
) -> tuple[str, str]:
    """Who trains in a round, as a row of a table.

    >>> who_trains("turns", None, 6, 20), who_trains("shuffled", 4, None, 20)
    (('groups that take turns', '[bold]6[/] (20 clients)'),
     ('clients per round (shuffled)', '[bold]4[/] of 20'))
    """
    if clients_per_round is None:
        return "groups that take turns", f"[bold]{groups or 0:,}[/] ({num_clients:,} clients)"
    name = "clients per round" if law == "uniform" else f"clients per round ({law})"
    return name, f"[bold]{clients_per_round:,}[/] of {num_clients:,}"


def count_or_dash(number: int | None) -> str:
    """A whole number, or a dash where there is none.

    >>> count_or_dash(1200), count_or_dash(None)
    ('1,200', '-')
    """
    return "-" if number is None else f"{number:,}"
