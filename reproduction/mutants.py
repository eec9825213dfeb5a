"""Mutants: small changes to the mathematics, each of which the fast tests should notice.

    python reproduction/mutants.py                      # until 60 that change something are tried
    python reproduction/mutants.py --count 70 --seed 2
    python reproduction/mutants.py --again              # all rows of the table once more

Draws changes of one operator, comparison or number at random from participation/, convergence/,
planning/ and course/, makes each in a copy of the repository, and runs the tests of that package
until one fails. One row for each is added to reproduction/results/mutants.csv; the same command
goes on where it stopped. A survivor is a change that no test noticed. Its `why` is written by hand;
one that begins with "equivalent" says that nothing visible changes, and does not count.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
LONGEST_S = 600  # of processor time: a mutant may make a loop endless
KILLED, SURVIVED, EQUIVALENT = "killed by", "survived", "equivalent"
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A line of a file, as it is and as it is made."""

    file: str
    line: int
    was: str
    becomes: str

    @property
    def key(self) -> Key:
        """What stays when lines above it come and go."""
        return self.file, self.was, self.becomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Mutant):
    """A mutant, what noticed it, and the commit whose code and line it was."""

    outcome: str
    why: str = ""
    commit: str


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


def try_mutant(mutant: Mutant, copy: Path, first: str = "") -> str:
    """`killed by` a test that fails, `survived`, or `timed out`; `first` is tried before all."""
    path = copy / mutant.file
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.becomes + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    try:
        outcome = _run_tests(copy, [first]) if first else SURVIVED
        if not outcome.startswith(KILLED):
            outcome = _run_tests(copy, [mutant.file, *_likeliest_first(copy, mutant.file)])
    finally:
        path.write_text(text, encoding="utf-8")
    return outcome


def _run_tests(copy: Path, asked: Sequence[str]) -> str:
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow",
    ]  # fmt: skip
    own = os.environ | {"PYTHONPATH": f"{copy / 'src'}:{copy / 'reproduction'}"}
    run = subprocess.run(
        [*command, *asked], cwd=copy, env=own, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S)),
    )  # fmt: skip
    if run.returncode < 0:
        return f"timed out after {LONGEST_S} s of processor time"
    if run.returncode == pytest.ExitCode.OK:
        return SURVIVED
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if failed:
        return f"{KILLED} {failed[0].split(maxsplit=1)[1].split(' - ')[0]}"
    if run.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        return "no tests were found"  # of a name that a test once had
    return f"{KILLED} the import, before any test"


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
    parser.add_argument("--count", type=int, default=60, help="that count (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the order (default: 1)")
    parser.add_argument("--again", action="store_true", help="the rows of the table once more")
    options = parser.parse_args()
    every = [
        mutant
        for package in TESTS
        for path in sorted((ROOT / "src" / "fedplan" / package).glob("*.py"))
        for mutant in mutants_of(path)
    ]
    done = {row.key: row for row in _read()}
    here = {mutant.key: mutant for mutant in every}
    order = np.random.default_rng(options.seed).permutation(len(every))
    waiting = (
        [here[key] for key in done if key in here]
        if options.again
        else [every[place] for place in order]
    )
    commit = subprocess.check_output(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True
    ).strip()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "fedplan"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        for mutant in waiting:
            before = done.get(mutant.key)
            if not options.again and (before or len(_counted(done.values())) >= options.count):
                continue
            first = ""
            if before and before.outcome.startswith(KILLED) and "::" in before.outcome:
                first = before.outcome.removeprefix(KILLED).strip()
            done[mutant.key] = Tried(
                **asdict(mutant),
                outcome=try_mutant(mutant, copy, first),
                why=before.why if before else "",
                commit=commit,
            )
            _write(done.values())
            print(mutant.file, mutant.line, done[mutant.key].outcome, flush=True)
    counted = _counted(done.values())
    killed = sum(row.outcome.startswith(KILLED) for row in counted)
    print(f"{killed} of {len(counted)} mutants killed, {len(done) - len(counted)} equivalent")


def _counted(rows: Iterable[Tried]) -> list[Tried]:
    """Those that change something."""
    return [row for row in rows if not row.why.startswith(EQUIVALENT)]


def _read() -> list[Tried]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(encoding="utf-8", newline="") as file:
        texts: list[dict[str, Any]] = list(csv.DictReader(file))
    return [Tried(**{**row, "line": int(row["line"])}) for row in texts]


def _write(tried: Iterable[Tried]) -> None:
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Tried))
        writer.writerows(astuple(one) for one in tried)


if __name__ == "__main__":
    main()
