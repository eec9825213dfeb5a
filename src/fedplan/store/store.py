"""Store: save and find runs, studies and what studies have decided."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from types import TracebackType
from typing import Any, Self

from fedplan.errors import InputError
from fedplan.records import Observation, RoundRecord, RunRecord
from fedplan.store.database import DEFAULT_URL, Database
from fedplan.store.entries import (
    ExperimentEntry,
    RunEntry,
    StudyEntry,
    Versions,
    canonical_json,
    current_versions,
    fingerprint_of,
)
from fedplan.store.packing import pack_cohorts, pack_number, unpack_cohorts, unpack_number

_EXPERIMENTS = """
    SELECT fingerprint, settings, created,
        (SELECT count(*) FROM runs WHERE runs.experiment = experiments.id)
    FROM experiments
"""
_STUDIES = """
    SELECT name, studies.fingerprint, configuration, studies.created, fedplan, python, numpy, numba,
        experiments.fingerprint, settings, experiments.created,
        (SELECT count(*) FROM runs WHERE runs.experiment = experiments.id)
    FROM studies JOIN experiments ON experiments.id = studies.experiment
"""
_RUNS = """
    SELECT runs.id, clients_per_round, local_steps, seed, status, message
    FROM runs JOIN experiments ON experiments.id = runs.experiment WHERE fingerprint = ?
"""
_RUN_ENTRIES = """
    SELECT clients_per_round, local_steps, seed, status, num_rounds, final_loss, time_s, energy_j,
        runs.created, fedplan, python, numpy, numba
    FROM runs JOIN experiments ON experiments.id = runs.experiment WHERE fingerprint = ?
"""
_END = {"unfinished": 0, "diverged": 2}  # any other end counts 1
_OF_SETTING = "AND (clients_per_round, local_steps, seed) = (?, ?, ?)"
_IN_ORDER = "ORDER BY clients_per_round, local_steps, seed"


class Store:
    """One SQLite file. What a `save_...` has returned from survives kill -9 and power cuts.

    url : `sqlite:///fedplan.db` in the current folder, or `sqlite:////full/path/fedplan.db`; the
        file is made if it is not there.
    readonly : change nothing, and make nothing: a file that is not there reads as an empty store.

    Any number of threads may share a store, and any number of processes a file, each with a store
    of its own. An experiment is a mapping of everything that changes a number of a run other than
    K, E and the seed; runs of equal experiments are comparable.

    >>> import tempfile
    >>> start = RoundRecord(round=0, loss=2.0, accuracy=0.1, cohort=(), seconds=0.0, joules=0.0)
    >>> run = RunRecord(clients_per_round=2, local_steps=5, seed=0, status="rounds",
    ...     rounds=(start,))
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/a.db") as store:
    ...     kept = store.save_run({"data": "synthetic"}, run)
    ...     found = store.find_run({"data": "synthetic"}, 2, 5, 0)
    >>> kept, found == run
    (True, True)
    """

    def __init__(self, url: str = DEFAULT_URL, *, readonly: bool = False) -> None:
        self._database = Database(url, readonly=readonly)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything saved is in it."""
        self._database.close()

    def save_run(self, experiment: Mapping[str, Any], run: RunRecord) -> bool:
        """Keep a run, unless one as long with the same experiment, K, E and seed is there.

        A longer run takes the place of a shorter one. Of two as long, one that has ended counts as
        longer than one that is unfinished, and one that diverged in the next round as longer
        still: it has been further. Returns whether the run was kept.
        """
        if any(one.round >= next_.round for one, next_ in pairwise(run.rounds)):
            raise InputError("the rounds of a run must be numbered upwards. Sort them first.")
        cohorts = pack_cohorts([record.cohort for record in run.rounds])
        with self._database.writing() as connection:
            key = (_save_experiment(connection, experiment), *_setting(run))
            there = connection.execute(
                "SELECT id, status, (SELECT count(*) FROM rounds WHERE run = runs.id) "
                "FROM runs WHERE (experiment, clients_per_round, local_steps, seed) = (?, ?, ?, ?)",
                key,
            ).fetchone()
            if there is not None:
                id_, status, length = there
                if (len(run.rounds), _END.get(run.status, 1)) <= (length, _END.get(status, 1)):
                    return False
                connection.execute("DELETE FROM runs WHERE id = ?", (id_,))
            _insert_run(connection, key, run, cohorts)
        return True

    def save_round(
        self,
        experiment: Mapping[str, Any],
        clients_per_round: int,
        local_steps: int,
        seed: int,
        record: RoundRecord,
    ) -> None:
        """Keep one more round of a run that is going on, and make it the last.

        Rounds from this one on that are there already are forgotten: a run that was cut off goes
        on from its last checkpoint, which may lie a round back. The run is unfinished until
        `save_run` brings all of it.
        """
        with self._database.writing() as connection:
            key = (
                _save_experiment(connection, experiment),
                int(clients_per_round),
                int(local_steps),
                int(seed),
            )
            row = connection.execute(
                "SELECT id, members FROM runs JOIN cohorts ON cohorts.run = runs.id "
                "WHERE (experiment, clients_per_round, local_steps, seed) = (?, ?, ?, ?)",
                key,
            ).fetchone()
            if row is None:
                cohorts: list[tuple[int, ...]] = []
                id_ = _insert_run(connection, key, _unfinished(key), pack_cohorts(cohorts))
            else:
                id_, cohorts = row[0], unpack_cohorts(row[1])
            for table in ("rounds", "observations"):
                connection.execute(
                    f"DELETE FROM {table} WHERE run = ? AND round >= ?",  # noqa: S608
                    (id_, int(record.round)),
                )
            _insert_rounds(connection, id_, [record])
            (count,) = connection.execute(
                "SELECT count(*) FROM rounds WHERE run = ?", (id_,)
            ).fetchone()
            cohorts = [*cohorts[: count - 1], record.cohort]
            connection.execute(
                "UPDATE cohorts SET members = ? WHERE run = ?", (pack_cohorts(cohorts), id_)
            )
            rounds = _round_records(_rounds(connection, id_), cohorts, {})
            so_far = replace(_unfinished(key), rounds=tuple(rounds))
            connection.execute(
                "UPDATE runs SET status = ?, message = '', num_rounds = ?, final_loss = ?, "
                "time_s = ?, energy_j = ? WHERE id = ?",
                (so_far.status, so_far.num_rounds, *_totals(so_far), id_),
            )

    def find_run(
        self, experiment: Mapping[str, Any], clients_per_round: int, local_steps: int, seed: int
    ) -> RunRecord | None:
        """The run as it was saved; None where there is none."""
        with self._database.reading() as connection:
            row = connection.execute(
                _RUNS + _OF_SETTING,
                (fingerprint_of(experiment), int(clients_per_round), int(local_steps), int(seed)),
            ).fetchone()
            return None if row is None else _read_run(connection, row)

    def find_runs(self, experiment: Mapping[str, Any]) -> list[RunRecord]:
        """All runs of an experiment, ordered by K, E and seed."""
        with self._database.reading() as connection:
            rows = connection.execute(_RUNS + _IN_ORDER, (fingerprint_of(experiment),)).fetchall()
            return [_read_run(connection, row) for row in rows]

    def runs(self, experiment: Mapping[str, Any]) -> list[RunEntry]:
        """All runs of an experiment without their rounds, in the order of `find_runs`."""
        with self._database.reading() as connection:
            rows = connection.execute(_RUN_ENTRIES + _IN_ORDER, (fingerprint_of(experiment),))
            return [_run_entry(row) for row in rows]

    def experiments(self) -> list[ExperimentEntry]:
        """All experiments, in the order they were first saved in."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_EXPERIMENTS} ORDER BY id").fetchall()
        return [_experiment_entry(row) for row in rows]

    def save_study(
        self, name: str, configuration: Mapping[str, Any], experiment: Mapping[str, Any]
    ) -> StudyEntry:
        """Keep a study, or find it again: by its name, configuration and experiment together.

        A study of the same name that is configured differently is another study, so that steps
        decided under other settings are never taken for its own.
        """
        if not (name.strip() and name.isprintable()):
            raise InputError(f"a study's name must be one line of text, but got {name!r}.")
        fingerprint = fingerprint_of(
            {"name": name, "configuration": dict(configuration), "experiment": dict(experiment)}
        )
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO studies (name, fingerprint, configuration, experiment, created, "
                "fedplan, python, numpy, numba) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (fingerprint) DO NOTHING",
                (
                    name,
                    fingerprint,
                    canonical_json(dict(configuration)),
                    _save_experiment(connection, experiment),
                    _now(),
                    *astuple(current_versions()),
                ),
            )
            row = connection.execute(f"{_STUDIES} WHERE studies.fingerprint = ?", (fingerprint,))
            return _study_entry(row.fetchone())

    def studies(self) -> list[StudyEntry]:
        """All studies, in the order they were first saved in."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_STUDIES} ORDER BY studies.id").fetchall()
        return [_study_entry(row) for row in rows]

    def save_step(self, study: StudyEntry, name: str, value: Any) -> None:
        """Keep what a study has decided, as JSON; a later value takes the place of an earlier."""
        text = canonical_json(value)
        with self._database.writing() as connection:
            there = connection.execute(
                "SELECT id FROM studies WHERE fingerprint = ?", (study.fingerprint,)
            ).fetchone()
            if there is None:
                raise InputError(f"study {study.name} is not in this store. Save it there first.")
            connection.execute(
                "INSERT INTO steps (study, name, value, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (study, name) DO UPDATE "
                "SET value = excluded.value, created = excluded.created",
                (*there, name, text, _now()),
            )

    def find_step(self, study: StudyEntry, name: str) -> Any:
        """What was decided, tuples as lists; None where nothing was."""
        return self.steps(study).get(name)

    def steps(self, study: StudyEntry) -> dict[str, Any]:
        """Everything a study has decided, in the order it was first decided in."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT steps.name, value FROM steps JOIN studies ON studies.id = steps.study "
                "WHERE fingerprint = ? ORDER BY steps.id",
                (study.fingerprint,),
            ).fetchall()
        return {name: json.loads(value) for name, value in rows}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _setting(run: RunRecord) -> tuple[int, int, int]:
    return int(run.clients_per_round), int(run.local_steps), int(run.seed)


def _save_experiment(connection: sqlite3.Connection, experiment: Mapping[str, Any]) -> int:
    fingerprint = fingerprint_of(experiment)
    connection.execute(
        "INSERT INTO experiments (fingerprint, settings, created) VALUES (?, ?, ?) "
        "ON CONFLICT (fingerprint) DO NOTHING",
        (fingerprint, canonical_json(dict(experiment)), _now()),
    )
    (id_,) = connection.execute(
        "SELECT id FROM experiments WHERE fingerprint = ?", (fingerprint,)
    ).fetchone()
    return int(id_)


def _insert_run(
    connection: sqlite3.Connection, key: tuple[int, ...], run: RunRecord, cohorts: bytes
) -> int | None:
    ended = (run.status, run.message, run.num_rounds, *_totals(run))
    id_ = connection.execute(
        "INSERT INTO runs (experiment, clients_per_round, local_steps, seed, status, message, "
        "num_rounds, final_loss, time_s, energy_j, created, fedplan, python, numpy, numba) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, *ended, _now(), *astuple(current_versions())),
    ).lastrowid
    _insert_rounds(connection, id_, run.rounds)
    connection.execute("INSERT INTO cohorts (run, members) VALUES (?, ?)", (id_, cohorts))
    return id_


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
    connection: sqlite3.Connection, id_: int | None, records: Sequence[RoundRecord]
) -> None:
    connection.executemany(
        "INSERT INTO rounds (run, round, loss, accuracy, seconds, joules) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        ((id_, int(record.round), *map(pack_number, _measured(record))) for record in records),
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


def _read_run(connection: sqlite3.Connection, row: tuple[Any, ...]) -> RunRecord:
    id_, clients_per_round, local_steps, seed, status, message = row
    (blob,) = connection.execute("SELECT members FROM cohorts WHERE run = ?", (id_,)).fetchone()
    rounds = _rounds(connection, id_)
    return RunRecord(
        clients_per_round=clients_per_round,
        local_steps=local_steps,
        seed=seed,
        status=status,
        rounds=tuple(_round_records(rounds, unpack_cohorts(blob), _observations(connection, id_))),
        message=message,
    )


def _rounds(connection: sqlite3.Connection, id_: int | None) -> sqlite3.Cursor:
    return connection.execute(
        "SELECT round, loss, accuracy, seconds, joules FROM rounds WHERE run = ? ORDER BY round",
        (id_,),
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
    for (round_, loss, accuracy, seconds, joules), cohort in zip(rows, cohorts, strict=True):
        yield RoundRecord(
            round=round_,
            loss=unpack_number(loss),
            accuracy=unpack_number(accuracy),
            cohort=cohort,
            seconds=float(seconds),
            joules=float(joules),
            observations=observations.get(round_, ()),
        )


def _run_entry(row: tuple[Any, ...]) -> RunEntry:
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


def _experiment_entry(row: tuple[Any, ...]) -> ExperimentEntry:
    fingerprint, settings, created, num_runs = row
    return ExperimentEntry(
        fingerprint=fingerprint, settings=json.loads(settings), num_runs=num_runs, created=created
    )


def _study_entry(row: tuple[Any, ...]) -> StudyEntry:
    name, fingerprint, configuration, created = row[:4]
    return StudyEntry(
        name=name,
        fingerprint=fingerprint,
        configuration=json.loads(configuration),
        experiment=_experiment_entry(row[8:]),
        created=created,
        versions=_versions(row[4:8]),
    )


def _versions(row: tuple[Any, ...]) -> Versions:
    fedplan, python, numpy, numba = row
    return Versions(fedplan=fedplan, python=python, numpy=numpy, numba=numba)
