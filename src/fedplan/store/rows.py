"""Rows: how runs, with their rounds and observations, are written to tables and read again."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from typing import Any

from fedplan.core.course import Decision, Identified
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.core.setting import Setting
from fedplan.store.entries import (
    ExperimentEntry,
    RunEntry,
    StudyEntry,
    Versions,
    canonical_json,
    current_versions,
)
from fedplan.store.observations import insert_observations, read_observations
from fedplan.store.packing import (
    pack_cohorts,
    pack_number,
    pack_shares,
    pack_signal,
    unpack_cohorts,
    unpack_number,
    unpack_shares,
    unpack_signal,
)


def now() -> str:
    """The moment, as tables have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


RunKey = tuple[int, int, int]  # ids of experiment and setting, and the seed


def key_text(one: Identified) -> str:
    """The setting that a training begins with, and its course where it has one, as JSON."""
    course = {"course": one.identity} if one.identity else {}
    return canonical_json({**one.setting.to_dict(), **course})


def save_setting(connection: sqlite3.Connection, one: Identified) -> int:
    """The id of a setting, or of a course that begins with it; each is kept once."""
    text = key_text(one)
    connection.execute(
        "INSERT INTO settings (value) VALUES (?) ON CONFLICT (value) DO NOTHING", (text,)
    )
    (id_,) = connection.execute("SELECT id FROM settings WHERE value = ?", (text,)).fetchone()
    return int(id_)


def pack_records(records: Sequence[RoundRecord]) -> tuple[bytes, bytes]:
    """Cohorts and shares of these rounds."""
    cohorts = [record.cohort for record in records]
    shares = [record.shares for record in records]
    return pack_cohorts(cohorts), pack_shares(shares, list(map(len, cohorts)))


def insert_run(
    connection: sqlite3.Connection, key: RunKey, run: RunRecord, packed: tuple[bytes, bytes]
) -> int | None:
    """Write a run with all its rounds, cohorts and shares packed already; its id."""
    ended = (run.status, run.message, run.num_rounds, *_totals(run))
    id_ = connection.execute(
        "INSERT INTO runs (experiment, setting, seed, clients_per_round, local_steps, status, "
        "message, num_rounds, final_loss, time_s, energy_j, created, fedplan, python, numpy, "
        "numba, decisions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *key,
            run.clients_per_round,
            int(run.local_steps),
            *ended,
            now(),
            *astuple(current_versions()),
            canonical_json([asdict(decision) for decision in run.decisions]),
        ),
    ).lastrowid
    _insert_rounds(connection, id_, run.setting, run.rounds)
    connection.execute(
        "INSERT INTO cohorts (run, members, shares) VALUES (?, ?, ?)", (id_, *packed)
    )
    return id_


def append_round(
    connection: sqlite3.Connection, key: RunKey, one: Identified, record: RoundRecord
) -> None:
    """Make a round the last of a run, which is unfinished then; the run begins where it has not.

    It takes as long whatever the number of rounds before, but for two sums.
    """
    row = connection.execute(
        "SELECT id FROM runs WHERE (experiment, setting, seed) = (?, ?, ?)", key
    ).fetchone()
    if row:
        id_ = row[0]
    else:
        begun = RunRecord(
            setting=one.setting,
            seed=key[2],
            status="unfinished",
            rounds=(),
            identity=one.identity,
        )
        id_ = insert_run(connection, key, begun, pack_records([]))
    for table in ("rounds", "observations"):
        connection.execute(
            f"DELETE FROM {table} WHERE run = ? AND round >= ?",  # noqa: S608
            (id_, int(record.round)),
        )
    packed = pack_records([record])
    _insert_rounds(connection, id_, one.setting, [record], packed)
    spent = connection.execute("SELECT seconds, joules FROM rounds WHERE run = ?", (id_,))
    time_s, energy_j = (math.fsum(map(float, column)) for column in zip(*spent, strict=True))
    connection.execute(
        "UPDATE runs SET status = 'unfinished', message = '', num_rounds = ?, time_s = ?, "
        "energy_j = ?, final_loss = (SELECT loss FROM rounds WHERE run = runs.id "
        "AND loss IS NOT NULL ORDER BY round DESC LIMIT 1) WHERE id = ?",
        (int(record.round), *map(pack_number, (time_s, energy_j)), id_),
    )


def _totals(run: RunRecord) -> Iterator[float | str | None]:
    return map(pack_number, (run.final_loss, run.time_s, run.energy_j))


def _insert_rounds(
    connection: sqlite3.Connection,
    id_: int | None,
    begun: Setting,
    records: Sequence[RoundRecord],
    packed: tuple[bytes | None, bytes | None] = (None, None),
) -> None:
    """Write rounds; `packed` has the cohort and shares of a round that is saved by itself.

    A setting is written where it is not the one that the run began with, and a signal where real
    devices made the round: a simulated run is made again sooner than it is gone on with.
    """
    others: dict[int, int | None] = {}

    def other(record: RoundRecord) -> int | None:
        setting = record.setting
        if setting is None or setting is begun:
            return None
        if id(setting) not in others:
            same = setting == begun
            others[id(setting)] = None if same else save_setting(connection, setting)
        return others[id(setting)]

    connection.executemany(
        "INSERT INTO rounds (run, round, setting, loss, model_loss, accuracy, seconds, joules, "
        "cohort, shares, signal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                id_,
                int(record.round),
                other(record),
                *map(pack_number, _measured(record)),
                *packed,
                pack_signal(record.signal) if record.observations else None,
            )
            for record in records
        ],
    )
    insert_observations(connection, id_, records)


def _measured(record: RoundRecord) -> tuple[float | None, ...]:
    return record.loss, record.model_loss, record.accuracy, record.seconds, record.joules


def _read_key(text: str) -> tuple[Setting, str]:
    """The setting and the course that `key_text` wrote down."""
    from fedplan.participation import setting_from_dict  # numpy: lists need none of it

    values = json.loads(text)
    identity = values.pop("course", "")
    return setting_from_dict(values), identity


def read_run(connection: sqlite3.Connection, row: tuple[Any, ...]) -> RunRecord:
    """A run with all its rounds, from its id, setting, seed, status, message and decisions."""
    id_, text, seed, status, message, decisions = row
    setting, identity = _read_key(text)
    rounds = connection.execute(
        "SELECT round, loss, model_loss, accuracy, seconds, joules, cohort, shares, "
        "signal, value "
        "FROM rounds LEFT JOIN settings ON settings.id = rounds.setting WHERE run = ? "
        "ORDER BY round",
        (id_,),
    )
    return RunRecord(
        setting=setting,
        seed=seed,
        status=status,
        rounds=tuple(_round_records(connection, id_, setting, rounds)),
        message=message,
        identity=identity,
        decisions=tuple(map(_read_decision, json.loads(decisions))),
    )


def _read_decision(values: dict[str, Any]) -> Decision:
    interval = values.pop("interval")
    return Decision(**values, interval=None if interval is None else tuple(interval))


def _round_records(
    connection: sqlite3.Connection, id_: int, begun: Setting, rows: sqlite3.Cursor
) -> Iterator[RoundRecord]:
    members, blob = connection.execute(
        "SELECT members, shares FROM cohorts WHERE run = ?", (id_,)
    ).fetchone()
    cohorts = unpack_cohorts(members)
    shares = unpack_shares(blob, list(map(len, cohorts)))
    observations = read_observations(connection, id_)
    others: dict[str, Setting] = {}
    # Rounds that were saved by themselves come after those that the run was saved with.
    for place, (round_, *measured, own, own_shares, signal, text) in enumerate(rows):
        loss, model_loss, accuracy, seconds, joules = measured
        if own is None:
            cohort, counted = cohorts[place], shares[place]
        else:
            (cohort,) = unpack_cohorts(own)
            (counted,) = unpack_shares(own_shares, [len(cohort)])
        if text is not None and text not in others:
            others[text], _ = _read_key(text)
        yield RoundRecord(
            round=round_,
            loss=unpack_number(loss),
            model_loss=unpack_number(model_loss),
            accuracy=unpack_number(accuracy),
            cohort=cohort,
            shares=counted,
            setting=None if not round_ else begun if text is None else others[text],
            seconds=float(seconds),
            joules=float(joules),
            observations=observations.get(round_, ()),
            signal=unpack_signal(signal),
        )


def run_entry(row: tuple[Any, ...]) -> RunEntry:
    """A run without its rounds."""
    return RunEntry(
        stored_setting=row[0],
        seed=row[1],
        status=row[2],
        num_rounds=row[3],
        final_loss=unpack_number(row[4]),
        time_s=float(row[5]),
        energy_j=float(row[6]),
        created=row[7],
        versions=_versions(row[8:]),
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
