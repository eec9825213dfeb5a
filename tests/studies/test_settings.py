"""A study's law becomes the setting it trains with, and what cannot be is refused at once."""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.core.problem import Problem
from fedplan.errors import InputError
from fedplan.participation import Shuffled, Turns, Uniform, Weighted
from fedplan.planning.turns import choose_groups
from fedplan.store import Store
from fedplan.store.entries import fingerprint_of
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment, build_jobs, build_setting
from fedplan.studies.grid import read_sweep
from fedplan.studies.stored import recall
from fedplan.studies.study import study_from_text
from fedplan.studies.sweep import sweep_study
from fedplan.studies.workflow import recall_study, run_study

# Of demo, by the version that knew uniform sampling alone.
EXPERIMENT = "598bc4ed7ba79f4619da2bf027f4e68556e4a10770c85a048839ef7b90a86f04"
STUDY = "7de99be563d5cc5e95c84c8c64dbd2666a803a22be0ef7697e6a72514782b8a8"


def demo(*words):
    return build_experiment(read_study("demo", ["num-clients=8", "rounds=12", *words]))


def problem_of(experiment):
    fleet = experiment.fleet.with_samples(experiment.simulator.learner.sizes)
    return Problem(fleet=fleet, objective=experiment.objective, limits=experiment.constraints)


def test_each_law_has_the_studys_numbers():
    experiment = demo("participation=shuffled")
    assert build_setting(experiment, 3, 5).participation == Shuffled(
        clients_per_round=3, num_clients=8
    )
    assert build_setting(demo(), 3, 5).participation == Uniform(clients_per_round=3)
    experiment = demo("participation=weighted")
    law = build_setting(experiment, 3, 5).participation
    assert isinstance(law, Weighted) and law.clients_per_round == 3
    problem = problem_of(experiment)
    wanted = problem.data_shares / np.sqrt(problem.fleet.round_times_s(5))
    np.testing.assert_allclose(law.chances, wanted / wanted.sum(), rtol=1e-12)


def test_groups_are_cut_by_speed_and_by_the_clients_own_data():
    experiment = demo("participation=turns", "groups=3")
    problem = problem_of(experiment)
    (job, *_) = build_jobs(experiment)
    assert job.setting.participation == Turns.of(problem, 20, 3)
    assert job.setting.groups == 3 and job.setting.clients_per_round is None
    (job, *_) = build_jobs(demo("participation=turns"))
    assert job.setting.participation == choose_groups(problem, 20, 100.0).whole()


def test_limits_on_clients_at_once_are_kept_or_said():
    limited = demo("participation=turns", "max-clients-per-round=3")
    law = build_setting(limited, 4, 20).participation
    assert isinstance(law, Turns) and max(map(len, law.groups)) <= 3
    with pytest.raises(InputError, match=r"8 clients cannot be cut into 2 groups of 1 to 3.*widen"):
        build_setting(limited, 2, 20)


@pytest.mark.parametrize("law", ["turns", "weighted"])
def test_laws_that_go_by_speed_need_devices(tmp_path, law):
    path = tmp_path / "study.toml"
    path.write_text(
        f'[task]\ndata = "synthetic"\n[training]\nlearning-rate = 0.1\nparticipation = "{law}"\n'
    )
    with pytest.raises(InputError, match=r"needs a \[fleet\].*participation=shuffled"):
        read_study(str(path))


def test_an_override_of_the_law_retires_the_files_clients_per_round():
    training = read_study("demo", ["participation=turns"]).training
    assert (training.participation, training.clients_per_round, training.groups) == (
        "turns", None, None,
    )  # fmt: skip


def test_stored_studies_and_experiments_are_found_again():
    experiment = build_experiment(read_study("demo"))
    configuration = experiment.study.configuration()
    assert fingerprint_of(experiment.settings) == EXPERIMENT
    assert (
        fingerprint_of(
            {"name": "demo", "configuration": configuration, "experiment": experiment.settings}
        )
        == STUDY
    )
    turns = read_study("demo", ["participation=turns", "groups=3", "dropout=0.25"])
    assert study_from_text(turns.to_text()) == turns


def test_dropouts_make_another_experiment_and_laws_do_not():
    plain, turns, dropping = (
        build_experiment(read_study("demo", words)).settings
        for words in ([], ["participation=turns"], ["dropout=0.25"])
    )
    assert plain == turns and "dropout" not in plain["training"]
    assert dropping["training"] == {**plain["training"], "dropout": 0.25}


@pytest.mark.parametrize("law", ["turns", "shuffled"])
def test_a_study_by_another_law_is_planned_without_pilots_and_remembered(law, tmp_path):
    experiment = demo(f"participation={law}", "seeds=1", "rounds=300")
    with Store(f"sqlite:///{tmp_path}/a.db") as store:
        outcome = run_study(experiment, store)
        again = recall_study(experiment, store)
        kept = store.find_step(store.studies()[0], "plan")
    assert outcome.status == "reached" and outcome.pilots == () and outcome.course == "fixed"
    assert again.measured == outcome.measured and again.message == outcome.message
    setting = outcome.setting
    assert setting.participation.law == kept["participation"] == law
    assert kept["local_steps"] == setting.local_steps
    (run,) = outcome.measured.runs
    assert run.setting == setting
    assert outcome.measured.bill.time_s == sum(record.seconds for record in run.rounds)


def test_a_live_federation_is_asked_for_nothing_it_cannot_do():
    study = read_study("demo", ["participation=shuffled", "dropout=0.1"])
    with pytest.raises(InputError, match=r"dropout=0\.1\..* leave out --runner flower"):
        build_experiment(study, federation="lab")


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("shuffled", ["clients-per-round=2,4"]),
        ("weighted", ["clients-per-round=2,4"]),
        ("turns", ["groups=2,3"]),
    ],
)
def test_every_law_is_swept_once_and_recalled(tmp_path, law, words):
    given = ["num-clients=8", "rounds=12", "seeds=2", f"participation={law}", "target-loss=1.2"]
    swept = read_sweep("demo", [*given, "local-steps=5,20", *words])
    experiment = build_experiment(swept.study)
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        result = sweep_study(experiment, swept.grid(experiment.fleet), store)
        assert len(result.runs) == result.total == 8 and len(result.cells) == 4
        assert {run.participation for run in result.runs} == {law}
        found = recall(store, store.studies()[0])
        assert found.sweep is not None and found.sweep.cells == result.cells


def test_numbers_of_groups_that_come_to_the_same_are_trained_once(tmp_path):
    given = ["num-clients=6", "rounds=3", "seeds=1", "participation=turns", "step-time-sd-s=0"]
    swept = read_sweep("demo", [*given, "comm-time-sd-s=0", "groups=1,2,3", "local-steps=5"])
    experiment = build_experiment(swept.study)
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        result = sweep_study(experiment, swept.grid(experiment.fleet), store)
    assert len(result.runs) == result.total == len(result.cells) <= 3


def test_a_sweep_without_a_list_of_groups_tries_some():
    swept = read_sweep("demo", ["participation=turns", "num-clients=8"])
    grid = swept.grid(build_experiment(swept.study).fleet)
    assert grid.groups[0] == 1 and grid.groups[-1] == 8 and not grid.clients_per_round


@pytest.mark.parametrize(
    ("words", "rates"),
    [
        ("schedule=step decay=0.5 decay-every=2", [0.4, 0.4, 0.2, 0.2, 0.1]),
        ("schedule=cosine decay-rounds=4", [0.4, 0.34142, 0.2, 0.05858, 0.004]),
        ("schedule=list rates=[0.3,1]", [0.4, 0.3, 1.0, 1.0, 1.0]),
    ],
)
def test_a_study_trains_with_the_rates_it_asks_for(words, rates):
    study = read_study("demo", ["learning-rate=0.4", *words.split()])
    assert study_from_text(study.to_text()) == study
    experiment = build_experiment(study)
    assert [experiment.rate.at(r) for r in range(5)] == pytest.approx(rates, abs=1e-5)
    plain = build_experiment(read_study("demo", ["learning-rate=0.4"]))
    added = experiment.settings["training"].keys() - plain.settings["training"].keys()
    assert added == {word.split("=")[0].replace("-", "_") for word in words.split()} - {
        "schedule", "decay",
    }  # fmt: skip
