"""A store that an older fedplan wrote keeps every run, round, cohort and observation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from store_of_version_3 import STATEMENTS
from stored_runs import EXPERIMENT, check_integrity, make_run, observe

from fedplan.participation import Turns, uniform
from fedplan.store import Store
from fedplan.store.entries import canonical_json, fingerprint_of
from fedplan.store.packing import pack_cohorts

WHOLE, LONG = make_run(seed=4, rounds=6), make_run(seed=5, rounds=9, clients=3, steps=7)


def without_shares(run):
    return replace(run, rounds=tuple(replace(record, shares=()) for record in run.rounds))


def observed(run):
    """A live run, whose first round was observed."""
    start, first, *rest = without_shares(run).rounds
    seen = (observe(0, 5), observe(1, 5, problem="no answer"))
    return replace(
        run, message="it ended", rounds=(start, replace(first, observations=seen), *rest)
    )


def insert_third(connection, id_, run, *, round_by_round):
    """What version 3 wrote of a run."""
    connection.execute(
        "INSERT INTO runs (id, experiment, clients_per_round, local_steps, seed, status, "
        "num_rounds, final_loss, time_s, energy_j, created, fedplan, python, numpy, numba, message)"
        " VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, '2026-01-31', '0.0.9', '3.11', '2.0', '0.60', ?)",
        (id_, run.clients_per_round, run.local_steps, run.seed, run.status, run.num_rounds,
         run.final_loss, run.time_s, run.energy_j, run.message),
    )  # fmt: skip
    for record in run.rounds:
        own = pack_cohorts([record.cohort]) if round_by_round else None
        connection.execute(
            "INSERT INTO rounds (run, round, loss, accuracy, seconds, joules, cohort) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (id_, record.round, record.loss, record.accuracy, record.seconds, record.joules, own),
        )
        for place, one in enumerate(record.observations):
            connection.execute(
                "INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (id_, record.round, place, one.client, one.local_steps, one.train_seconds,
                 one.round_trip_seconds, one.joules, one.problem),
            )  # fmt: skip
    kept = [] if round_by_round else [record.cohort for record in run.rounds]
    connection.execute("INSERT INTO cohorts VALUES (?, ?)", (id_, pack_cohorts(kept)))


@pytest.fixture
def third(path):
    """A store of version 3 with a study and three runs, one of them saved round by round."""
    runs = [without_shares(WHOLE), observed(LONG), without_shares(make_run(seed=6))]
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in STATEMENTS:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO experiments VALUES (1, ?, ?, '2026-01-31')",
            (fingerprint_of(EXPERIMENT), canonical_json(EXPERIMENT)),
        )
        connection.execute(
            "INSERT INTO studies VALUES (1, 'demo', 'f', '{}', 1, '2026-01-31', '', '', '', '')"
        )
        connection.execute("INSERT INTO steps VALUES (1, 1, 'plan', '[2, 5]', '2026-01-31')")
        for place, run in enumerate(runs):
            insert_third(connection, 10 + place, run, round_by_round=place == 2)
    return runs


@pytest.mark.parametrize("readonly", [False, True])
def test_everything_is_kept(path, url, third, readonly):
    before = path.read_bytes()
    with Store(url, readonly=readonly) as store:
        for run in third:
            assert store.find_run(EXPERIMENT, run.setting, run.seed) == run
        assert store.find_runs(EXPERIMENT) == [third[0], third[2], third[1]]
        assert [entry.versions.fedplan for entry in store.runs(EXPERIMENT)] == ["0.0.9"] * 3
        assert [entry.created for entry in store.runs(EXPERIMENT)] == ["2026-01-31"] * 3
        (study,) = store.studies()
        assert store.steps(study) == {"plan": [2, 5]} and study.num_runs == 3
    assert (path.read_bytes() == before) == readonly
    check_integrity(path)


def test_a_migrated_store_goes_on_as_any_other(path, url, third):
    with Store(url) as store:
        more = make_run(seed=6, rounds=5)
        for record in more.rounds[4:]:
            store.save_round(EXPERIMENT, more.setting, more.seed, record)
        found = store.find_run(EXPERIMENT, more.setting, more.seed)
        assert found.rounds[:4] == third[2].rounds and found.rounds[4:] == more.rounds[4:]
        assert not store.save_run(EXPERIMENT, third[0])  # it is there already
        assert store.save_run(EXPERIMENT, make_run(seed=4, rounds=8))
        turns = replace(uniform(2, 5), participation=Turns(groups=((0, 1), (2,)), visits=(2, 1)))
        other = replace(make_run(seed=4), setting=turns)
        other = replace(
            other, rounds=tuple(replace(r, setting=r.setting and turns) for r in other.rounds)
        )
        assert store.save_run(EXPERIMENT, other)
        assert store.find_run(EXPERIMENT, turns, 4) == other
    check_integrity(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM runs")
        for table in ("rounds", "cohorts", "observations"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_shares_recorded_from_some_round_on_are_kept(store):
    old, new = without_shares(WHOLE).rounds[:3], WHOLE.rounds[3:]
    run = replace(WHOLE, rounds=(*old, *new))
    store.save_run(EXPERIMENT, run)
    assert store.find_run(EXPERIMENT, run.setting, run.seed) == run
