"""Salvage: copy whatever is readable in a damaged store, row by row, into a new one."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from fedplan.atomic import check_target, draft_of
from fedplan.errors import FedplanError, InputError, InputProblem
from fedplan.store.database import UNREADABLE, Database, path_of, whole
from fedplan.store.entries import Entry, fingerprint_of, read_key
from fedplan.store.rows import insert, read_run
from fedplan.store.store import EXPERIMENTS, STUDIES, experiment_entry, run_entry, study_entry

SUFFIXES = (".db",)
_BROKEN = (*UNREADABLE, FedplanError, sqlite3.Error)
_OF_RUNS = ("rounds", "observations", "cohorts")
_SHOWN = ("runs", "studies", "experiments")
_PARENTS = {
    "runs": {"experiment": "experiments", "setting": "settings"},
    "studies": {"experiment": "experiments"},
    "steps": {"study": "studies"},
}

Saved = dict[str, tuple[int, int]]  # by table, how many rows were readable, and of how many


def salvage(url: str, output: str) -> Saved:
    """Copy what is readable into a new store; a run is copied whole or not at all."""
    check_target(output, SUFFIXES)
    if Path(output).exists():
        message = "exists already. Give the path of a new file."
        raise InputError(InputProblem(source=output, message=message))
    with draft_of(output, SUFFIXES) as draft:
        saved = _copy(path_of(url), draft)
        if not any(readable for readable, _ in saved.values()):
            raise FedplanError(f"store {path_of(url)}: nothing in it can be read.")
    return saved


def in_words(saved: Saved) -> str:
    """How much of a store can be read.

    >>> in_words({"runs": (3, 4), "studies": (1, 1)})
    '3 of 4 runs, 1 of 1 studies'
    """
    return ", ".join(
        f"{saved[name][0]:,} of {saved[name][1]:,} {name}" for name in _SHOWN if name in saved
    )


def survey(path: Path) -> str:
    """What is still readable, as a sentence."""
    try:
        return f"Still readable: {in_words(_copy(path, None))}."
    except _BROKEN:
        return "Nothing in it can be read."


def _copy(path: Path, target: Path | None) -> Saved:
    """Copy every sound row, where there is a target, and say how much of each table is sound."""
    with ExitStack() as stack:

        def opened(file: Path, *, readonly: bool) -> sqlite3.Connection:
            database = Database(f"sqlite:///{file}", readonly=readonly)
            return stack.enter_context(closing(database)).bare

        source = opened(path, readonly=True)
        copy = opened(target, readonly=False) if target else None
        sound: dict[str, set[int]] = {}
        saved: Saved = {}
        for table in _CHECKS:  # parents before those that refer to them
            ids = _ids(source, table)
            sound[table] = set()
            for id_ in ids:
                with suppress(*_BROKEN):
                    rows = _sound_rows(source, table, id_, sound)
                    if copy is not None:
                        with whole(copy, "BEGIN"):
                            for name, parts in rows.items():
                                insert(copy, name, parts)
                    sound[table].add(id_)
            saved[table] = len(sound[table]), len(ids)
        return saved


def _ids(source: sqlite3.Connection, table: str) -> list[int]:
    """The rows of a table, from both ends as far as they can be reached."""
    found: set[int] = set()
    for order in ("ASC", "DESC"):
        with suppress(*_BROKEN):
            query = f"SELECT id FROM {table} ORDER BY id {order}"  # noqa: S608
            for row in source.execute(query):
                found.add(int(row["id"]))
            break
    return sorted(found)


def _sound_rows(
    source: sqlite3.Connection, table: str, id_: int, sound: dict[str, set[int]]
) -> dict[str, list[dict[str, Any]]]:
    """A row and, for a run, everything that belongs to it; raises if any of it is damaged."""
    row = _one(source, f"SELECT * FROM {table} WHERE id", id_)  # noqa: S608
    for column, parents in _PARENTS.get(table, {}).items():
        if row[column] not in sound[parents]:
            raise LookupError(f"its {column} is lost")
    _CHECKS[table](source, row)
    rows = {table: [dict(row)]}
    if table == "runs":
        for name in _OF_RUNS:
            query = f"SELECT * FROM {name} WHERE run = ?"  # noqa: S608
            rows[name] = [dict(one) for one in source.execute(query, (id_,))]
    return rows


def _one(source: sqlite3.Connection, query: str, id_: int) -> sqlite3.Row:
    row: sqlite3.Row = source.execute(f"{query} = ?", (id_,)).fetchone()
    return row


def _check_run(source: sqlite3.Connection, row: sqlite3.Row) -> None:
    query = "SELECT runs.*, value FROM runs JOIN settings ON settings.id = setting WHERE runs.id"
    joined = _one(source, query, row["id"])
    run_entry(joined)
    run = read_run(source, joined)
    numbers = [run.seed, *(record.round for record in run.rounds)]
    if not all(isinstance(number, int) for number in numbers):
        raise TypeError("seeds and rounds are whole numbers")
    if row["num_rounds"] != (run.rounds[-1].round if run.rounds else 0):
        raise ValueError("rounds are missing")


def _check_experiment(source: sqlite3.Connection, row: sqlite3.Row) -> None:
    entry = experiment_entry(_one(source, f"{EXPERIMENTS} WHERE experiments.id", row["id"]))
    _check_fingerprint(entry, entry.settings)


def _check_study(source: sqlite3.Connection, row: sqlite3.Row) -> None:
    entry = study_entry(_one(source, f"{STUDIES} WHERE studies.id", row["id"]))
    known = {"name": entry.name, "configuration": entry.configuration}
    _check_fingerprint(entry, {**known, "experiment": entry.settings})


def _check_fingerprint(entry: Entry, value: dict[str, Any]) -> None:
    if fingerprint_of(value) != entry.fingerprint:
        raise ValueError("it is not what was stored")


_CHECKS: dict[str, Callable[[sqlite3.Connection, sqlite3.Row], object]] = {
    "experiments": _check_experiment,
    "settings": lambda _, row: read_key(row["value"]),
    "runs": _check_run,
    "studies": _check_study,
    "steps": lambda _, row: json.loads(row["value"]),
}
