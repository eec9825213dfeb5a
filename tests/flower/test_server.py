"""A study on a live federation: what `fedplan run` does, with real seconds and real nodes."""

from __future__ import annotations

import numpy as np
import pytest
from flower.conftest import CLIENTS, make_federation
from flower.federation import Node

from fedplan import FedplanError
from fedplan.flower.server import live_engine
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.devices import observed_devices, with_devices
from fedplan.studies.experiment import build_experiment
from fedplan.studies.grid import read_sweep
from fedplan.studies.stored import recall
from fedplan.studies.sweep import recall_sweep, sweep_study
from fedplan.studies.workflow import recall_study, run_study

STUDY = ("schedule=constant", "learning-rate=0.02", "target-loss=0.9", "seeds=2")


STEP_SECONDS = np.linspace(0.0625, 0.25, CLIENTS)


class Killed(BaseException):
    """What ends a server at once."""


@pytest.fixture(scope="module")
def experiment():
    return build_experiment(read_study("demo", STUDY), federation="lab")


def run(experiment, folder, federation, *, kill_at=None):
    """Run the study; the server is killed when it reports its `kill_at`-th round."""
    reported = []

    def report(step, job, record):
        reported.append((step, job, record))
        if len(reported) == kill_at:
            raise Killed

    with Store(f"sqlite:///{folder}/runs.db") as store:
        outcome = run_live(federation, experiment, store, folder, report=report)
    return outcome, reported


def run_live(federation, experiment, store, folder, report=None):
    engine = live_engine(federation.grid, experiment, store, folder, clock=federation.clock)
    return run_study(experiment, store, engine=engine, report=report)


def facts(outcome):
    return outcome.status, outcome.setting, outcome.pilots, outcome.measured, outcome.message


@pytest.fixture(scope="module")
def uninterrupted(experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    federation = make_federation(experiment.simulator.learner)
    for place, node in enumerate(federation.grid.nodes.values()):
        node.config["name"] = f"phone-{place}"  # which client it trains, its partition-id says
    return folder, *run(experiment, folder, federation)


def test_the_study_is_run_with_real_seconds_and_recalled_from_the_store(experiment, uninterrupted):
    folder, outcome, reported = uninterrupted
    assert outcome.status == "reached" and len(outcome.measured.runs) == 2
    assert experiment.study.fleet is None and {step for step, *_ in reported} == {"training"}
    assert outcome.course == "online"
    first, *_, last = [record.setting for _, _, record in reported if record.round]
    assert first.local_steps == 10 and last.groups > 1
    slowest = max(one.round_trip_seconds for one in reported[-1][2].observations)
    assert slowest <= reported[-1][2].seconds < slowest + 0.2  # and what the polling adds
    with Store(f"sqlite:///{folder}/runs.db") as store:
        trained = with_devices(experiment, store)
        assert len(trained.fleet) == CLIENTS and trained.fleet.device[3] == "partition-3"
        assert facts(recall_study(trained, store)) == facts(recall_study(experiment, store))
        assert facts(recall_study(trained, store)) == facts(outcome)
        assert observed_devices(store, store.studies()[-1]).names == trained.fleet.device
        assert recall(store, store.studies()[-1]).outcome.message == outcome.message
    assert trained.fleet.step_time_s == pytest.approx(STEP_SECONDS, rel=0.1)
    assert outcome.alternatives and outcome.groups[0].time_s > 0.25 * first.local_steps


@pytest.mark.parametrize(
    "words",
    [
        ("course=fedtune",),
        ("participation=turns",),
        ("participation=uniform",),
        ("course=paper", "pairs=[[4,5],[8,20]]", "upper-loss=1.6", "lower-loss=1.2"),
    ],
    ids=["fedtune", "turns", "uniform", "paper"],
)
def test_courses_are_made_for_what_the_first_rounds_have_measured(tmp_path, words):
    described = read_study("demo", [*STUDY[:3], "seeds=1", "target-loss=1.1", *words])
    experiment = build_experiment(described, federation="lab")
    federation = make_federation(experiment.simulator.learner)
    outcome, reported = run(experiment, tmp_path, federation)
    assert outcome.status == "reached"
    settings = [
        record.setting for step, _, record in reported if record.round and step == "training"
    ]
    later = {setting.participation.law for setting in settings[2:]}
    if outcome.course == "paper":
        assert len(outcome.pilots) == 2 and len(set(settings)) == 1
        return
    assert [setting.local_steps for setting in settings[:2]] == [10, 20]
    assert later == {"turns" if "participation=turns" in words else "uniform"}
    if outcome.course == "fixed":
        assert len(set(settings[2:])) == 1
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        assert facts(recall_study(experiment, store)) == facts(outcome)


def test_limits_that_measured_devices_cannot_keep_end_a_fixed_course(tmp_path):
    words = [*STUDY, "seeds=1", "participation=uniform", "deadline-s=3"]
    experiment = build_experiment(read_study("demo", words), federation="lab")
    federation = make_federation(experiment.simulator.learner)
    outcome, reported = run(experiment, tmp_path, federation)
    assert outcome.status == "hopeless" and reported[-1][2].round == 2


@pytest.mark.parametrize("kill_at", [1, 17, -1])
def test_a_killed_server_goes_on_and_comes_to_the_same(
    experiment, uninterrupted, tmp_path, kill_at
):
    _, outcome, reported = uninterrupted
    place = kill_at % len(reported)
    with pytest.raises(Killed):
        run(experiment, tmp_path, make_federation(experiment.simulator.learner), kill_at=place)
    federation = make_federation(experiment.simulator.learner, first_id=9000)
    again, rest = run(experiment, tmp_path, federation)
    assert facts(again) == facts(outcome)
    assert [one.losses for one in again.measured.runs] == [
        one.losses for one in outcome.measured.runs
    ]
    assert len(rest) == len(reported) - place


def test_a_sweep_trains_every_setting_on_the_nodes_and_is_recalled(experiment, tmp_path):
    swept = read_sweep("demo", [*STUDY, "clients-per-round=5,20", "local-steps=20"])
    federation = make_federation(experiment.simulator.learner)
    reported = []
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        engine = live_engine(federation.grid, experiment, store, tmp_path, clock=federation.clock)
        tried = swept.grid(experiment.assumed_fleet)
        made = sweep_study(
            experiment, tried, store, engine=engine,
            progress=lambda *words: reported.append(words),
        )  # fmt: skip
        recalled = recall_sweep(with_devices(experiment, store), tried, store)
    simulated = build_experiment(swept.study)
    with Store(f"sqlite:///{tmp_path}/simulated.db") as store:
        expected = sweep_study(simulated, swept.grid(simulated.fleet), store)
    assert [run.rounds for run in made.runs] == [run.rounds for run in expected.runs]
    assert len(reported) == sum(1 + run.rounds for run in made.runs)  # and before the first
    assert recalled.runs == made.runs and recalled.best.setting == made.best.setting
    assert all(run.time_s > 0 for run in made.runs)


def test_simulated_runs_are_not_taken_for_live_ones(experiment, uninterrupted, tmp_path):
    folder, *_ = uninterrupted
    simulated = build_experiment(read_study("demo", STUDY))
    assert simulated.settings != experiment.settings
    reported = []
    with Store(f"sqlite:///{folder}/runs.db") as store:
        run_study(simulated, store, report=lambda *words: reported.append(words))
    assert reported


def test_too_few_nodes_are_an_error_with_both_numbers(experiment, tmp_path):
    federation = make_federation(experiment.simulator.learner)
    nodes = federation.grid.nodes
    del nodes[next(iter(nodes))]
    with pytest.raises(FedplanError, match=r"has 20 clients, .* the federation has 19 nodes"):
        run(experiment, tmp_path, federation)


def test_a_node_that_is_no_client_of_the_study_is_named(experiment, tmp_path):
    federation = make_federation(experiment.simulator.learner)
    federation.grid.nodes[1] = Node({"partition-id": 20})
    with pytest.raises(FedplanError, match=r"21 nodes, partition-20 among them"):
        run(experiment, tmp_path, federation)


def test_a_federation_that_falls_silent_is_an_error_and_goes_on_later(experiment, tmp_path):
    federation = make_federation(experiment.simulator.learner)
    nodes = dict(federation.grid.nodes)

    def report(_step, _job, record):
        if record.round == 3:
            federation.grid.nodes.clear()

    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        with pytest.raises(FedplanError, match=r"A round could not be made\. Round 4 has nobody"):
            run_live(federation, experiment, store, tmp_path, report)
        federation.grid.nodes.update(nodes)
        outcome = run_live(federation, experiment, store, tmp_path)
    assert outcome.status == "reached"
