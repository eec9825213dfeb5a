"""Earlier runs: what a second study of a task begins with, and that nothing changes it later."""

from __future__ import annotations

import pytest

from fedplan.errors import FedplanError, InputError
from fedplan.participation import LAWS, uniform
from fedplan.simulation import Job
from fedplan.store import Store
from fedplan.studies import build_experiment, read_study, run_study
from fedplan.studies.experiment import build_setting
from fedplan.studies.outcome import decisions_of
from fedplan.studies.workflow import recall_study

WORDS = ("seeds=1", "target-loss=0.9", "rounds=300")


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/runs.db") as found:
        yield found


def experiment_of(*words):
    return build_experiment(read_study("demo", [*WORDS, *words]))


def first_decision(outcome):
    return decisions_of(outcome.measured.runs[0])[0]


def add_grid(store, *, seed=7):
    """Runs of the same task by other studies: all clients, with few steps and with many."""
    experiment = experiment_of("fleet-seed=5")
    jobs = [Job(course=uniform(20, steps), seed=seed) for steps in (5, 20, 80)]
    experiment.archive(store).run_all(jobs, experiment.stop)


def test_a_first_study_knows_nothing_and_stays_so_when_runs_are_stored_meanwhile(store):
    alone = run_study(experiment_of(), store)
    assert first_decision(alone).saturation is None
    add_grid(store)
    again = run_study(experiment_of(), store)
    assert again.measured == alone.measured
    assert recall_study(experiment_of(), store).measured == alone.measured
    more = run_study(
        experiment_of("seeds=2"), store
    )  # its first run is there, and is not made anew
    assert more.measured.runs[0] == alone.measured.runs[0]
    assert first_decision(more).saturation is None


def test_another_seed_begins_with_what_earlier_runs_tell(store):
    add_grid(store)
    told = run_study(experiment_of(), store)
    first = first_decision(told)
    assert 1 < first.saturation < 60 and "earlier runs" in first.why
    assert told.setting.local_steps == first.local_steps
    add_grid(store, seed=8)
    assert run_study(experiment_of(), store).measured == told.measured
    assert recall_study(experiment_of(), store).measured == told.measured
    ignored = run_study(experiment_of("earlier-runs=ignore"), store)
    assert first_decision(ignored).saturation is None


def test_runs_of_one_setting_tell_nothing_and_change_nothing(store):
    alone = run_study(experiment_of("earlier-runs=ignore"), store)
    other = experiment_of("first-seed=5", "seeds=3")
    jobs = [Job(course=uniform(5, 20), seed=seed) for seed in (5, 6, 7)]
    other.archive(store).run_all(jobs, other.stop)
    told = run_study(experiment_of(), store)
    assert first_decision(told).saturation is None
    assert told.setting == alone.setting


def test_one_online_run_tells_the_next_one(store):
    run_study(experiment_of(), store)
    next_ = run_study(experiment_of("first-seed=1"), store)
    assert first_decision(next_).saturation is not None


def test_what_was_kept_first_counts_even_if_no_run_has_ended(store):
    experiment = experiment_of("first-seed=3")
    entry = experiment.save(store)
    assert store.keep_step(entry, "earlier", {"saturation": [10.0, 40.0], "runs": 2})
    add_grid(store)  # a killed study goes on as it began
    kept = store.keep_step(entry, "earlier", {"saturation": None, "runs": 0})
    assert kept["saturation"] == [10.0, 40.0]
    assert first_decision(run_study(experiment, store)).saturation == pytest.approx(20.0)


def test_other_tasks_are_no_earlier_runs(store):
    add_grid(store)
    for words in (["learning-rate=0.02"], ["alpha=0.5"], ["batch-size=32"]):
        other = run_study(experiment_of(*words), store)
        assert first_decision(other).saturation is None


def test_a_given_saturation_is_taken_at_its_word(store):
    add_grid(store)
    told = run_study(experiment_of("saturation=[20, 80]"), store)
    assert first_decision(told).saturation == pytest.approx(40.0)
    assert "given" in first_decision(told).why


@pytest.mark.parametrize("value", ["[5]", "[9, 3]", "[0, 3]", "[1, 2, 3]"])
def test_a_saturation_has_two_ends(value):
    with pytest.raises(InputError, match="saturation must be"):
        read_study("demo", [f"saturation={value}"])


def test_runs_of_a_law_that_is_not_registered_are_not_used(store, monkeypatch):
    experiment = experiment_of("participation=shuffled", "course=fixed", "clients-per-round=2")
    job = Job(course=build_setting(experiment, 2, 5), seed=9)
    experiment.archive(store).run_all([job], experiment.stop)
    monkeypatch.delitem(LAWS, "shuffled")
    assert first_decision(run_study(experiment_of(), store)).saturation is None
    with pytest.raises(FedplanError, match="participation=shuffled is not registered"):
        store.find_runs(experiment.settings)
