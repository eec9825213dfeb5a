"""The CSV files users bring: fleet.csv and pilots.csv, read whole or not at all."""

from __future__ import annotations

import csv
import difflib
import math
import reprlib
import secrets
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import numpy as np

from fedplan.errors import InputError, Problem
from fedplan.theory.fleet import (
    MAX_CLIENTS,
    MAX_VALUE,
    QUANTITIES,
    Fleet,
    FloatArray,
    invalid_quantity,
    quantity_requirement,
)
from fedplan.theory.pilots import Pilot

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_MOST_PROBLEMS = 50
_BLOCK = 1 << 22  # characters read at a time: memory stays small whatever the size of the file
_LONGEST_LINE = 100_000  # below the csv module's limit on a field, which therefore never fires
_WHOLE = ("clients_per_round", "local_steps", "seed")
_LOSSES_AND_ROUNDS = ("upper_loss", "lower_loss", "rounds_to_upper", "rounds_to_lower")
_REQUIRED = {"fleet": QUANTITIES, "pilots": (*_WHOLE[:2], *_LOSSES_AND_ROUNDS)}
_OPTIONAL = {"fleet": ("device", "count"), "pilots": ("seed",)}

_Part = TypeVar("_Part")
_Cells = dict[str, list[str]]  # column -> its cells, without the spaces around them
_FleetPart = tuple[dict[str, FloatArray], list[str]]  # the numbers by column, and the devices


def read_fleet(path: str | os.PathLike[str]) -> Fleet:
    """Read a fleet.csv; InputError carries every problem of the file, with line and column."""
    parts = _read(path, "fleet", _fleet_part, _plain_fleet_part)
    numbers = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    device = list(chain.from_iterable(part[1] for part in parts))
    try:
        return Fleet(**numbers, device=device if any(device) else None)
    except InputError as error:  # what only the whole file shows: too many devices in all
        raise _input_error(error.problems, path) from None


def read_pilots(path: str | os.PathLike[str]) -> list[Pilot]:
    """Read a pilots.csv; InputError carries every problem of the file, with line and column."""
    return list(chain.from_iterable(_read(path, "pilots", _pilots_part)))


def write_fleet(path: str | os.PathLike[str], fleet: Fleet) -> None:
    """Write a fleet.csv that reads back as the same fleet; a failure leaves the old file alone."""
    columns: dict[str, Sequence[object]] = {}
    if fleet.device is not None and any(fleet.device):
        columns["device"] = fleet.device
        wrong = [name for name in fleet.device if not _is_storable(name)]
        if wrong:
            invariant = "must be one line of text without spaces around it"
            message = f"{invariant}, but got {reprlib.repr(wrong[0])} ({len(wrong)} such names)."
            raise _input_error([Problem(column="device", message=message)], path)
    columns |= {name: getattr(fleet, name).tolist() for name in QUANTITIES}
    if (fleet.count != 1).any():
        columns["count"] = fleet.count.tolist()
    target = Path(path).resolve()  # a link keeps pointing where it did
    draft = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        draft.replace(target)
    except OSError as error:
        message = f"cannot be written ({error.strerror}): check the path {path}."
        raise _input_error([Problem(message=message)], path) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _is_storable(name: str) -> bool:
    return name == name.strip() and "\n" not in name and "\r" not in name and not _not_text(name)


def _input_error(problems: Iterable[Problem], path: str | os.PathLike[str]) -> InputError:
    return InputError(replace(problem, source=Path(path).name) for problem in problems)


def _read(
    path: str | os.PathLike[str],
    kind: str,
    parse: Callable[[_Cells, list[int]], tuple[_Part, list[Problem]]],
    parse_plain: Callable[[list[str], list[str]], _Part | None] = lambda _names, _lines: None,
) -> list[_Part]:
    """Parse a file block by block; `parse_plain` is a fast first try, `parse` has the last word."""
    parts: list[_Part] = []
    problems: list[Problem] = []
    try:
        # Bytes that are not UTF-8 become lone surrogates, to be reported with their line.
        with Path(path).open(encoding="utf-8-sig", errors="surrogateescape") as text:
            names, line, problems = _header(text, kind)
            for block in [] if problems else _blocks(text):
                lines = block.removesuffix("\n").split("\n")
                part = parse_plain(names, lines) if _is_plain(block, lines) else None
                if part is None:
                    cells, at, found = _split(lines, line + 1, names)
                    if at:
                        part, wrong = parse(cells, at)
                        found += wrong
                    problems += sorted(found, key=lambda problem: problem.line or 0)
                if part is not None:
                    parts.append(part)
                line += len(lines)
                if len(problems) >= _MOST_PROBLEMS:
                    break
    except OSError as error:
        raise _input_error([Problem(message=_failure(error, path))], path) from error
    if not parts and not problems:
        problems = [Problem(message="must have at least one row below the header.")]
    if len(problems) >= _MOST_PROBLEMS:
        message = f"reading stopped here, after {_MOST_PROBLEMS} problems; there may be more."
        end = Problem(line=problems[_MOST_PROBLEMS - 1].line, message=message)
        problems = [*problems[:_MOST_PROBLEMS], end]
    if problems:
        raise _input_error(problems, path)
    return parts


def _failure(error: OSError, path: str | os.PathLike[str]) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no such file: check the path {path}."
    if Path(path).is_dir():
        return f"is a folder: give the path of a CSV file, not {path}."
    if isinstance(error, PermissionError):
        return f"must be readable, but its permissions forbid it: change those of {path}."
    return f"cannot be read ({error.strerror}): check the path {path}."


def _header(text: TextIO, kind: str) -> tuple[list[str], int, list[Problem]]:
    """Find the first line that is not blank: the columns it names, its number, its problems."""
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        names = _fields(line.removesuffix("\n"))
        if isinstance(names, str):
            return [], number, [Problem(line=number, message=names)]
        if any(names):
            problems = [replace(p, line=number) for p in _header_problems(line, names, kind)]
            return names, number, problems
    message = f"must not be empty: write a header, {','.join(_REQUIRED[kind])}, and rows below it."
    return [], number, [Problem(message=message)]


def _header_problems(line: str, names: list[str], kind: str) -> Iterator[Problem]:
    for mark, marks in ((";", "semicolons"), ("\t", "tabs")):
        if line.count(mark) > line.count(","):
            message = f"commas must separate the columns, but got {marks}. Save as comma-separated."
            yield Problem(message=message)
            return
    known = _REQUIRED[kind] + _OPTIONAL[kind]
    unknown = [name for name in dict.fromkeys(names) if name not in known][:_MOST_PROBLEMS]
    if missing := [name for name in _REQUIRED[kind] if name not in names]:
        found = ", ".join(map(reprlib.repr, names[:20])) + ", ..." * (len(names) > 20)
        message = f"must name every column of a {kind} file. "
        message += f"Missing: {', '.join(missing)}. Found: {found}."
        for other, columns in _REQUIRED.items():
            if set(columns) <= set(names):
                yield Problem(message=f"{message} This looks like a {other} file.")
                return
        yield Problem(message=message)
    absent = [name for name in known if name not in names]
    for name in unknown:
        close = difflib.get_close_matches(name.lower(), absent, 1)
        if not close and len(absent) == len(known):
            continue  # no header at all, as the missing columns have said
        remedy = f"Did you mean {close[0]}?" if close else f"Remove it; known: {', '.join(known)}."
        message = f"is not a column of a {kind} file. {remedy}"
        yield Problem(column=reprlib.repr(name)[1:-1] or "(no name)", message=message)
    for name in known:
        if (times := names.count(name)) > 1:
            message = f"must stand once in the header, but got it {times} times. Remove one."
            yield Problem(column=name, message=message)


def _blocks(text: TextIO) -> Iterator[str]:
    """Cut the text into blocks of whole lines; end at a line too long to belong to a table."""
    while block := text.read(_BLOCK):
        rest = text.readline(_LONGEST_LINE + 1)
        yield block + rest
        if len(rest) > _LONGEST_LINE and not rest.endswith("\n"):
            return


def _is_plain(block: str, lines: list[str]) -> bool:
    return '"' not in block and max(map(len, lines)) <= _LONGEST_LINE and not _not_text(block)


def _not_text(text: str) -> str:
    """Say what keeps this from being text; nothing where it is."""
    try:
        text.encode()
        if "\0" not in text:
            return ""
        byte = 0
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF
    return f"is not UTF-8 text (byte 0x{byte:02x}): save as 'CSV UTF-8', not UTF-16 or Latin-1."


def _fields(line: str) -> list[str] | str:
    """Split a line into its cells; where that cannot be done, say why."""
    if len(line) > _LONGEST_LINE:
        return f"must have at most {_LONGEST_LINE:,} characters: this is not a row of a table."
    if fault := _not_text(line):
        return fault
    # One line at a time, so that a quote left open cannot swallow the rows below it. The line's end
    # gets into a cell only if a quote is open there.
    cells = next(csv.reader([line + "\n"], skipinitialspace=True), [])
    if cells and "\n" in cells[-1]:
        return 'a quote (") must be closed on its own line. Close or remove it.'
    return [cell.strip() for cell in cells]


def _split(
    lines: list[str], first_line: int, names: list[str]
) -> tuple[_Cells, list[int], list[Problem]]:
    """Split lines into columns: the cells, the line of each row, and the lines that do not fit."""
    rows: list[list[str]] = []
    at: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, first_line):
        fields = _fields(line)
        if isinstance(fields, str):
            problems.append(Problem(line=number, message=fields))
        elif len(fields) == len(names) and any(fields):
            rows.append(fields)
            at.append(number)
        elif any(fields):
            many = len(fields) > len(names)
            remedy = "Write decimals with a point." if many else "Fill in the rest."
            message = f"has {len(fields)} fields, but the header has {len(names)}. {remedy}"
            problems.append(Problem(line=number, message=message))
        if len(problems) >= _MOST_PROBLEMS:
            break
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False)), at, problems


def _number(cell: str) -> float:
    """Read a decimal number; NaN where there is none."""
    try:
        # Python alone takes 1_000 and the digits of every script; no other reader of CSV does.
        return float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return math.nan


def _requirement(name: str) -> str:
    if name == "count":
        return "must be a positive integer (at most 10^12)"
    return quantity_requirement(name)


def _invalid(name: str, values: FloatArray) -> NDArray[np.bool_]:
    if name == "count":
        wrong: NDArray[np.bool_] = ~((values >= 1) & (values <= MAX_CLIENTS) & (values % 1 == 0))
        return wrong
    return invalid_quantity(name, values)


def _fleet_part(cells: _Cells, at: list[int]) -> tuple[_FleetPart, list[Problem]]:
    device = cells.pop("device", [])
    numbers = {name: np.array([_number(cell) for cell in cells[name]]) for name in cells}
    problems = []
    for name, values in numbers.items():
        for row in np.flatnonzero(_invalid(name, values))[:_MOST_PROBLEMS].tolist():
            message = f"{_requirement(name)}, but got {reprlib.repr(cells[name][row])}."
            if name.endswith("_j") and not cells[name][row]:
                message += " Write 0 where it is unknown."
            if MAX_VALUE < values[row] < math.inf:
                message += f" The largest number accepted is {MAX_VALUE:g}."
            problems.append(Problem(line=at[row], column=name, message=message))
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


def _pilots_part(cells: _Cells, at: list[int]) -> tuple[list[Pilot], list[Problem]]:
    pilots: list[Pilot] = []
    problems: list[Problem] = []
    for line, row in zip(at, zip(*cells.values(), strict=True), strict=True):
        values = {name: _pilot_value(name, cell) for name, cell in zip(cells, row, strict=True)}
        try:
            pilots.append(Pilot(**values))
        except InputError as error:
            problems += [replace(problem, line=line) for problem in error.problems]
        if len(problems) >= _MOST_PROBLEMS:
            break
    return pilots, problems


def _pilot_value(name: str, cell: str) -> Any:
    number = _number(cell)
    if not math.isfinite(number):  # Pilot refuses the cell as it stands, and so names it
        return None if name == "seed" and not cell else cell
    if name in _WHOLE and number.is_integer():
        return int(cell) if cell.isdigit() else int(number)  # a long seed keeps all its digits
    return number
