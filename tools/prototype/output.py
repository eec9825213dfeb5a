"""What the tool prints: JSON, tables, and errors with every problem."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from fedplan.errors import FedplanError, InputError

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2))


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
    if len(lines) > 1:
        text = "\n".join(["several problems:", *(f"  {line}" for line in lines)])
    click.echo(f"Error: {text}", err=True)
    return error.exit_code


def _wants_json() -> bool:
    # The error may come before the options are parsed, so the words themselves are looked at.
    words = sys.argv[1:]
    return "--format=json" in words or ("--format", "json") in pairwise(words)


def console() -> Console:
    """A console on standard output; plain without a terminal or with NO_COLOR."""
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich itself would exit with 1

    # Piped output keeps whole lines; a terminal wraps at its own width.
    return PipedConsole(width=None if sys.stdout.isatty() else 110, highlight=False)
