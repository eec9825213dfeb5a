"""The CSV files of users: fleets, pilots and runs, read whole or not at all."""

import csv
import math
import os
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, TextIO

import numpy as np

from fedplan.atomic import draft_of
from fedplan.convergence.histories import History
from fedplan.convergence.pilots import Pilot
from fedplan.convergence.saturation import ROUNDS
from fedplan.core.fleet import MAX_CLIENTS, QUANTITIES, Fleet, FloatArray, invalid, requirement_of
from fedplan.csvfile import (
    MOST_PROBLEMS,
    Cells,
    Kind,
    comma_remedy,
    input_error,
    not_text,
    number,
    read_blocks,
    shielded,
    unshielded,
)
from fedplan.errors import LARGEST, SMALLEST, Collector, InputError, InputProblem, refuse

_KINDS = {
    "fleet": Kind(required=QUANTITIES, optional=("device", "count", "samples")),
    "pilots": Kind(
        required=tuple(field.name for field in fields(Pilot) if field.name != "seed"),
        optional=("seed",),
    ),
    "runs": Kind(
        required=("round", "clients", "local_steps", "loss"), optional=("run", "learning_rate")
    ),
}
MOST_PILOTS = 1_000  # pairs of them are compared: some seconds
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

    num_clients : if given, also check what an estimate for this many clients needs: at
        least two pilots, none of them with more clients.
    """
    rows: _PilotRows = {}
    problems: list[InputProblem] = []
    parts: list[list[Pilot]] = []
    try:
        parts = read_blocks(path, "pilots", _KINDS, partial(_pilots_part, rows))
    except InputError as error:
        problems += error.problems
    if len(rows) > MOST_PILOTS:
        message = (
            f"must have at most {MOST_PILOTS:,} pilots, but has {len(rows):,}. Leave some out."
        )
        problems += input_error([InputProblem(message=message)], path).problems
    elif len(problems) < MOST_PROBLEMS:  # else the file was not read to its end
        together = islice(_problems_together(rows, num_clients), MOST_PROBLEMS)
        problems += input_error(together, path).problems
    refuse(problems)
    return list(chain.from_iterable(parts))


def read_histories(paths: Sequence[str | os.PathLike[str]]) -> list[History]:
    """Read runs made elsewhere, any number per file; all problems are raised together.

    Learning rates become multiples of their mean over the first rounds of all runs.
    """
    collector = Collector()
    rows: list[dict[str, FloatArray]] = []
    for path in paths:
        rows += collector.attempt(partial(_read_runs, path)) or []
    given = [run["learning_rate"] for run in rows if "learning_rate" in run]
    if given and len(given) < len(rows):
        collector.add("learning_rate must be in every file of runs, or in none. Add it.")
    collector.finish()
    usual = 1.0
    if given:
        early = np.concatenate([run["learning_rate"][run["round"] <= ROUNDS] for run in rows])
        usual = float((early if early.size else np.concatenate(given)).mean())
    return [
        History(
            rounds=run["round"],
            clients=run["clients"],
            local_steps=run["local_steps"],
            losses=run["loss"],
            rates=run["learning_rate"] / usual if given else np.ones(run["round"].size),
        )
        for run in rows
    ]


def _read_runs(path: str | os.PathLike[str]) -> list[dict[str, FloatArray]]:
    """The runs of one file by their names, a column of numbers each; without round 0."""
    lines: dict[str, list[tuple[int, dict[str, float]]]] = {}
    problems: list[InputProblem] = []
    try:
        read_blocks(path, "runs", _KINDS, partial(_runs_part, lines))
    except InputError as error:
        problems += error.problems
    problems += [
        InputProblem(
            line=line,
            column="round",
            message=f"rounds of a run must rise, but {after['round']:g} comes after "
            f"{before['round']:g}. Sort them, or tell runs apart by a column run.",
        )
        for run in lines.values()
        for (_, before), (line, after) in pairwise(run)
        if after["round"] <= before["round"]
    ]
    runs = [[row for _, row in run if row["round"]] for run in lines.values()]
    if not problems and not any(math.isfinite(row["loss"]) for run in runs for row in run):
        problems = [InputProblem(column="loss", message="must be known after some round >= 1.")]
    if problems:
        raise input_error(sorted(problems, key=lambda one: one.line or 0)[:MOST_PROBLEMS], path)
    return [{name: np.array([row[name] for row in run]) for name in run[0]} for run in runs if run]


def _runs_part(
    lines: dict[str, list[tuple[int, dict[str, float]]]], cells: Cells, at: list[int]
) -> tuple[int, list[InputProblem]]:
    """Add the rows of a block to their runs; how many, and what is wrong with each cell."""
    names = cells.pop("run", [""] * len(at))
    problems = []
    for place, (line, run) in enumerate(zip(at, names, strict=True)):
        row = {name: number(column[place]) for name, column in cells.items()}
        lines.setdefault(run, []).append((line, row))
        for name, value in row.items():
            cell = cells[name][place]
            wanted = _wanted_of_run(name, value, blank=not cell, begins=row["round"] == 0)
            if wanted:
                message = f"must be {wanted}, but got {reprlib.repr(cell)}.{comma_remedy(cell)}"
                problems.append(InputProblem(line=line, column=name, message=message))
    return len(at), problems


def _wanted_of_run(name: str, value: float, *, blank: bool, begins: bool) -> str:
    """What a cell of a run must be, if it is not; before the first round only losses count."""
    if name == "loss":
        fits = blank or abs(value) <= LARGEST
        wanted = f"a number of at most {LARGEST:g}, or empty where nobody measured it"
    elif name == "learning_rate":
        fits = begins or SMALLEST <= value <= LARGEST
        wanted = f"a number > 0, from {SMALLEST:g} to {LARGEST:g}"
    else:
        least = 0 if name == "round" else 1
        fits = begins or (least <= value <= MAX_CLIENTS and value.is_integer())
        wanted = f"a whole number >= {least} (at most 10^12)"
    return "" if fits else wanted


def write_fleet(path: str | os.PathLike[str], fleet: Fleet) -> None:
    """Write a fleet.csv that reads back as the same fleet; on failure an old file is kept."""
    if fleet.device is not None:
        wrong = [name for name in fleet.device if not _is_storable(name)]
        if wrong:
            invariant = "must be one line of text without spaces around it"
            message = f"{invariant}, but got {reprlib.repr(wrong[0])} ({len(wrong)} such names)."
            raise input_error([InputProblem(column="device", message=message)], path)
    with draft_of(path, (".csv",)) as draft, draft.open("x", encoding="utf-8", newline="") as file:
        write_rows(file, fleet)


def write_rows(file: TextIO, fleet: Fleet) -> None:
    """Write the header and the rows of a fleet.csv."""
    columns: dict[str, Sequence[object]] = {}
    if fleet.device is not None and any(fleet.device):
        columns["device"] = list(map(shielded, fleet.device))
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
    device = list(map(unshielded, cells.pop("device", [])))
    numbers = {name: np.array([number(cell) for cell in cells[name]]) for name in cells}
    problems = []
    for name, values in numbers.items():
        for row in np.flatnonzero(invalid(name, values))[:MOST_PROBLEMS].tolist():
            cell = cells[name][row]
            message = f"{requirement_of(name)}, but got {reprlib.repr(cell)}."
            if name.endswith("_j") and not cell:
                message += " Write 0 where it is unknown."
            message += comma_remedy(cell)
            if name != "count" and 0 < values[row] < math.inf:
                message += f" Numbers from {SMALLEST:g} to {LARGEST:g} are accepted."
            problems.append(InputProblem(line=at[row], column=name, message=message))
    return (numbers, device), problems


def _plain_fleet_part(names: list[str], lines: list[str]) -> _FleetPart | None:
    """Parse lines without quotes the fast way; None if anything at all looks wrong."""
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
    return numbers, [unshielded(line.split(",")[place].strip()) for line in lines]


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
    if not math.isfinite(value):  # Pilot refuses the cell, and names it
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
                "it; runs with equal results are distinguished by their seed."
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
