"""What goes into a store comes out of it, and the longer run stays."""

from __future__ import annotations

import math
import re
import sqlite3
import struct
import time
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored_runs import EXPERIMENT, make_run

from fedplan.core.records import Observation, RoundRecord, RunRecord, Status
from fedplan.core.setting import Setting
from fedplan.errors import InputError
from fedplan.participation import Shuffled, Turns, Uniform, Weighted, uniform
from fedplan.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "store.md"
STATUSES = list(get_args(Status))

numbers = st.floats(allow_nan=False)
amounts = st.floats(0, 1e300) | st.just(math.inf) | st.just(-0.0)
whole = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
observations = st.builds(
    Observation,
    client=whole,
    local_steps=st.integers(1, 10**9),
    train_seconds=st.none() | amounts,
    round_trip_seconds=st.none() | amounts,
    joules=st.none() | amounts,
    problem=texts,
)
laws = st.one_of(
    st.builds(Uniform, clients_per_round=st.integers(1, 10**12)),
    st.builds(Shuffled, clients_per_round=st.integers(1, 9), num_clients=st.integers(9, 99)),
    st.builds(Weighted, clients_per_round=st.integers(1, 9), chances=st.just((0.1, 0.2, 0.7))),
    st.builds(
        Turns,
        groups=st.just(((0, 2), (1,))),
        visits=st.tuples(st.integers(1, 9), st.integers(1, 9)),
        earned=st.just(()) | st.just((3, -3)),
    ),
)
some_settings = st.builds(Setting, participation=laws, local_steps=st.integers(1, 10**9))
cohorts = st.lists(st.tuples(whole, numbers), max_size=5).map(
    lambda pairs: tuple(zip(*pairs, strict=True))
)


@st.composite
def round_records(draw):
    cohort, shares = draw(cohorts) or ((), ())
    return RoundRecord(
        round=0,
        loss=draw(st.none() | numbers),
        accuracy=draw(st.none() | numbers),
        test_accuracy=draw(st.none() | numbers),
        model_loss=draw(st.none() | numbers),
        cohort=cohort,
        shares=draw(st.sampled_from([shares, ()])),
        seconds=draw(amounts),
        joules=draw(amounts),
        observations=tuple(draw(st.lists(observations, max_size=3))),
    )


@st.composite
def run_records(draw):
    begun, other = draw(some_settings), draw(some_settings)
    change = draw(st.integers(1, 9))  # the round from which on another setting is used
    records = draw(st.lists(round_records(), max_size=6))
    return RunRecord(
        setting=begun,
        seed=draw(whole),
        status=draw(st.sampled_from(STATUSES)),
        rounds=tuple(
            replace(one, round=n, setting=None if not n else begun if n < change else other)
            for n, one in enumerate(records)
        ),
        message=draw(texts),
    )


def bits(run):
    values = [
        (r.loss, r.model_loss, r.accuracy, r.test_accuracy, r.seconds, r.joules, *r.shares)
        for r in run.rounds
    ]
    return [value if value is None else struct.pack("d", value) for row in values for value in row]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(run=run_records())
def test_a_run_comes_back_bit_for_bit(store, run):
    experiment = {"example": len(store.experiments())}
    store.save_run(experiment, run)
    found = store.find_run(experiment, run.setting, run.seed)
    assert found == run and bits(found) == bits(run)
    assert type(found.rounds) is tuple
    assert all(type(record.cohort) is tuple for record in found.rounds)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(run=run_records(), again=st.integers(0, 5))
def test_a_run_saved_round_by_round_is_the_run(store, run, again):
    experiment = {"round by round": len(store.experiments())}
    setting = (run.setting, run.seed)
    for record in (*run.rounds, *run.rounds[again:]):  # the last few twice, after a crash
        store.save_round(experiment, *setting, record)
    if run.rounds:
        found = store.find_run(experiment, *setting)
        assert found == replace(run, status="unfinished", message="") and bits(found) == bits(run)
        (entry,) = store.runs(experiment)
        assert (entry.num_rounds, entry.time_s) == (run.num_rounds, run.time_s)
    ended = replace(run, status="target")
    store.save_run(experiment, ended)
    assert store.find_run(experiment, *setting) == ended


def test_a_round_saved_again_is_the_last(store):
    run = make_run(rounds=4)
    for record in (*run.rounds, run.rounds[2]):
        store.save_round(EXPERIMENT, uniform(2, 5), 0, record)
    assert store.find_run(EXPERIMENT, uniform(2, 5), 0).rounds == run.rounds[:3]


def test_a_run_saved_whole_goes_on_round_by_round(store):
    run = make_run(rounds=5)
    store.save_run(EXPERIMENT, replace(run, rounds=run.rounds[:4]))
    for record in run.rounds[3:]:  # the last round again, after a crash
        store.save_round(EXPERIMENT, uniform(2, 5), 0, record)
    found = store.find_run(EXPERIMENT, uniform(2, 5), 0)
    assert found == replace(run, status="unfinished", message="")


def test_a_round_is_saved_as_quickly_late_in_a_run_as_early(store):
    record = replace(make_run().rounds[0], cohort=tuple(range(500)), shares=(0.002,) * 500)

    def fastest(rounds: range) -> float:
        taken = []
        for number in rounds:
            start = time.perf_counter()
            store.save_round(EXPERIMENT, uniform(500, 5), 0, replace(record, round=number))
            taken.append(time.perf_counter() - start)
        return min(taken)

    early = fastest(range(50))
    store.save_run(EXPERIMENT, RunRecord(
        setting=uniform(500, 5), seed=0, status="unfinished",
        rounds=tuple(replace(record, round=number) for number in range(2000)),
    ))  # fmt: skip
    assert fastest(range(2000, 2050)) < 10 * early  # packed anew every round, it takes 100 times


def test_a_run_that_has_ended_takes_the_place_of_the_same_unfinished(store):
    run = make_run()
    for status in ("unfinished", "rounds", "unfinished", "diverged", "rounds"):
        store.save_run(EXPERIMENT, replace(run, status=status))
    assert store.find_run(EXPERIMENT, uniform(2, 5), 0).status == "diverged"


def test_a_negative_zero_an_infinity_and_nan_survive(store):
    record = make_run().rounds[0]
    odd = replace(record, loss=-0.0, accuracy=math.nan, seconds=math.inf, joules=5e-324)
    store.save_run(EXPERIMENT, replace(make_run(), rounds=(odd,)))
    (found,) = store.find_run(EXPERIMENT, uniform(2, 5), 0).rounds
    assert math.copysign(1, found.loss) == -1 and math.isnan(found.accuracy)
    assert (found.seconds, found.joules) == (math.inf, 5e-324)
    (entry,) = store.runs(EXPERIMENT)
    assert entry.time_s == math.inf and entry.final_loss == 0


def test_numpy_numbers_are_numbers(store):
    record = replace(make_run().rounds[0], loss=np.float32(0.5), cohort=tuple(np.arange(3)))
    setting = uniform(np.int64(2), np.int32(4))
    run = replace(make_run(), seed=np.int64(7), setting=setting, rounds=(record,))
    store.save_run({"rate": np.float64(0.1)}, run)
    assert store.find_run({"rate": 0.1}, uniform(2, 4), np.uint8(7)) == run


def test_what_was_not_saved_is_not_found(store):
    store.save_run(EXPERIMENT, make_run(seed=1))
    assert store.find_run(EXPERIMENT, uniform(2, 5), 2) is None
    assert store.find_run(EXPERIMENT, uniform(3, 5), 1) is None
    assert store.find_run(EXPERIMENT | {"more": 1}, uniform(2, 5), 1) is None
    assert store.find_runs({}) == []


def test_the_order_of_settings_does_not_matter(store):
    store.save_run(EXPERIMENT, make_run())
    assert store.find_run(dict(reversed(EXPERIMENT.items())), uniform(2, 5), 0) == make_run()


def test_runs_are_listed_by_setting_and_seed(store):
    runs = [make_run(seed, clients=k, steps=e) for seed in (2, 0) for k in (9, 3) for e in (7, 1)]
    for run in runs:
        store.save_run(EXPERIMENT, run)
    in_order = sorted(runs, key=lambda run: (*run.setting.pair, run.seed))
    assert store.find_runs(EXPERIMENT) == in_order
    for entry, run in zip(store.runs(EXPERIMENT), in_order, strict=True):
        for name in ("clients_per_round", "local_steps", "seed", "status", "num_rounds"):
            assert getattr(entry, name) == getattr(run, name)
        assert (entry.final_loss, entry.time_s, entry.energy_j) == (
            run.final_loss, run.time_s, run.energy_j,
        )  # fmt: skip
        assert entry.versions.numpy == np.__version__ and entry.created.endswith("+00:00")


LONG, SHORT = make_run(rounds=5), make_run(rounds=3)


@pytest.mark.parametrize("runs", [[SHORT, LONG], [LONG, SHORT], [LONG, LONG, SHORT, LONG]])
def test_the_longer_run_stays(store, runs):
    for run in runs:
        store.save_run(EXPERIMENT, run)
    assert store.find_runs(EXPERIMENT) == [LONG]


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_run_that_diverged_in_the_next_round_went_further(store, in_turn):
    runs = [SHORT, replace(SHORT, status="diverged")]
    for run in reversed(runs) if in_turn else runs:
        store.save_run(EXPERIMENT, run)
    assert store.find_runs(EXPERIMENT) == [runs[1]]


def test_the_same_run_again_changes_nothing(store, path):
    store.save_run(EXPERIMENT, SHORT)
    log = Path(f"{path}-wal").read_bytes()
    store.save_run(EXPERIMENT, SHORT)
    assert Path(f"{path}-wal").read_bytes() == log


def test_a_study_is_found_again_and_keeps_what_it_decided(url):
    configuration = {"name": "demo", "training": {"rounds": 200, "max_time_s": math.inf}}
    plan = {"clients_per_round": 5, "interval": [0.25, math.inf], "note": "ä"}
    with Store(url) as store:
        study = store.save_study("demo", configuration, EXPERIMENT)
        assert store.find_step(study, "plan") is None
        store.save_step(study, "plan", {"first": "try"})
        store.save_step(study, "verification", None)
        store.save_step(study, "plan", plan)
        store.save_run(EXPERIMENT, make_run())
    with Store(url) as store:
        again = store.save_study("demo", configuration, EXPERIMENT)
        assert again.fingerprint == study.fingerprint and again.created == study.created
        assert store.studies() == [again] and again.configuration == configuration
        assert again.num_runs == 1 and again.experiment == store.experiments()[0]
        assert again.experiment.settings == EXPERIMENT
        assert store.find_step(again, "plan") == plan
        assert store.steps(again) == {"plan": plan, "verification": None}


def test_other_settings_make_another_study(store):
    first = store.save_study("demo", {"rounds": 1}, EXPERIMENT)
    second = store.save_study("demo", {"rounds": 2}, EXPERIMENT)
    third = store.save_study("demo", {"rounds": 2}, EXPERIMENT | {"data": "other"})
    assert len({first.fingerprint, second.fingerprint, third.fingerprint}) == 3
    store.save_step(first, "plan", 1)
    assert store.find_step(second, "plan") is None
    assert store.studies() == [first, second, third]
    assert len(store.experiments()) == 2


@pytest.mark.parametrize(
    ("save", "reason"),
    [
        (lambda store: store.save_run({"path": Path()}, make_run()), "not JSON serializable"),
        (lambda store: store.save_run({}, make_run(seed=2**63)), "2^63"),
        (lambda store: store.save_run({}, replace(SHORT, rounds=SHORT.rounds[::-1])), "upwards"),
        (lambda store: store.save_study(" ", {}, {}), "one line of text"),
        (lambda store: store.save_study("a\nb", {}, {}), "one line of text"),
        (lambda store: store.save_study("a", {"set": {1}}, {}), "not JSON serializable"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(store, save, reason):
    with pytest.raises(InputError) as error:
        save(store)
    assert reason in str(error.value)
    assert store.experiments() == [] and store.studies() == []
    store.save_run(EXPERIMENT, make_run())


def test_steps_need_a_study_of_this_store(store, tmp_path):
    with Store(f"sqlite:///{tmp_path}/other.db") as other:
        study = other.save_study("demo", {}, {})
    with pytest.raises(InputError, match="not in this store"):
        store.save_step(study, "plan", 1)


def test_every_table_and_column_is_documented(store, path):
    documented = {
        cells[1].strip(" `"): set(re.findall(r"`(\w+)`", cells[3]))
        for line in PAGE.read_text().splitlines()
        if len(cells := line.split("|")) == 5 and cells[1].startswith(" `")
    }
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in names:
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert documented.pop(table) == columns - {"fedplan", "python", "numpy", "numba"}
    assert not documented


def test_the_documented_queries_answer(store, path):
    for seed in range(3):
        store.save_run(EXPERIMENT, make_run(seed, status="target"))
    queries = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(queries) == 2
    with closing(sqlite3.connect(path)) as connection:
        (costs,), rounds = (connection.execute(query).fetchall() for query in queries)
        (blob,) = connection.execute("SELECT members FROM cohorts").fetchone()
    assert costs[:4] == (2, 5, 3, 3.0) and costs[4] == pytest.approx(
        np.mean([make_run(seed).time_s for seed in range(3)])
    )
    assert rounds == [(2, 5, seed, make_run(seed).rounds_to(1.5)) for seed in range(3)]
    cohorts = [record.cohort for record in make_run(0).rounds]
    packed = [number for cohort in cohorts for number in (len(cohort), *cohort)]
    assert np.frombuffer(zlib.decompress(blob), "<i8").tolist() == packed
