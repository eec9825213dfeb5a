"""Tables: rows of a kind as a small CSV, written and read again by the names of their fields."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

from fedplan import InputError
from fedplan.atomic import draft_of
from fedplan.studies import RunSummary

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """One run of the grid: what it took, and its accuracy on test samples at the end."""

    clients_per_round: int
    local_steps: int
    seed: int
    status: str
    rounds: int
    time_s: float
    energy_j: float
    test_accuracy: float | None = None

    @property
    def summary(self) -> RunSummary:
        """As cells are made of."""
        return RunSummary(
            clients_per_round=self.clients_per_round,
            local_steps=self.local_steps,
            seed=self.seed,
            status=cast(Any, self.status),
            rounds=self.rounds,
            time_s=self.time_s,
            energy_j=self.energy_j,
            final_loss=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a folder is about."""

    setup: str
    command: str
    target_loss: float
    seeds: int


def write_table(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows below a heading."""
    with draft_of(path) as draft, draft.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def write_rows(path: Path, kind: type[T], rows: Sequence[T]) -> None:
    """Write rows of a kind; nothing is an empty cell, and a number has eight digits."""
    names = [field.name for field in fields(cast(Any, kind))]
    write_table(path, names, ([_text(getattr(row, name)) for name in names] for row in rows))


def read_rows(path: Path, kind: type[T]) -> list[T]:
    """The rows that were written."""
    kinds = get_type_hints(kind)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                kind(**{name: _value(text, kinds[name]) for name, text in row.items()})
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read again ({error}). Make the folder with `fedplan reproduce`, "
            "without --redraw."
        ) from error


def _text(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.8g}" if isinstance(value, float) else value


def _value(text: str, kind: Any) -> Any:
    either = get_args(kind)
    if either and not text:
        return None
    return (either[0] if either else kind)(text)
