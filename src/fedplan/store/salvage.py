"""Salvage: copy whatever is readable in a damaged store, row by row, into a new one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedplan.atomic import check_target, draft_of
from fedplan.errors import FedplanError, InputError, InputProblem
from fedplan.store.database import UNREADABLE, Database, path_of, whole
from fedplan.store.entries import fingerprint_of, read_key
from fedplan.store.rows import insert, read_run
from fedplan.store.store import EXPERIMENTS, STUDIES, experiment_entry, run_entry, study_entry

SUFFIXES = (".db",)
_BROKEN = (*UNREADABLE, sqlite3.Error)
_OF_RUNS = ("rounds", "observations", "cohorts")
_SHOWN = ("runs", "studies", "experiments")

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
    except (FedplanError, *_BROKEN):
        return "Nothing in it can be read."


def _copy(path: Path, target: Path | None) -> Saved:
    """Copy every sound row; into memory where there is no target."""
    source = Database(f"sqlite:///{path}", readonly=True)
    copy = Database(f"sqlite:///{target}", readonly=False) if target else None
    try:
        rescue = _Rescue(source.bare, copy.bare if copy else None)
        return rescue.everything()
    finally:
        source.close()
        if copy:
            copy.close()


class _Rescue:
    """One pass over all tables: parents before those that refer to them."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection | None) -> None:
        self._source, self._target = source, target
        self._sound: dict[str, set[int]] = {}

    def everything(self) -> Saved:
        """Copy what is sound, and say how much of each table that is."""
        return {
            "experiments": self._table("experiments", self._experiment),
            "settings": self._table("settings", lambda row: read_key(row["value"])),
            "runs": self._table("runs", self._run),
            "studies": self._table("studies", self._study),
            "steps": self._table("steps", self._step),
        }

    def _table(self, table: str, check: Callable[[sqlite3.Row], Any]) -> tuple[int, int]:
        sound: set[int] = set()
        ids = self._ids(table)
        for id_ in ids:
            try:
                row = self._one(f"SELECT * FROM {table} WHERE id", id_)  # noqa: S608
                check(row)
                parts = {table: [dict(row)]}
                if table == "runs":
                    for name in _OF_RUNS:
                        query = f"SELECT * FROM {name} WHERE run = ?"  # noqa: S608
                        parts[name] = [dict(one) for one in self._source.execute(query, (id_,))]
                self._write(parts)
            except _BROKEN:
                continue
            sound.add(id_)
        self._sound[table] = sound
        return len(sound), len(ids)

    def _write(self, parts: dict[str, list[dict[str, Any]]]) -> None:
        if self._target is not None:
            with whole(self._target, "BEGIN"):
                for name, rows in parts.items():
                    insert(self._target, name, rows)

    def _ids(self, table: str) -> list[int]:
        """The rows of a table, from both ends as far as they can be reached."""
        found: set[int] = set()
        for order in ("ASC", "DESC"):
            try:
                query = f"SELECT id FROM {table} ORDER BY id {order}"  # noqa: S608
                for row in self._source.execute(query):
                    found.add(int(row["id"]))
            except _BROKEN:
                continue
            break
        return sorted(found)

    def _one(self, query: str, id_: int) -> sqlite3.Row:
        row: sqlite3.Row = self._source.execute(f"{query} = ?", (id_,)).fetchone()
        return row

    def _run(self, row: sqlite3.Row) -> None:
        self._refers(row, "experiment", "experiments")
        self._refers(row, "setting", "settings")
        joined = self._one(
            "SELECT runs.*, value FROM runs JOIN settings ON settings.id = setting WHERE runs.id",
            row["id"],
        )
        run_entry(joined)
        run = read_run(self._source, joined)
        numbers = [run.seed, *(record.round for record in run.rounds)]
        if not all(isinstance(number, int) for number in numbers):
            raise TypeError("seeds and rounds are whole numbers")
        if row["num_rounds"] != (run.rounds[-1].round if run.rounds else 0):
            raise ValueError("rounds are missing")

    def _experiment(self, row: sqlite3.Row) -> None:
        entry = experiment_entry(self._one(f"{EXPERIMENTS} WHERE experiments.id", row["id"]))
        if fingerprint_of(entry.settings) != entry.fingerprint:
            raise ValueError("it is not what was stored")

    def _study(self, row: sqlite3.Row) -> None:
        self._refers(row, "experiment", "experiments")
        entry = study_entry(self._one(f"{STUDIES} WHERE studies.id", row["id"]))
        known = {"name": entry.name, "configuration": entry.configuration}
        if fingerprint_of({**known, "experiment": entry.settings}) != entry.fingerprint:
            raise ValueError("it is not what was stored")

    def _step(self, row: sqlite3.Row) -> None:
        self._refers(row, "study", "studies")
        json.loads(row["value"])

    def _refers(self, row: sqlite3.Row, column: str, table: str) -> None:
        if row[column] not in self._sound[table]:
            raise LookupError(f"its {column} is lost")
