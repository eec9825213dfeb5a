"""The CSV files users bring: fleet.csv and pilots.csv, read whole or not at all."""

from __future__ import annotations

import csv
import math
import os
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain, islice
from typing import Any, TextIO

import numpy as np

from fedplan.atomic import draft_of
from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import (
    MAX_VALUE,
    QUANTITIES,
    Fleet,
    FloatArray,
    invalid,
    requirement_of,
)
from fedplan.csvfile import (
    MOST_PROBLEMS,
    Cells,
    Kind,
    comma_remedy,
    input_error,
    not_text,
    number,
    read_blocks,
)
from fedplan.errors import InputError, InputProblem

_KINDS = {
    "fleet": Kind(required=QUANTITIES, optional=("device", "count", "samples")),
    "pilots": Kind(
        required=tuple(field.name for field in fields(Pilot) if field.name != "seed"),
        optional=("seed",),
    ),
}
_MOST_NAMED = 5  # lines, or pairs of losses, in one message

_FleetPart = tuple[dict[str, FloatArray], list[str]]  # the numbers by column, and the devices
_PilotRows = dict[int, dict[str, Any]]  # the values of every row, wrong ones too, by its line


def read_fleet(path: str | os.PathLike[str]) -> Fleet:
    """Read a fleet.csv; InputError carries every problem of the file, with line and column."""
    parts = read_blocks(path, "fleet", _KINDS, _fleet_part, _plain_fleet_part)
    numbers = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    device = list(chain.from_iterable(part[1] for part in parts))
    try:
        return Fleet(**numbers, device=device if any(device) else None)
    except InputError as error:  # what only the whole file shows: too many devices in all
        raise input_error(error.problems, path) from None


def read_pilots(path: str | os.PathLike[str], *, num_clients: int | None = None) -> list[Pilot]:
    """Read a pilots.csv; InputError carries every problem of the file, with line and column.

    num_clients : where it is given, what an estimate for so many clients needs is checked too: at
        least two pilots, none of them with more clients.
    """
    rows: _PilotRows = {}
    problems: list[InputProblem] = []
    parts: list[list[Pilot]] = []
    try:
        parts = read_blocks(path, "pilots", _KINDS, partial(_pilots_part, rows))
    except InputError as error:
        problems += error.problems
    if len(problems) < MOST_PROBLEMS:  # else the file was not read to its end
        together = islice(_problems_together(rows, num_clients), MOST_PROBLEMS)
        problems += input_error(together, path).problems
    if problems:
        raise InputError(problems)
    return list(chain.from_iterable(parts))


def write_fleet(path: str | os.PathLike[str], fleet: Fleet) -> None:
    """Write a fleet.csv that reads back as the same fleet; a failure leaves the old file alone."""
    if fleet.device is not None:
        wrong = [name for name in fleet.device if not _is_storable(name)]
        if wrong:
            invariant = "must be one line of text without spaces around it"
            message = f"{invariant}, but got {reprlib.repr(wrong[0])} ({len(wrong)} such names)."
            raise input_error([InputProblem(column="device", message=message)], path)
    try:
        with draft_of(path) as draft, draft.open("x", encoding="utf-8", newline="") as file:
            write_rows(file, fleet)
    except OSError as error:
        message = f"cannot be written ({error.strerror}): check the path {path}."
        raise input_error([InputProblem(message=message)], path) from error


def write_rows(file: TextIO, fleet: Fleet) -> None:
    """Write the header and the rows of a fleet.csv."""
    columns: dict[str, Sequence[object]] = {}
    if fleet.device is not None and any(fleet.device):
        columns["device"] = fleet.device
    columns |= {name: getattr(fleet, name).tolist() for name in QUANTITIES}
    if fleet.has_samples:
        columns["samples"] = fleet.samples.tolist()
    if (fleet.count != 1).any():
        columns["count"] = fleet.count.tolist()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _is_storable(name: str) -> bool:
    return name == name.strip() and "\n" not in name and "\r" not in name and not not_text(name)


def _fleet_part(cells: Cells, at: list[int]) -> tuple[_FleetPart, list[InputProblem]]:
    device = cells.pop("device", [])
    numbers = {name: np.array([number(cell) for cell in cells[name]]) for name in cells}
    problems = []
    for name, values in numbers.items():
        for row in np.flatnonzero(invalid(name, values))[:MOST_PROBLEMS].tolist():
            cell = cells[name][row]
            message = f"{requirement_of(name)}, but got {reprlib.repr(cell)}."
            if name.endswith("_j") and not cell:
                message += " Write 0 where it is unknown."
            message += comma_remedy(cell)
            if MAX_VALUE < values[row] < math.inf:
                message += f" The largest number accepted is {MAX_VALUE:g}."
            problems.append(InputProblem(line=at[row], column=name, message=message))
    return (numbers, device), problems


def _plain_fleet_part(names: list[str], lines: list[str]) -> _FleetPart | None:
    """Parse lines without quotes the fast way; None where anything at all looks wrong."""
    if {line.count(",") for line in lines} != {len(names) - 1}:
        return None
    numeric = [name for name in names if name != "device"]
    columns = [names.index(name) for name in numeric]
    try:
        table = np.loadtxt(lines, delimiter=",", comments=None, usecols=columns, ndmin=2)
    except ValueError:
        return None
    numbers = dict(zip(numeric, table.T, strict=True))
    if any(invalid(name, values).any() for name, values in numbers.items()):
        return None
    if "device" not in names:
        return numbers, []
    place = names.index("device")
    return numbers, [line.split(",")[place].strip() for line in lines]


def _pilots_part(
    rows: _PilotRows, cells: Cells, at: list[int]
) -> tuple[list[Pilot], list[InputProblem]]:
    """The pilots of a block, and what is wrong with each by itself; all are added to the rows."""
    pilots: list[Pilot] = []
    problems: list[InputProblem] = []
    for line, *row in zip(at, *cells.values(), strict=True):
        named = dict(zip(cells, row, strict=True))
        rows[line] = {name: _pilot_value(name, cell) for name, cell in named.items()}
        try:
            pilots.append(Pilot(**rows[line]))
        except InputError as error:
            for problem in error.problems:
                message = problem.message + comma_remedy(named[problem.column or ""])
                problems.append(replace(problem, line=line, message=message))
        if len(problems) >= MOST_PROBLEMS:
            break
    return pilots, problems


def _pilot_value(name: str, cell: str) -> Any:
    value = number(cell)
    if not math.isfinite(value):  # Pilot refuses the cell as it stands, and so names it
        return None if name == "seed" and not cell else cell
    if name in ("clients_per_round", "local_steps", "seed") and value.is_integer():
        return int(cell) if cell.isdigit() else int(value)  # a long seed keeps all its digits
    return value


def _problems_together(rows: _PilotRows, num_clients: int | None) -> Iterator[InputProblem]:
    """What only all rows of a pilots.csv together show."""
    first: dict[tuple[Any, ...], int] = {}
    for line, values in rows.items():
        if (before := first.setdefault(tuple(values.values()), line)) != line:
            message = (
                f"repeats line {before}, and a run that stands twice counts twice. Remove "
                "it; runs that came out equal are told apart by their seed."
            )
            yield InputProblem(line=line, message=message)
    yield from _different_losses(rows)
    if num_clients is None:
        return
    for line, values in rows.items():
        clients = values["clients_per_round"]
        if isinstance(clients, int) and clients > num_clients:
            message = (
                "`clients_per_round <= num_clients` must hold, but got "
                f"clients_per_round={clients:,}, num_clients={num_clients:,}. The pilots must "
                "be of the fleet that is planned for."
            )
            yield InputProblem(line=line, column="clients_per_round", message=message)
    if len(rows) == 1:
        message = (
            "`number of pilots >= 2` must hold, but got 1. Run another pilot with a different "
            "clients_per_round and local_steps."
        )
        yield InputProblem(message=message)


def _different_losses(rows: _PilotRows) -> Iterator[InputProblem]:
    lines: dict[tuple[float, float], list[str]] = {}
    for line, values in rows.items():
        upper, lower = values["upper_loss"], values["lower_loss"]
        if isinstance(upper, float) and isinstance(lower, float) and lower < upper:
            lines.setdefault((upper, lower), []).append(str(line))
    if len(lines) > 1:
        found = []
        for (upper, lower), at in islice(lines.items(), _MOST_NAMED):
            shown = ", ".join([*at[:_MOST_NAMED], *["..."] * (len(at) > _MOST_NAMED)])
            found.append(f"{upper:g} -> {lower:g} (line{'s' * (len(at) > 1)} {shown})")
        message = (
            "every pilot must descend between the same two losses, or their rounds cannot be "
            f"compared, but got {', '.join(found)}. Read the rounds off at common losses."
        )
        yield InputProblem(message=message)
