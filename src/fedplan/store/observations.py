"""Observations: how what real clients did is written to a table and read again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fedplan.core.records import Observation, RoundRecord
from fedplan.store.packing import pack_number, unpack_number


def insert_observations(
    connection: sqlite3.Connection, run: int | None, records: Sequence[RoundRecord]
) -> None:
    """Write what was observed in these rounds of a run."""
    connection.executemany(
        "INSERT INTO observations (run, round, place, client, local_steps, problem, train_seconds, "
        "round_trip_seconds, joules, examples) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (run, int(record.round), place, *_values(one))
            for record in records
            for place, one in enumerate(record.observations)
        ),
    )


def _values(one: Observation) -> tuple[Any, ...]:
    measured = (one.train_seconds, one.round_trip_seconds, one.joules, one.examples)
    return int(one.client), int(one.local_steps), one.problem, *map(pack_number, measured)


def read_observations(
    connection: sqlite3.Connection, run: int
) -> dict[int, tuple[Observation, ...]]:
    """What was observed in each round of a run; nothing of rounds without."""
    rows = connection.execute(
        "SELECT round, client, local_steps, problem, train_seconds, round_trip_seconds, joules, "
        "examples FROM observations WHERE run = ? ORDER BY round, place",
        (run,),
    )
    return {
        round_: tuple(_observation(*row[1:]) for row in group)
        for round_, group in groupby(rows, key=lambda row: row[0])
    }


def _observation(client: int, local_steps: int, problem: str, *measured: Any) -> Observation:
    train_seconds, round_trip_seconds, joules, examples = map(unpack_number, measured)
    return Observation(
        client=client,
        local_steps=local_steps,
        problem=problem,
        train_seconds=train_seconds,
        round_trip_seconds=round_trip_seconds,
        joules=joules,
        examples=examples,
    )
