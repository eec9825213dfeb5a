"""Mutants: small changes to the mathematics, each of which the fast tests should notice.

    python reproduction/mutants.py
    python reproduction/mutants.py --count 10 --seed 2

Draws changes of one operator, comparison or number at random from participation/, convergence/,
planning/ and course/, makes each in a copy of the repository, and runs the tests of that package
until one fails. One row for each is added to reproduction/results/mutants.csv; the same command
goes on where it stopped. A survivor is a change that no test noticed: its `why` is for people.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "reproduction" / "results" / "mutants.csv"
TESTS = {
    "participation": ("tests/participation", "tests/paper/test_lemmas.py"),
    "convergence": ("tests/convergence", "tests/paper"),
    "planning": ("tests/paper", "tests/planning"),
    "course": ("tests/course",),
}
SWAPPED: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "/",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.And: "or", ast.Or: "and",
}  # fmt: skip
LONGEST_S = 900.0  # a mutant may make a loop endless


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A line of a file, as it is and as it is made."""

    file: str
    line: int
    was: str
    becomes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A mutant, and what noticed it."""

    file: str
    line: int
    was: str
    becomes: str
    outcome: str
    why: str = ""


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change of one operator, comparison or number of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    name = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(text)):
        for at, end, new in _changes(node):
            if at[0] == end[0] and not lines[at[0] - 1].lstrip().startswith((">>>", "...", "#")):
                line = lines[at[0] - 1].encode()
                changed = line[: at[1]] + new(line[at[1] : end[1]].decode()).encode()
                becomes = (changed + line[end[1] :]).decode()
                if becomes != line.decode():
                    yield Mutant(file=name, line=at[0], was=line.decode(), becomes=becomes)


def _changes(node: ast.AST) -> Iterator[tuple[Any, Any, Any]]:
    """Where a change begins and ends, and what becomes of the text between."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        yield _between(node.left, node.right, node.op)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        yield _between(node.left, node.comparators[0], node.ops[0])
    elif isinstance(node, ast.BoolOp):
        yield _between(node.values[0], node.values[1], node.op)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: Any = node.value
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        yield start, end, lambda _: repr(value * 2 if value else 1)


def _between(left: ast.expr, right: ast.expr, operator: ast.AST) -> tuple[Any, Any, Any]:
    symbols = {"+", "-", "*", "/", "**", "//", "<", "<=", ">", ">=", "==", "!=", "and", "or"}

    def swap(text: str) -> str:
        found = [symbol for symbol in sorted(symbols, key=len, reverse=True) if symbol in text]
        return text.replace(found[0], SWAPPED[type(operator)], 1) if found else text

    start, end = (left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset)
    return start, end, swap


def try_mutant(mutant: Mutant, copy: Path) -> str:
    """`killed by` the first test that fails, or `survived`."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.becomes + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow",
    ]  # fmt: skip
    own = os.environ | {"PYTHONPATH": f"{copy / 'src'}:{copy / 'reproduction'}"}
    try:
        run = subprocess.run(
            [*command, mutant.file, *_likeliest_first(copy, mutant.file)],
            cwd=copy, env=own, capture_output=True, text=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"killed by the time of {LONGEST_S:g} s"
    finally:
        path.write_text(text, encoding="utf-8")
    if run.returncode == 0:
        return "survived"
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"killed by {failed[0].split()[1]}" if failed else "killed before any test"


def _likeliest_first(copy: Path, file: str) -> list[str]:
    """Files of tests: those of the module's own name, then the others of its package."""
    _, _, package, module = Path(file).parts
    found: list[Path] = []
    for place in TESTS[package]:
        path = copy / place
        found += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    found.sort(key=lambda path: path.name != f"test_{module}")
    return [path.relative_to(copy).as_posix() for path in found]


def main() -> None:
    """Try what is missing, and print how many were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="mutants (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    options = parser.parse_args()
    every = [
        mutant
        for package in TESTS
        for path in sorted((ROOT / "src" / "fedplan" / package).glob("*.py"))
        for mutant in mutants_of(path)
    ]
    drawn = np.random.default_rng(options.seed).choice(len(every), options.count, replace=False)
    chosen = [every[place] for place in drawn]
    done = _read()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "fedplan"
        left_out = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=left_out)
        for mutant in chosen:
            if mutant not in done:
                done[mutant] = Tried(**_fields(mutant), outcome=try_mutant(mutant, copy))
                _write(list(done.values()))
                print(mutant.file, mutant.line, done[mutant].outcome, flush=True)
    killed = sum(done[mutant].outcome != "survived" for mutant in chosen)
    print(f"{killed} of {len(chosen)} mutants killed, of {len(every):,} that there are")


def _fields(mutant: Mutant) -> dict[str, Any]:
    return {field.name: getattr(mutant, field.name) for field in fields(Mutant)}


def _read() -> dict[Mutant, Tried]:
    if not RESULTS.exists():
        return {}
    with RESULTS.open(encoding="utf-8", newline="") as file:
        texts: list[dict[str, Any]] = list(csv.DictReader(file))
    rows = [Tried(**{**row, "line": int(row["line"])}) for row in texts]
    return {Mutant(file=r.file, line=r.line, was=r.was, becomes=r.becomes): r for r in rows}


def _write(tried: list[Tried]) -> None:
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Tried))
        writer.writerows(astuple(one) for one in tried)


if __name__ == "__main__":
    main()
