"""CSV files read in blocks of cells, with the line and column of every fault."""

import csv
import difflib
import errno
import io
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TextIO, TypeVar

from fedplan.errors import InputError, InputProblem

MOST_PROBLEMS = 50
_BLOCK = 1 << 22  # characters read at a time: memory stays small whatever the size of the file
_FORMULA = ("=", "+", "-", "@", "\t")  # what begins a formula in a spreadsheet
_LONGEST_LINE = 100_000  # below the csv module's limit on a field, which therefore never fires

Part = TypeVar("Part")
Cells = dict[str, list[str]]  # column -> its cells, without the spaces around them


class Kind(NamedTuple):
    """The columns of one kind of file."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Upload(os.PathLike[str]):
    """A file that is not on disk: its name, for errors, and its content."""

    name: str
    content: bytes

    def __fspath__(self) -> str:
        return self.name


def input_error(problems: Iterable[InputProblem], path: str | os.PathLike[str]) -> InputError:
    """An error about this file."""
    return InputError(replace(problem, source=Path(path).name) for problem in problems)


def read_blocks(
    path: str | os.PathLike[str],
    kind: str,
    kinds: dict[str, Kind],
    parse: Callable[[Cells, list[int]], tuple[Part, list[InputProblem]]],
    parse_plain: Callable[[list[str], list[str]], Part | None] = lambda _names, _lines: None,
) -> list[Part]:
    """Parse a file block by block, first with the fast `parse_plain`, then with `parse`."""
    parts: list[Part] = []
    problems: list[InputProblem] = []
    try:
        with _open(path) as text:
            names, line, problems = _header(text, kind, kinds)
            for block in [] if problems else _blocks(text):
                lines = block.removesuffix("\n").split("\n")
                is_plain = '"' not in block and max(map(len, lines)) <= _LONGEST_LINE
                part = parse_plain(names, lines) if is_plain and not not_text(block) else None
                if part is None:
                    cells, at, found = _split(lines, line + 1, names)
                    if at:
                        part, wrong = parse(cells, at)
                        found += wrong
                    problems += sorted(found, key=lambda problem: problem.line or 0)
                if part is not None:
                    parts.append(part)
                line += len(lines)
                if len(problems) >= MOST_PROBLEMS:
                    break
    except OSError as error:
        raise input_error([InputProblem(message=_failure(error, path))], path) from error
    if not parts and not problems:
        problems = [InputProblem(message="must have at least one row below the header.")]
    if len(problems) >= MOST_PROBLEMS:
        message = f"reading stopped here, after {MOST_PROBLEMS} problems; there may be more."
        end = InputProblem(line=problems[MOST_PROBLEMS - 1].line, message=message)
        problems = [*problems[:MOST_PROBLEMS], end]
    if problems:
        raise input_error(problems, path)
    return parts


def _open(path: str | os.PathLike[str]) -> TextIO:
    # Bytes that are not UTF-8 become lone surrogates, to be reported with their line.
    encoding, errors = "utf-8-sig", "surrogateescape"
    if isinstance(path, Upload):
        return io.TextIOWrapper(io.BytesIO(path.content), encoding=encoding, errors=errors)
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "no path has a null character")
    return Path(path).open(encoding=encoding, errors=errors)


def _failure(error: OSError, path: str | os.PathLike[str]) -> str:
    if isinstance(error, FileNotFoundError):
        return f"no such file: check the path {path}."
    if isinstance(error, IsADirectoryError):
        return f"is a folder: give the path of a CSV file, not {path}."
    if isinstance(error, PermissionError):
        return f"must be readable, but its permissions forbid it: change those of {path}."
    return f"cannot be read ({error.strerror}): check the path {path}."


def _header(
    text: TextIO, kind: str, kinds: dict[str, Kind]
) -> tuple[list[str], int, list[InputProblem]]:
    """Find the first line that is not blank: the columns it names, its number, its problems."""
    number = 0
    while line := text.readline(_LONGEST_LINE + 1):
        number += 1
        names = _fields(line.removesuffix("\n"))
        if isinstance(names, str):
            return [], number, [InputProblem(line=number, message=names)]
        if any(names):
            problems = [replace(p, line=number) for p in _header_problems(line, names, kind, kinds)]
            return names, number, problems
    message = (
        f"must not be empty: write a header, {','.join(kinds[kind].required)}, and rows below it."
    )
    return [], number, [InputProblem(message=message)]


def _header_problems(
    line: str, names: list[str], kind: str, kinds: dict[str, Kind]
) -> Iterator[InputProblem]:
    for mark, marks in ((";", "semicolons"), ("\t", "tabs")):
        if line.count(mark) > line.count(","):
            message = f"commas must separate the columns, but got {marks}. Save as comma-separated."
            yield InputProblem(message=message)
            return
    required, optional = kinds[kind]
    known = required + optional
    unknown = [name for name in dict.fromkeys(names) if name not in known][:MOST_PROBLEMS]
    if missing := [name for name in required if name not in names]:
        found = ", ".join(map(reprlib.repr, names[:20])) + ", ..." * (len(names) > 20)
        message = f"must name every column of a {kind} file. "
        message += f"Missing: {', '.join(missing)}. Found: {found}."
        for other, columns in kinds.items():
            if set(columns.required) <= set(names):
                yield InputProblem(message=f"{message} This looks like a {other} file.")
                return
        yield InputProblem(message=message)
    absent = [name for name in known if name not in names]
    for name in unknown:
        close = difflib.get_close_matches(name.lower(), absent, 1)
        if not close and len(absent) == len(known):
            continue  # no header at all, as the missing columns say
        remedy = f"Did you mean {close[0]}?" if close else f"Remove it; known: {', '.join(known)}."
        message = f"is not a column of a {kind} file. {remedy}"
        yield InputProblem(column=reprlib.repr(name)[1:-1] or "(no name)", message=message)
    for name in known:
        if (times := names.count(name)) > 1:
            message = f"must stand once in the header, but got it {times} times. Remove one."
            yield InputProblem(column=name, message=message)


def _blocks(text: TextIO) -> Iterator[str]:
    """Cut the text into blocks of whole lines; end at a line too long to belong to a table."""
    while block := text.read(_BLOCK):
        rest = text.readline(_LONGEST_LINE + 1)
        yield block + rest
        if len(rest) > _LONGEST_LINE and not rest.endswith("\n"):
            return


def not_text(text: str) -> str:
    """Why this is not text; empty if it is."""
    try:
        text.encode()
        if "\0" not in text:
            return ""
        byte = 0
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) & 0xFF
    return f"is not UTF-8 text (byte 0x{byte:02x}): save as 'CSV UTF-8', not UTF-16 or Latin-1."


def _fields(line: str) -> list[str] | str:
    """Split a line into its cells, or say why that is impossible."""
    if len(line) > _LONGEST_LINE:
        return f"must have at most {_LONGEST_LINE:,} characters: this is not a row of a table."
    if fault := not_text(line):
        return fault
    # One line at a time, so that a quote left open cannot swallow the rows below it. The line's end
    # gets into a cell only if a quote is open there.
    cells = next(csv.reader([line + "\n"], skipinitialspace=True), [])
    if cells and "\n" in cells[-1]:
        return 'a quote (") must be closed on its own line. Close or remove it.'
    return [cell.strip() for cell in cells]


def _split(
    lines: list[str], first_line: int, names: list[str]
) -> tuple[Cells, list[int], list[InputProblem]]:
    """Split lines into columns: the cells, the line of each row, and the lines that do not fit."""
    rows: list[list[str]] = []
    at: list[int] = []
    problems: list[InputProblem] = []
    for number, line in enumerate(lines, first_line):
        fields = _fields(line)
        if isinstance(fields, str):
            problems.append(InputProblem(line=number, message=fields))
        elif len(fields) == len(names) and any(fields):
            rows.append(fields)
            at.append(number)
        elif any(fields):
            many = len(fields) > len(names)
            remedy = "Write decimals with a point." if many else "Fill in the rest."
            message = f"has {len(fields)} fields, but the header has {len(names)}. {remedy}"
            problems.append(InputProblem(line=number, message=message))
        if len(problems) >= MOST_PROBLEMS:
            break
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False)), at, problems


def number(cell: str) -> float:
    """Read a decimal number; NaN if there is none."""
    try:
        # Python alone takes 1_000 and the digits of every script; no other reader of CSV does.
        return float(cell) if cell.isascii() and "_" not in cell else math.nan
    except ValueError:
        return math.nan


def shielded(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula; `unshielded` reverses it.

    >>> shielded("=cmd()"), shielded("'=cmd()"), shielded("phone 3"), unshielded("'=cmd()")
    ("'=cmd()", "''=cmd()", 'phone 3', '=cmd()')
    """
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def unshielded(cell: str) -> str:
    """The text that was shielded."""
    is_shielded = cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA)
    return cell[1:] if is_shielded else cell


def comma_remedy(cell: str) -> str:
    """The advice for a cell that would be a number without its comma.

    >>> comma_remedy("0,15"), comma_remedy("a,b")
    (' Write decimals with a point, and thousands without a comma.', '')
    """
    if "," in cell and math.isfinite(number(cell.replace(",", ""))):
        return " Write decimals with a point, and thousands without a comma."
    return ""
