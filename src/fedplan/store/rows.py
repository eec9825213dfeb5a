"""Rows: how runs, with their rounds and observations, are written to tables and read again."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from fedplan.records import Observation, RoundRecord, RunRecord
from fedplan.store.entries import (
    ExperimentEntry,
    RunEntry,
    StudyEntry,
    Versions,
    current_versions,
)
from fedplan.store.packing import pack_cohorts, pack_number, unpack_cohorts, unpack_number


def now() -> str:
    """The moment, as tables have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def insert_run(
    connection: sqlite3.Connection, key: tuple[int, ...], run: RunRecord, cohorts: bytes
) -> int | None:
    """Write a run with all its rounds; its id."""
    ended = (run.status, run.message, run.num_rounds, *_totals(run))
    id_ = connection.execute(
        "INSERT INTO runs (experiment, clients_per_round, local_steps, seed, status, message, "
        "num_rounds, final_loss, time_s, energy_j, created, fedplan, python, numpy, numba) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, *ended, now(), *astuple(current_versions())),
    ).lastrowid
    _insert_rounds(connection, id_, run.rounds)
    connection.execute("INSERT INTO cohorts (run, members) VALUES (?, ?)", (id_, cohorts))
    return id_


def append_round(connection: sqlite3.Connection, key: tuple[int, ...], record: RoundRecord) -> None:
    """Make a round the last of a run, which is unfinished then; the run begins where it has not.

    It takes as long whatever the number of rounds before, but for two sums.
    """
    row = connection.execute(
        "SELECT id FROM runs "
        "WHERE (experiment, clients_per_round, local_steps, seed) = (?, ?, ?, ?)",
        key,
    ).fetchone()
    id_ = row[0] if row else insert_run(connection, key, _unfinished(key), pack_cohorts([]))
    for table in ("rounds", "observations"):
        connection.execute(
            f"DELETE FROM {table} WHERE run = ? AND round >= ?",  # noqa: S608
            (id_, int(record.round)),
        )
    _insert_rounds(connection, id_, [record], pack_cohorts([record.cohort]))
    spent = connection.execute("SELECT seconds, joules FROM rounds WHERE run = ?", (id_,))
    time_s, energy_j = (math.fsum(map(float, column)) for column in zip(*spent, strict=True))
    connection.execute(
        "UPDATE runs SET status = 'unfinished', message = '', num_rounds = ?, time_s = ?, "
        "energy_j = ?, final_loss = (SELECT loss FROM rounds WHERE run = runs.id "
        "AND loss IS NOT NULL ORDER BY round DESC LIMIT 1) WHERE id = ?",
        (int(record.round), *map(pack_number, (time_s, energy_j)), id_),
    )


def _unfinished(key: tuple[int, ...]) -> RunRecord:
    _, clients_per_round, local_steps, seed = key
    return RunRecord(
        clients_per_round=clients_per_round,
        local_steps=local_steps,
        seed=seed,
        status="unfinished",
        rounds=(),
    )


def _totals(run: RunRecord) -> Iterator[float | str | None]:
    return map(pack_number, (run.final_loss, run.time_s, run.energy_j))


def _insert_rounds(
    connection: sqlite3.Connection,
    id_: int | None,
    records: Sequence[RoundRecord],
    cohort: bytes | None = None,
) -> None:
    """Write rounds; `cohort` is that of a round that is saved by itself."""
    connection.executemany(
        "INSERT INTO rounds (run, round, loss, accuracy, seconds, joules, cohort) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (id_, int(record.round), *map(pack_number, _measured(record)), cohort)
            for record in records
        ),
    )
    connection.executemany(
        "INSERT INTO observations (run, round, place, client, local_steps, train_seconds, "
        "round_trip_seconds, joules, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (id_, int(record.round), place, *_observed(one))
            for record in records
            for place, one in enumerate(record.observations)
        ),
    )


def _measured(record: RoundRecord) -> tuple[float | None, ...]:
    return record.loss, record.accuracy, record.seconds, record.joules


def _observed(one: Observation) -> tuple[Any, ...]:
    measured = map(pack_number, (one.train_seconds, one.round_trip_seconds, one.joules))
    return int(one.client), int(one.local_steps), *measured, one.problem


def read_run(connection: sqlite3.Connection, row: tuple[Any, ...]) -> RunRecord:
    """A run with all its rounds, from its id, setting, status and message."""
    id_, clients_per_round, local_steps, seed, status, message = row
    (blob,) = connection.execute("SELECT members FROM cohorts WHERE run = ?", (id_,)).fetchone()
    rounds = connection.execute(
        "SELECT round, loss, accuracy, seconds, joules, cohort FROM rounds WHERE run = ? "
        "ORDER BY round",
        (id_,),
    )
    return RunRecord(
        clients_per_round=clients_per_round,
        local_steps=local_steps,
        seed=seed,
        status=status,
        rounds=tuple(_round_records(rounds, unpack_cohorts(blob), _observations(connection, id_))),
        message=message,
    )


def _observations(connection: sqlite3.Connection, id_: int) -> dict[int, tuple[Observation, ...]]:
    """What was observed in each round of a run; nothing of rounds without."""
    rows = connection.execute(
        "SELECT round, client, local_steps, train_seconds, round_trip_seconds, joules, problem "
        "FROM observations WHERE run = ? ORDER BY round, place",
        (id_,),
    )
    return {
        round_: tuple(
            Observation(
                client=client,
                local_steps=local_steps,
                train_seconds=unpack_number(train_seconds),
                round_trip_seconds=unpack_number(round_trip_seconds),
                joules=unpack_number(joules),
                problem=problem,
            )
            for _, client, local_steps, train_seconds, round_trip_seconds, joules, problem in group
        )
        for round_, group in groupby(rows, key=lambda row: row[0])
    }


def _round_records(
    rows: sqlite3.Cursor,
    cohorts: list[tuple[int, ...]],
    observations: dict[int, tuple[Observation, ...]],
) -> Iterator[RoundRecord]:
    # Rounds that were saved by themselves come after those that the run was saved with.
    for place, (round_, loss, accuracy, seconds, joules, own) in enumerate(rows):
        yield RoundRecord(
            round=round_,
            loss=unpack_number(loss),
            accuracy=unpack_number(accuracy),
            cohort=cohorts[place] if own is None else unpack_cohorts(own)[0],
            seconds=float(seconds),
            joules=float(joules),
            observations=observations.get(round_, ()),
        )


def run_entry(row: tuple[Any, ...]) -> RunEntry:
    """A run without its rounds."""
    return RunEntry(
        clients_per_round=row[0],
        local_steps=row[1],
        seed=row[2],
        status=row[3],
        num_rounds=row[4],
        final_loss=unpack_number(row[5]),
        time_s=float(row[6]),
        energy_j=float(row[7]),
        created=row[8],
        versions=_versions(row[9:]),
    )


def experiment_entry(row: tuple[Any, ...]) -> ExperimentEntry:
    """An experiment: fingerprint, settings, when, and how many runs."""
    fingerprint, settings, created, num_runs = row
    return ExperimentEntry(
        fingerprint=fingerprint, settings=json.loads(settings), num_runs=num_runs, created=created
    )


def study_entry(row: tuple[Any, ...]) -> StudyEntry:
    """A study: itself, the versions that made it, and its experiment."""
    name, fingerprint, configuration, created = row[:4]
    return StudyEntry(
        name=name,
        fingerprint=fingerprint,
        configuration=json.loads(configuration),
        experiment=experiment_entry(row[8:]),
        created=created,
        versions=_versions(row[4:8]),
    )


def _versions(row: tuple[Any, ...]) -> Versions:
    fedplan, python, numpy, numba = row
    return Versions(fedplan=fedplan, python=python, numpy=numpy, numba=numba)
