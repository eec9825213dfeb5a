"""Rows: what files hold, and how pages show them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append_row(path: Path, columns: Sequence[str], row: Iterable[object]) -> None:
    """One row more; a file that is not there yet begins with its heading."""
    fresh = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(columns)
        writer.writerow(row)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, *rows]
    shown = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([shown[0], "|---" * len(head) + "|", *shown[1:]])
