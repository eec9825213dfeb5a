"""Rows: the columns of each table, written and read back.

A column has the name of the field it keeps, so that rows are made of records, and records of rows,
by name.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeVar

from fedplan.core.course import Decision, Identified
from fedplan.core.records import Observation, RoundRecord, RunRecord
from fedplan.core.setting import Setting
from fedplan.store.entries import canonical_json, current_versions, fingerprint_of, read_key
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

T = TypeVar("T")
Row = dict[str, Any]
Kinds = dict[str, type[int] | type[float] | type[str]]
RunKey = dict[str, int]  # ids of experiment and setting, and the seed


def _kinds(**names: str) -> Kinds:
    return {
        name: kind for kind in (int, float, str) for name in names.get(kind.__name__, "").split()
    }


# Columns that records have as fields, and what they hold: a float column keeps NaN, too.
RUN = _kinds(int="seed num_rounds", str="status message", float="final_loss time_s energy_j")
_ROUND = _kinds(int="round", float="loss model_loss accuracy test_accuracy seconds joules")
_OBSERVATION = _kinds(
    int="client local_steps",
    str="problem",
    float="train_seconds round_trip_seconds joules examples",
)
VERSIONS = _kinds(str="fedplan python numpy numba")


def now() -> str:
    """The time now, as tables store it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def insert(
    connection: sqlite3.Connection, table: str, rows: Sequence[Row], *, unique: str = ""
) -> None:
    """Write rows; if `unique` is given, skip those whose value of that column exists."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        unless = f" ON CONFLICT ({unique}) DO NOTHING" if unique else ""
        connection.executemany(
            f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({places}){unless}",  # noqa: S608
            [tuple(row.values()) for row in rows],
        )


def insert_once(connection: sqlite3.Connection, table: str, row: Row, unique: str) -> int:
    """Write a row, unless it is there already; its id."""
    insert(connection, table, [row], unique=unique)
    (id_,) = connection.execute(
        f"SELECT id FROM {table} WHERE {unique} = ?",  # noqa: S608
        (row[unique],),
    ).fetchone()
    return int(id_)


def key_text(one: Identified) -> str:
    """The setting that a training begins with, and its course where it has one, as JSON."""
    course = {"course": one.identity} if one.identity else {}
    return canonical_json({**one.setting.to_dict(), **course})


def save_experiment(connection: sqlite3.Connection, experiment: Mapping[str, Any]) -> int:
    """The id of an experiment."""
    row = {
        "fingerprint": fingerprint_of(experiment),
        "settings": canonical_json(dict(experiment)),
        "created": now(),
    }
    return insert_once(connection, "experiments", row, "fingerprint")


def save_setting(connection: sqlite3.Connection, one: Identified) -> int:
    """The id of a setting, or of a course that begins with it; each is kept once."""
    return insert_once(connection, "settings", {"value": key_text(one)}, "value")


def made_now() -> Row:
    """When a row is written, and by which software."""
    return {"created": now(), **asdict(current_versions())}


def pack_records(records: Sequence[RoundRecord]) -> tuple[bytes, bytes]:
    """Cohorts and shares of these rounds."""
    cohorts = [record.cohort for record in records]
    shares = [record.shares for record in records]
    return pack_cohorts(cohorts), pack_shares(shares, list(map(len, cohorts)))


def _columns(record: object, kinds: Kinds) -> Row:
    return {
        name: pack_number(getattr(record, name)) if kind is float else kind(getattr(record, name))
        for name, kind in kinds.items()
    }


def fields(row: sqlite3.Row, kinds: Kinds) -> Row:
    """The values of these columns, each of its kind."""
    return {
        name: unpack_number(row[name]) if kind is float else of_kind(row, name, kind)
        for name, kind in kinds.items()
    }


def of_kind(row: sqlite3.Row, name: str, kind: type[T]) -> T:
    """A value, checked to be of this kind: any column of SQLite may hold anything."""
    value = row[name]
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def insert_run(
    connection: sqlite3.Connection, key: RunKey, run: RunRecord, packed: tuple[bytes, bytes]
) -> int:
    """Write a run with all its rounds, cohorts and shares packed already; its id."""
    row = {
        **key,
        "clients_per_round": run.clients_per_round,
        "local_steps": int(run.local_steps),
        **_columns(run, RUN),
        **made_now(),
        "decisions": canonical_json([asdict(decision) for decision in run.decisions]),
    }
    insert(connection, "runs", [row])
    (id_,) = connection.execute("SELECT last_insert_rowid()").fetchone()
    _insert_rounds(connection, id_, run.setting, run.rounds)
    members, shares = packed
    insert(connection, "cohorts", [{"run": id_, "members": members, "shares": shares}])
    return int(id_)


def append_round(
    connection: sqlite3.Connection, key: RunKey, one: Identified, record: RoundRecord
) -> None:
    """Append a round to a run, which is unfinished then, and begins if it is not there.

    Except for two sums, this takes as long however many rounds came before.
    """
    row = connection.execute(
        "SELECT id FROM runs WHERE (experiment, setting, seed) = (:experiment, :setting, :seed)",
        key,
    ).fetchone()
    if row:
        id_ = row["id"]
    else:
        begun = RunRecord(
            setting=one.setting,
            seed=key["seed"],
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
    _insert_rounds(connection, id_, one.setting, [record], pack_records([record]))
    spent = connection.execute("SELECT seconds, joules FROM rounds WHERE run = ?", (id_,))
    time_s, energy_j = (math.fsum(map(float, column)) for column in zip(*spent, strict=True))
    connection.execute(
        "UPDATE runs SET status = 'unfinished', message = '', num_rounds = ?, time_s = ?, "
        "energy_j = ?, final_loss = (SELECT loss FROM rounds WHERE run = runs.id "
        "AND loss IS NOT NULL ORDER BY round DESC LIMIT 1) WHERE id = ?",
        (int(record.round), *map(pack_number, (time_s, energy_j)), id_),
    )


def _insert_rounds(
    connection: sqlite3.Connection,
    id_: int,
    begun: Setting,
    records: Sequence[RoundRecord],
    packed: tuple[bytes | None, bytes | None] = (None, None),
) -> None:
    """Write rounds; `packed` has the cohort and shares of a round that is saved by itself.

    A setting is written if it is not the one that the run began with, and a signal if real devices
    made the round: a simulated run is repeated, not resumed.
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

    rounds = [
        {
            "run": id_,
            "setting": other(record),
            **_columns(record, _ROUND),
            "cohort": packed[0],
            "shares": packed[1],
            "signal": pack_signal(record.signal) if record.observations else None,
        }
        for record in records
    ]
    insert(connection, "rounds", rounds)
    observations = [
        {"run": id_, "round": int(record.round), "place": place, **_columns(one, _OBSERVATION)}
        for record in records
        for place, one in enumerate(record.observations)
    ]
    insert(connection, "observations", observations)


def read_run(connection: sqlite3.Connection, row: sqlite3.Row) -> RunRecord:
    """A run with all its rounds, from its id, value, seed, status, message and decisions."""
    setting, identity = read_key(row["value"])
    return RunRecord(
        setting=setting,
        **fields(row, {"seed": int, "status": str, "message": str}),
        rounds=tuple(_read_rounds(connection, row["id"], setting)),
        identity=identity,
        decisions=tuple(map(_read_decision, json.loads(row["decisions"]))),
    )


def _read_decision(values: Row) -> Decision:
    interval = values.pop("interval")
    return Decision(**values, interval=None if interval is None else tuple(interval))


def _read_rounds(connection: sqlite3.Connection, id_: int, begun: Setting) -> Iterator[RoundRecord]:
    packed = connection.execute("SELECT * FROM cohorts WHERE run = ?", (id_,)).fetchone()
    cohorts = unpack_cohorts(packed["members"])
    shares = unpack_shares(packed["shares"], list(map(len, cohorts)))
    observations = _read_observations(connection, id_)
    others: dict[str, Setting] = {}
    rows = connection.execute(
        "SELECT value, cohort, shares, signal, round, seconds, joules, loss, model_loss, accuracy, "
        "test_accuracy FROM rounds LEFT JOIN settings ON settings.id = rounds.setting "
        "WHERE run = ? ORDER BY round",
        (id_,),
    )
    # Rounds that were saved by themselves come after those that the run was saved with. There may
    # be very many, so that columns are taken by their places here.
    for place, row in enumerate(rows):
        text, own, own_shares, signal, round_, seconds, joules, *judged = row
        if own is None:
            cohort, counted = cohorts[place], shares[place]
        else:
            (cohort,) = unpack_cohorts(own)
            (counted,) = unpack_shares(own_shares, [len(cohort)])
        loss, model_loss, accuracy, test_accuracy = map(unpack_number, judged)
        if text is not None and text not in others:
            others[text], _ = read_key(text)
        yield RoundRecord(
            round=round_,
            loss=loss,
            model_loss=model_loss,
            accuracy=accuracy,
            test_accuracy=test_accuracy,
            seconds=float(seconds),
            joules=float(joules),
            cohort=cohort,
            shares=counted,
            setting=None if not round_ else begun if text is None else others[text],
            observations=observations.get(round_, ()),
            signal=unpack_signal(signal),
        )


def _read_observations(
    connection: sqlite3.Connection, run: int
) -> dict[int, tuple[Observation, ...]]:
    """What was observed in each round of a run that has observations."""
    rows = connection.execute(
        "SELECT * FROM observations WHERE run = ? ORDER BY round, place", (run,)
    )
    return {
        round_: tuple(Observation(**fields(row, _OBSERVATION)) for row in group)
        for round_, group in groupby(rows, key=lambda row: int(row["round"]))
    }
