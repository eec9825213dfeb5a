"""The whole way on a live federation: profile, pilots, plan, training, and restarts."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from flower.conftest import CLIENTS, RATE, make_federation
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import Result

from fedplan import FedplanError, InputError, read_fleet
from fedplan.core.objective import Objective
from fedplan.core.records import Observation, Stop
from fedplan.flower import PlannedFedAvg, RoundRules, course, journal
from fedplan.flower.drift import drifted
from fedplan.participation import uniform
from fedplan.planning.descent_plan import forecast
from fedplan.profiling import fleet_of, observed_costs
from fedplan.store import Store
from fedplan.studies.devices import observed_devices
from fedplan.studies.keys import PlanningTable

TARGET = 0.8


class Killed(BaseException):
    """What ends a server at once."""


def start(federation, folder, *, kill_at=None, **options):
    """Start a server; it is killed when it evaluates the model for the `kill_at`-th time."""
    evaluations = 0

    def evaluate_fn(round_, arrays):
        nonlocal evaluations
        evaluations += 1
        if evaluations == kill_at:
            raise Killed
        loss, accuracy = federation.evaluate(round_, arrays)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    strategy = PlannedFedAvg(
        target_loss=options.pop("target_loss", TARGET),
        learning_rate=RATE,
        store=f"sqlite:///{folder}/fedplan.db",
        clock=federation.clock,
        **options,
    )
    rounds = 300
    result = strategy.start(
        federation.grid, federation.initial, num_rounds=rounds, evaluate_fn=evaluate_fn, timeout=60
    )
    return strategy, result


def stored(folder, phase):
    """The runs of a phase; pilots have seeds of their own."""
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        (study,) = store.studies()
        runs = store.find_runs(study.experiment.settings)
    is_pilot = [run.seed >= PlanningTable().pilot_seed for run in runs]
    return [run for run, one in zip(runs, is_pilot, strict=True) if one == (phase == "pilots")]


@pytest.fixture(scope="module")
def uninterrupted(logistic, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    return folder, *start(make_federation(logistic), folder)


def test_it_profiles_pilots_plans_and_trains_to_the_target(federation, uninterrupted):
    folder, strategy, result = uninterrupted
    assert isinstance(result, Result) and strategy.status == "target"
    losses = result.evaluate_metrics_serverapp
    assert losses[len(losses) - 1]["loss"] <= TARGET < losses[len(losses) - 2]["loss"]
    assert federation.evaluate(0, result.arrays)[0] == losses[len(losses) - 1]["loss"]
    fleet = read_fleet(strategy.folder / "fleet.csv")
    assert len(fleet) == CLIENTS and fleet.device[3] == "partition-3"
    np.testing.assert_allclose(fleet.step_time_s, np.linspace(0.0625, 0.25, CLIENTS), rtol=0.02)
    np.testing.assert_allclose(fleet.comm_time_s, 0.5, atol=0.2)  # and what the polling adds
    np.testing.assert_allclose(fleet.step_energy_j, 2.0)
    assert len(stored(folder, "pilots")) >= 3
    (run,) = stored(folder, "training")
    assert (run.clients_per_round, run.local_steps) == strategy.setting
    assert run.status == "target" and all(record.observations for record in run.rounds[1:])
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        devices = observed_devices(store, store.studies()[-1])
    assert not devices.costs.rejected and devices.names == tuple(fleet.device)
    np.testing.assert_allclose(devices.fleet.step_time_s, fleet.step_time_s, rtol=0.02)


def test_steps_too_quick_to_tell_are_profiled_with_more_of_them(federation, tmp_path):
    federation.learner._step_s[:] = 2 / 1024  # seconds: ten take less than a client's usual delays
    with pytest.raises(Killed):
        start(federation, tmp_path, kill_at=1)
    (fleet_csv,) = tmp_path.glob("*/fleet.csv")
    assert read_fleet(fleet_csv).step_time_s == pytest.approx(2 / 1024)
    assert steps_asked_for(federation) == [2] * CLIENTS + [100] * CLIENTS


def test_what_a_client_takes_to_start_is_not_taken_for_its_steps(federation, tmp_path):
    starting, train_round = {3}, federation.learner.train_round

    def train_slowly_at_first(weights, cohort, *how):
        train_round(weights, cohort, *how)
        if cohort[0] in starting:
            starting.remove(cohort[0])
            federation.clock.train(30.0)

    federation.learner.train_round = train_slowly_at_first
    with pytest.raises(Killed):
        start(federation, tmp_path, kill_at=1)
    (fleet_csv,) = tmp_path.glob("*/fleet.csv")
    fleet = read_fleet(fleet_csv)
    np.testing.assert_allclose(fleet.step_time_s, np.linspace(0.0625, 0.25, CLIENTS), rtol=0.02)
    assert steps_asked_for(federation) == [2] * CLIENTS + [10] * CLIENTS + [2] * CLIENTS


def steps_asked_for(federation):
    trained = [sent for sent in federation.grid.sent if sent.metadata.message_type == "train"]
    return [sent.content["config"]["local-steps"] for sent in trained]


def test_a_given_plan_is_used_without_pilots(federation, simulator, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"clients_per_round": 6, "local_steps": 8, "more": 1}))
    strategy, result = start(federation, tmp_path, plan=plan)
    simulated = simulator.run(uniform(6, 8), Stop(max_rounds=300, target_loss=TARGET))
    losses = [metrics["loss"] for metrics in result.evaluate_metrics_serverapp.values()]
    np.testing.assert_allclose(losses, simulated.losses, rtol=1e-5)
    assert strategy.setting == (6, 8) and strategy.status == "target"


def test_clients_can_evaluate(federation, tmp_path):
    strategy = PlannedFedAvg(
        target_loss=1.0, learning_rate=RATE, plan=(6, 8), clock=federation.clock,
        store=f"sqlite:///{tmp_path}/fedplan.db",
    )  # fmt: skip
    result = strategy.start(federation.grid, federation.initial, num_rounds=2)
    assert strategy.status == "rounds" and sorted(result.evaluate_metrics_clientapp) == [0, 1, 2]
    assert not result.evaluate_metrics_serverapp


@pytest.mark.parametrize("kill_at", [1, 10, 36, 42, 64])  # pilots end, training begins at 40
def test_a_killed_server_goes_on_and_comes_to_the_same(logistic, uninterrupted, tmp_path, kill_at):
    whole, strategy, result = uninterrupted
    with pytest.raises(Killed):
        start(make_federation(logistic, first_id=500), tmp_path, kill_at=kill_at)
    again, resumed = start(make_federation(logistic, first_id=9000), tmp_path)
    assert (again.setting, again.status) == (strategy.setting, strategy.status)
    np.testing.assert_array_equal(
        resumed.arrays["weights"].numpy(), result.arrays["weights"].numpy()
    )
    assert resumed.evaluate_metrics_serverapp == result.evaluate_metrics_serverapp
    for phase in ("pilots", "training"):
        assert stored(tmp_path, phase) == stored(whole, phase)


def test_a_server_that_has_arrived_trains_no_more(logistic, tmp_path):
    _, result = start(make_federation(logistic), tmp_path, plan=(5, 10))
    federation = make_federation(logistic)
    _, again = start(federation, tmp_path, plan=(5, 10))
    assert all(sent.metadata.message_type != "train" for sent in federation.grid.sent)
    np.testing.assert_array_equal(again.arrays["weights"].numpy(), result.arrays["weights"].numpy())


def test_another_plan_given_by_hand_goes_on_from_the_model_there_is(logistic, tmp_path):
    federation = make_federation(logistic)
    with pytest.raises(Killed):
        start(federation, tmp_path, plan=(5, 10), kill_at=6)
    strategy, result = start(federation, tmp_path, plan=(8, 4))
    assert strategy.setting == (8, 4) and strategy.status == "target"
    run = next(run for run in stored(tmp_path, "training") if run.status == "target")
    assert [len(record.cohort) for record in run.rounds[1:6]] == [5, 5, 5, 5, 8]
    rounds = [record.round for record in run.rounds]
    assert list(result.evaluate_metrics_serverapp) == rounds


def test_a_round_whose_model_was_not_saved_is_made_again(logistic, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    _, result = start(make_federation(logistic), whole, plan=(5, 10))
    saved = 0

    def save(*words):
        nonlocal saved
        saved += 1
        if saved == 8:  # the round is in the store, the model is not in its file
            raise Killed
        save_weights(*words)

    save_weights = journal.save_weights
    monkeypatch.setattr(journal, "save_weights", save)
    with pytest.raises(Killed):
        start(make_federation(logistic), parts, plan=(5, 10))
    _, resumed = start(make_federation(logistic), parts, plan=(5, 10))
    np.testing.assert_array_equal(
        resumed.arrays["weights"].numpy(), result.arrays["weights"].numpy()
    )
    assert stored(parts, "training") == stored(whole, "training")


def test_a_network_that_slows_down_is_planned_for_anew(federation, tmp_path, monkeypatch):
    plans = []
    after_round = course.Course._after_round

    def slow_down(work, job, made):
        plans.append((job.setting.clients_per_round, job.setting.local_steps))
        if made.record.round == 2:
            for node in federation.grid.nodes.values():
                node.comm_s = 20.0
        return after_round(work, job, made)

    monkeypatch.setattr(course.Course, "_after_round", slow_down)
    strategy, result = start(federation, tmp_path)
    assert len(set(plans)) == 2 and plans[-1][1] > plans[0][1]  # dear rounds: more steps in each
    assert plans[10] == plans[0] and plans[11] == plans[-1] == strategy.setting
    losses = [metrics["loss"] for metrics in result.evaluate_metrics_serverapp.values()]
    assert strategy.status == "target" and len(losses) == len(plans)
    (sent,) = {
        federation.evaluate(11, message.content["arrays"])[0]
        for message in federation.grid.sent
        if message.metadata.group_id == "11" and message.content["config"]["seed"] == 0
    }
    assert sent == losses[10]  # the model trained so far was kept
    (run,) = [run for run in stored(tmp_path, "training") if run.status == "target"]
    assert list(run.losses) == losses
    again, resumed = start(federation, tmp_path)
    assert again.setting == strategy.setting
    assert resumed.evaluate_metrics_serverapp == result.evaluate_metrics_serverapp


def test_where_the_target_is_overdue_more_clients_take_part(federation, tmp_path, monkeypatch):
    def too_hopeful(*arguments):
        return replace(forecast(*arguments), rounds_interval=(1.0, 2.0))

    monkeypatch.setattr(course, "forecast", too_hopeful)
    energy = Objective.weighted(1.0)
    strategy, _ = start(federation, tmp_path, objective=energy)
    with Store(f"sqlite:///{tmp_path}/fedplan.db", readonly=True) as store:
        (study,) = store.studies()
        plans = store.find_step(study, "plans")
        assert store.find_step(study, "fewest-clients") == CLIENTS == 20
    assert [k for _, k, _ in plans] == [2, 4, 8, 16, 20]  # the cheapest, then twice as many
    assert [begun for begun, _, _ in plans] == [0, 3, 6, 9, 12]
    assert strategy.status == "target" and "(4, 2) from round 4, (8, 2)" in strategy.message
    again, _ = start(federation, tmp_path, objective=energy)
    assert again.setting == strategy.setting


def test_a_study_that_has_ended_is_not_said_to_have_had_another_plan(logistic, tmp_path):
    _, first = start(make_federation(logistic), tmp_path, plan=(5, 10))
    again, second = start(make_federation(logistic), tmp_path, plan=(2, 50))
    assert again.setting == (5, 10)
    assert second.evaluate_metrics_serverapp == first.evaluate_metrics_serverapp
    assert [run.local_steps for run in stored(tmp_path, "training")] == [10]


def test_a_target_out_of_reach_is_no_plan(federation, tmp_path):
    with pytest.raises(FedplanError, match="There is no plan"):
        start(federation, tmp_path, target_loss=3.0)


def test_a_server_that_starts_first_waits_for_its_clients(federation, tmp_path):
    grid, sleep = federation.grid, federation.clock.sleep
    nodes, grid.nodes = grid.nodes, {}
    with pytest.raises(FedplanError, match="20 clients are to be there, but after 300 s 0 are"):
        start(federation, tmp_path, plan=(5, 10), min_clients=CLIENTS)
    end = federation.clock.now() + 100

    def arrive(seconds):
        sleep(seconds)
        if federation.clock.now() > end:
            grid.nodes = nodes

    federation.clock.sleep = arrive
    strategy, _ = start(federation, tmp_path, plan=(5, 10), min_clients=CLIENTS)
    assert strategy.status == "target"


def test_a_federation_that_fails_says_why(federation, tmp_path):
    for partition in range(CLIENTS):
        federation.node_of(partition).tamper = lambda *_: None
    with pytest.raises(FedplanError, match="no client has answered well enough"):
        start(federation, tmp_path)
    strategy, _ = start(
        federation, tmp_path, plan=(5, 5), rules=RoundRules(wait_s=1.0, max_repeats=0)
    )
    assert strategy.status == "unavailable" and "no answer within 60 s" in strategy.message


@pytest.mark.parametrize("text", ["", "{}", '{"clients_per_round": 0, "local_steps": 1}', "[1]"])
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"plan\.json"):
        PlannedFedAvg(target_loss=1.0, learning_rate=0.1, plan=path)


@pytest.mark.parametrize("plan", [(0, 10), (4,), (4, 2.5)])
@pytest.mark.parametrize("target_loss", [0.0, -1.0, math.nan, math.inf])
def test_options_that_make_no_sense_are_refused_all_at_once(plan, target_loss):
    with pytest.raises(InputError) as refused:
        PlannedFedAvg(
            target_loss=target_loss, learning_rate=0.1, patience=0, min_clients=-1, plan=plan
        )
    for word in ("target_loss > 0", "patience >= 1", "min_clients >= 1", "plan must be (K, E)"):
        assert word in str(refused.value)


def test_another_model_under_the_same_name_is_refused(logistic, tmp_path):
    federation = make_federation(logistic)
    strategy, _ = start(federation, tmp_path, plan=(5, 10))
    with pytest.raises(InputError, match="is of another model"):
        strategy.start(federation.grid, ArrayRecord({"other": Array(np.zeros((7, 2)))}))


def test_a_damaged_model_is_said_to_be(logistic, tmp_path):
    start(make_federation(logistic), tmp_path, plan=(5, 10))
    (path,) = (tmp_path / "flower-flower" / "training").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read as a model"):
        start(make_federation(logistic), tmp_path, plan=(5, 10))


def observe(client, steps, train, trip, joules=None, problem=""):
    return Observation(
        client=client, local_steps=steps, train_seconds=train, round_trip_seconds=trip,
        joules=joules, problem=problem,
    )  # fmt: skip


def test_costs_are_robust_to_outliers_and_failures():
    seen = [observe(0, e, 1 + 0.5 * e, 3 + 0.5 * e, 2.0 * e) for e in (2, 10) * 5]
    seen += [observe(0, 10, 90.0, 95.0), observe(0, 2, None, None, problem="late")]
    costs = observed_costs(seen).devices
    assert costs[0].step_time_s.value == pytest.approx(0.5)
    assert costs[0].exchange_s.value == pytest.approx(2.0)
    fleet = fleet_of(costs, ["a", "b"])  # the second never answered
    assert fleet.step_time_s.tolist() == pytest.approx([0.5, 0.5])
    assert fleet.comm_time_s.tolist() == pytest.approx([3.0, 3.0])
    slower = drifted(costs, [observe(0, 10, 18.0, 20.0)] * 3)[0]
    assert slower.step_time_s.value == pytest.approx(1.5)
    assert slower.exchange_s.value == pytest.approx(2.0)
    assert drifted(costs, [observe(0, 10, 18.0, 20.0)]) == costs
