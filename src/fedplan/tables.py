"""The CSV files users bring: fleet.csv and pilots.csv, read whole or not at all."""

from __future__ import annotations

import csv
import math
import os
import reprlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from fedplan.atomic import draft_of
from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import (
    MAX_CLIENTS,
    MAX_VALUE,
    QUANTITIES,
    Fleet,
    FloatArray,
    invalid_quantity,
    invalid_samples,
    quantity_requirement,
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
from fedplan.errors import Collector, InputError, InputProblem
from fedplan.pilotrows import PILOT_COLUMNS, PilotRows

_KINDS = {
    "fleet": Kind(required=QUANTITIES, optional=("device", "count", "samples")),
    "pilots": Kind(required=PILOT_COLUMNS, optional=("seed",)),
}

_FleetPart = tuple[dict[str, FloatArray], list[str]]  # the numbers by column, and the devices


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
    rows = PilotRows()
    collector = Collector()
    collector.attempt(lambda: read_blocks(path, "pilots", _KINDS, rows.add))
    for problem in islice(rows.problems(num_clients), MOST_PROBLEMS):
        collector.add(replace(problem, source=Path(path).name))
    collector.finish()
    return rows.pilots


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


def _requirement(name: str) -> str:
    if name == "count":
        return "must be a positive integer (at most 10^12)"
    if name == "samples":
        return "must be a finite number >= 0"
    return quantity_requirement(name)


def _invalid(name: str, values: FloatArray) -> NDArray[np.bool_]:
    if name == "count":
        wrong: NDArray[np.bool_] = ~((values >= 1) & (values <= MAX_CLIENTS) & (values % 1 == 0))
        return wrong
    if name == "samples":
        return invalid_samples(values)
    return invalid_quantity(name, values)


def _fleet_part(cells: Cells, at: list[int]) -> tuple[_FleetPart, list[InputProblem]]:
    device = cells.pop("device", [])
    numbers = {name: np.array([number(cell) for cell in cells[name]]) for name in cells}
    problems = []
    for name, values in numbers.items():
        for row in np.flatnonzero(_invalid(name, values))[:MOST_PROBLEMS].tolist():
            message = f"{_requirement(name)}, but got {reprlib.repr(cells[name][row])}."
            if name.endswith("_j") and not cells[name][row]:
                message += " Write 0 where it is unknown."
            message += comma_remedy(cells[name][row])
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
    if any(_invalid(name, values).any() for name, values in numbers.items()):
        return None
    if "device" not in names:
        return numbers, []
    place = names.index("device")
    return numbers, [line.split(",")[place].strip() for line in lines]
