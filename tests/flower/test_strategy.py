"""The whole way on a live federation: from the first round to the target, and restarts."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from flower.conftest import CLIENTS, RATE, make_federation
from flower.federation import Node
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import Result

from fedplan import FedplanError, Fleet, InputError, read_fleet
from fedplan.convergence.saturation import RANGE
from fedplan.core.constraints import Constraints
from fedplan.core.records import Stop
from fedplan.course.elasticity import DOUBT
from fedplan.course.live import LiveOnline
from fedplan.course.steering import MOVE
from fedplan.flower import PlannedFedAvg, RoundRules, journal
from fedplan.flower.kept_study import begun_from
from fedplan.participation import uniform
from fedplan.participation.grouping import RAREST
from fedplan.store import Store
from fedplan.studies.devices import observed_devices
from fedplan.studies.sinks import OPENERS
from fedplan.tables import write_fleet

TARGET, GENTLE = 1.0, 0.01  # a rate at which clients of unlike data do not undo each other's work
NODE_SECONDS = np.linspace(0.0625, 0.25, CLIENTS)  # of a step


class Killed(BaseException):
    """What ends a server at once."""


def start(federation, folder, *, kill_at=None, num_rounds=300, **options):
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
        learning_rate=options.pop("learning_rate", GENTLE),
        store=f"sqlite:///{folder}/fedplan.db",
        clock=federation.clock,
        **options,
    )
    result = strategy.start(
        federation.grid,
        federation.initial,
        num_rounds=num_rounds,
        evaluate_fn=evaluate_fn,
        timeout=60,
    )
    return strategy, result


def stored(folder):
    """The runs of the study."""
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        (study,) = store.studies()
        return store.find_runs(study.experiment.settings)


def test_sinks_hear_every_round_and_one_that_fails_ends_nothing(logistic, tmp_path, monkeypatch):
    told = []

    def broken(_name):
        raise ConnectionError("no route to host")

    def listening(_name):
        return lambda values, round_: told.append((round_, values)), lambda: told.append("end")

    monkeypatch.setitem(OPENERS, "mlflow", ("json", "", broken))
    monkeypatch.setitem(OPENERS, "wandb", ("json", "", listening))
    sinks = ["mlflow", "wandb"]
    strategy, _ = start(make_federation(logistic), tmp_path, num_rounds=4, sinks=sinks)
    assert strategy.status == "rounds"
    *rounds, end = told
    assert end == "end" and [round_ for round_, _ in rounds] == [0, 1, 2, 3, 4]
    (run,) = stored(tmp_path)
    assert [values["loss"] for _, values in rounds] == list(run.losses)
    assert rounds[-1][1]["spent_s"] == pytest.approx(run.time_s)


@pytest.fixture(scope="module")
def uninterrupted(logistic, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    return folder, *start(make_federation(logistic), folder)


def test_it_trains_from_the_first_round_to_the_target(federation, uninterrupted):
    folder, strategy, result = uninterrupted
    assert isinstance(result, Result) and strategy.status == "target"
    losses = result.evaluate_metrics_serverapp
    assert losses[len(losses) - 1]["loss"] <= TARGET < losses[len(losses) - 2]["loss"]
    assert federation.evaluate(0, result.arrays)[0] == losses[len(losses) - 1]["loss"]
    (run,) = stored(folder)
    assert run.course == "online" and run.status == "target" and run.decisions == strategy.decisions
    assert [record.loss for record in run.rounds] == [one["loss"] for one in losses.values()]
    assert strategy.setting == run.rounds[-1].setting
    assert run.rounds[1].cohort == tuple(range(CLIENTS))  # whoever is there trains at once
    assert [record.setting.local_steps for record in run.rounds[1:3]] == [10, 20]
    assert run.rounds[3].setting.groups > 1
    assert all(record.observations and record.signal for record in run.rounds[1:])
    assert all("." in decision.why for decision in run.decisions)


def test_what_the_devices_cost_is_measured_as_they_train(uninterrupted):
    folder, strategy, _ = uninterrupted
    fleet = read_fleet(strategy.folder / "fleet.csv")
    assert len(fleet) == CLIENTS and fleet.device[3] == "partition-3"
    np.testing.assert_allclose(fleet.step_time_s, NODE_SECONDS, rtol=0.05)
    np.testing.assert_allclose(fleet.comm_time_s, 0.5, atol=0.25)  # and what the polling adds
    np.testing.assert_allclose(fleet.step_energy_j, 2.0)
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        devices = observed_devices(store, store.studies()[-1])
    assert not devices.costs.rejected and devices.names == tuple(fleet.device)
    (run,) = stored(folder)
    slowest_last = [max(group) for group in run.rounds[4].setting.participation.groups]
    assert slowest_last == sorted(slowest_last)


def test_known_devices_are_grouped_from_the_first_round(federation, tmp_path):
    names = [f"partition-{client}" for client in range(CLIENTS)]
    fleet = Fleet(step_time_s=NODE_SECONDS, comm_time_s=0.5, device=names)
    write_fleet(tmp_path / "fleet.csv", fleet)
    strategy, _ = start(federation, tmp_path, fleet=tmp_path / "fleet.csv")
    (run,) = stored(tmp_path)
    assert run.setting.groups > 1 and strategy.status == "target"


def test_another_seed_begins_with_what_earlier_runs_have_measured(logistic, tmp_path):
    start(make_federation(logistic), tmp_path, plan=(10, 5), num_rounds=5)
    start(make_federation(logistic), tmp_path, seed=1)
    runs = {run.seed: run for run in stored(tmp_path)}
    assert runs[0].setting == uniform(10, 5) and runs[1].setting.groups > 1


def test_limits_on_clients_and_steps_are_kept_from_the_first_round(federation, tmp_path):
    limits = Constraints(max_clients_per_round=4, max_local_steps=8)
    start(federation, tmp_path, constraints=limits, num_rounds=25)
    (run,) = stored(tmp_path)
    assert all(1 <= len(record.cohort) <= 4 for record in run.rounds[1:])
    assert all(record.setting.local_steps <= 8 for record in run.rounds[1:])
    # Where nothing is known, groups are in the order in which the clients were met.
    first = run.rounds[1].setting.participation.groups
    assert first == tuple(tuple(range(start, start + 4)) for start in range(0, CLIENTS, 4))


def test_clients_that_send_no_sketch_are_trained_with_all_the_same(federation, tmp_path):
    def forget(_, reply):
        del reply.content["metrics"]["fedplan-halfway"]
        return reply

    for node in federation.grid.nodes.values():
        node.tamper = forget
    strategy, _ = start(federation, tmp_path)
    (run,) = stored(tmp_path)
    assert strategy.status == "target" and not any(record.signal for record in run.rounds)
    assert len({record.setting.local_steps for record in run.rounds[4:]}) == 1


def test_a_given_plan_is_kept_to(federation, simulator, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"clients_per_round": 6, "local_steps": 8, "more": 1}))
    strategy, result = start(federation, tmp_path, plan=plan, learning_rate=RATE, target_loss=0.8)
    simulated = simulator.run(uniform(6, 8), Stop(max_rounds=300, target_loss=0.8))
    losses = [metrics["loss"] for metrics in result.evaluate_metrics_serverapp.values()]
    np.testing.assert_allclose(losses, simulated.losses, rtol=1e-5)
    assert strategy.setting == uniform(6, 8) and strategy.status == "target"


def test_clients_can_evaluate(federation, tmp_path):
    strategy = PlannedFedAvg(
        target_loss=1.0, learning_rate=RATE, plan=(6, 8), clock=federation.clock,
        store=f"sqlite:///{tmp_path}/fedplan.db",
    )  # fmt: skip
    result = strategy.start(federation.grid, federation.initial, num_rounds=2)
    assert strategy.status == "rounds" and sorted(result.evaluate_metrics_clientapp) == [0, 1, 2]
    assert not result.evaluate_metrics_serverapp


def test_clients_can_evaluate_an_online_course(federation, tmp_path):
    strategy = PlannedFedAvg(
        target_loss=1.2, learning_rate=GENTLE, clock=federation.clock,
        store=f"sqlite:///{tmp_path}/fedplan.db",
    )  # fmt: skip
    result = strategy.start(federation.grid, federation.initial, num_rounds=40)
    losses = [one["eval_loss"] for one in result.evaluate_metrics_clientapp.values()]
    assert strategy.status == "target" and losses[-1] <= 1.2
    evaluated = [one for one in federation.grid.sent if one.metadata.message_type == "evaluate"]
    assert len(evaluated) == CLIENTS * len(losses)  # the average alone: each takes a round trip


@pytest.mark.parametrize("kill_at", [1, 2, 3, 4, 5, 9, 16, 21])
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
    assert again.decisions == strategy.decisions
    assert stored(tmp_path) == stored(whole)


def test_stored_rounds_make_the_same_steering_again(uninterrupted):
    whole, strategy, _ = uninterrupted
    (run,) = stored(whole)
    with Store(f"sqlite:///{whole}/fedplan.db", readonly=True) as store:
        begun = store.find_step(store.studies()[0], "start-0")
    one = begun_from(begun, strategy._problem, None).begin()
    for record in run.rounds:
        if record.setting is not None:
            assert one.ask() == record.setting
        one.tell(record)
    assert isinstance(one, LiveOnline) and tuple(one.decisions) == run.decisions


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
    assert strategy.setting == uniform(8, 4) and strategy.status == "target"
    (run,) = stored(tmp_path)
    assert [len(record.cohort) for record in run.rounds[1:6]] == [5, 5, 5, 5, 8]
    rounds = [record.round for record in run.rounds]
    assert list(result.evaluate_metrics_serverapp) == rounds


def test_from_a_fixed_plan_to_the_online_course_and_back(logistic, tmp_path):
    federation = make_federation(logistic)
    start(federation, tmp_path, plan=(5, 10), num_rounds=3)
    start(federation, tmp_path, num_rounds=8)
    start(federation, tmp_path, plan=(4, 4), num_rounds=10)
    (run,) = stored(tmp_path)
    laws = [record.setting.participation.law for record in run.rounds[1:]]
    assert laws == ["uniform"] * 3 + ["turns"] * 5 + ["uniform"] * 2 and run.num_rounds == 10


def test_a_round_whose_model_was_not_saved_is_made_again(logistic, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    _, result = start(make_federation(logistic), whole)
    saved = 0

    def save(*words):
        nonlocal saved
        saved += 1
        if saved == 12:  # the round is in the store, the model is not in its file
            raise Killed
        save_weights(*words)

    save_weights = journal.save_weights
    monkeypatch.setattr(journal, "save_weights", save)
    with pytest.raises(Killed):
        start(make_federation(logistic), parts)
    _, resumed = start(make_federation(logistic), parts)
    np.testing.assert_array_equal(
        resumed.arrays["weights"].numpy(), result.arrays["weights"].numpy()
    )
    assert stored(parts) == stored(whole)


def after_round(federation, monkeypatch, round_, change):
    """Have something happen in the federation when a round of training begins."""
    push, done = federation.grid.push_messages, []

    def push_messages(messages):
        if not done and any(
            one.metadata.message_type == "train" and one.metadata.group_id == str(round_)
            for one in messages
        ):
            done.append(True)
            change()
        return push(messages)

    monkeypatch.setattr(federation.grid, "push_messages", push_messages)


def test_a_network_that_slows_down_makes_longer_rounds(federation, tmp_path, monkeypatch):
    def slow_down():
        for node in federation.grid.nodes.values():
            node.comm_s = 20.0

    after_round(federation, monkeypatch, 6, slow_down)
    strategy, _ = start(federation, tmp_path, target_loss=0.6, num_rounds=60)
    (run,) = stored(tmp_path)
    before, later = (run.rounds[place].setting.local_steps for place in (6, -1))
    assert later > 1.5 * before and "costs have changed" in str(strategy.decisions)


def test_a_device_that_slows_down_comes_into_a_slower_group(federation, tmp_path, monkeypatch):
    def slow_down():
        federation.learner._step_s[0] = 2.0

    after_round(federation, monkeypatch, 6, slow_down)
    start(federation, tmp_path, target_loss=0.6, num_rounds=60)
    (run,) = stored(tmp_path)
    assert 0 in run.rounds[4].setting.participation.groups[0]
    assert 0 in run.rounds[-1].setting.participation.groups[-1]


def test_a_node_that_comes_late_joins_a_group(federation, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    grid = federation.grid
    late = next(id_ for id_, node in grid.nodes.items() if node.config["partition-id"] == 19)
    node = grid.nodes.pop(late)
    after_round(federation, monkeypatch, 4, lambda: grid.nodes.update({77: node}))
    with pytest.raises(Killed):
        start(federation, tmp_path, kill_at=15)
    strategy, _ = start(federation, tmp_path)
    (run,) = stored(tmp_path)
    groups = [record.setting.participation.groups for record in run.rounds[1:]]
    known = [sum(map(len, each)) for each in groups]
    assert known[:5] == [19] * 5 and known[-1] == CLIENTS and sorted(known) == known
    assert "New clients have come: 1." in str(strategy.decisions)
    assert all(decision.why in caplog.text for decision in strategy.decisions)
    assert any(19 in record.cohort for record in run.rounds) and strategy.status == "target"


def test_a_node_that_has_gone_is_missed_and_returned_to(federation, tmp_path, monkeypatch):
    grid = federation.grid
    gone = next(id_ for id_, node in grid.nodes.items() if node.config["partition-id"] == 3)
    after_round(federation, monkeypatch, 4, lambda: grid.nodes.pop(gone))
    after_round(
        federation, monkeypatch, 12, lambda: grid.nodes.update({5: Node({"partition-id": 3})})
    )
    start(federation, tmp_path, target_loss=0.6, num_rounds=30)
    (run,) = stored(tmp_path)
    away = [r.round for r in run.rounds for one in r.observations
            if one.client == 3 and one.problem == "it is not there"]  # fmt: skip
    there = [record.round for record in run.rounds if 3 in record.cohort]
    assert away and min(away) > 4 and max(away) < 14 and max(there) > 12


def hostile_sketch(value):
    def tamper(_, reply):
        reply.content["metrics"]["fedplan-halfway"] = value
        return reply

    return tamper


@pytest.mark.parametrize(
    "value",
    [[1.0] * 255, [math.nan] * 256, [1e300] * 256, [math.inf] * 256, 3.0, []],
    ids=["short", "nan", "huge", "infinite", "number", "empty"],
)
def test_hostile_sketches_are_dropped_and_counted(federation, tmp_path, value):
    federation.node_of(7).tamper = hostile_sketch(value)
    strategy, _ = start(federation, tmp_path, num_rounds=2)
    (run,) = stored(tmp_path)
    assert "2 half-way sketches could not be used" in strategy.message
    assert all(7 in record.cohort for record in run.rounds[1:])  # its update is as good as any
    for record in run.rounds[1:]:
        assert np.isfinite(record.signal.halfway).all()
        assert np.linalg.norm(record.signal.halfway) < 10 * np.linalg.norm(record.signal.whole)


LIES = {
    "no way half-way": {"fedplan-halfway": [0.0] * 256},
    "all of the way half-way": {"fedplan-halfway": [0.05] * 256},
    "no time": {"fedplan-train-seconds": 1e-6},
    "more examples": {"num-examples": 5000},
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_clients_move_steps_and_groups_within_bounds_alone(federation, tmp_path, lie):
    """A third of the clients lie; steps and groups stay where honest devices could have them."""

    def tamper(_, reply):
        for key, value in LIES[lie].items():
            reply.content["metrics"][key] = value
        return reply

    for partition in range(0, CLIENTS, 3):
        federation.node_of(partition).tamper = tamper
    start(federation, tmp_path, target_loss=0.3, num_rounds=40)
    (run,) = stored(tmp_path)
    steps = [record.setting.local_steps for record in run.rounds[3:]]
    assert all(after <= MOVE * before + 1 for before, after in pairwise(steps))
    # By the devices as they are: a round beyond its steps over a step, at the highest saturation
    # that is believed.
    slowest = max(record.seconds for record in run.rounds[3:])
    assert max(steps) <= math.sqrt(DOUBT * RANGE[1] * slowest / NODE_SECONDS[0])
    for record in run.rounds[3:]:
        members = sorted(
            client for group in record.setting.participation.groups for client in group
        )
        assert members == list(range(CLIENTS))  # nobody is left out
        assert max(record.shares, default=0.0) <= RAREST


def test_a_study_that_has_ended_is_not_said_to_have_had_another_plan(logistic, tmp_path):
    _, first = start(make_federation(logistic), tmp_path, plan=(5, 10))
    again, second = start(make_federation(logistic), tmp_path, plan=(2, 50))
    assert again.setting == uniform(5, 10)
    assert second.evaluate_metrics_serverapp == first.evaluate_metrics_serverapp
    assert [run.local_steps for run in stored(tmp_path)] == [10]


def test_a_target_that_is_met_before_training_needs_none(federation, tmp_path):
    strategy, _ = start(federation, tmp_path, target_loss=3.0)
    assert strategy.status == "target" and stored(tmp_path)[0].num_rounds == 0


def test_a_server_that_starts_first_waits_for_its_clients(federation, tmp_path):
    grid, wait = federation.grid, federation.clock.wait
    nodes, grid.nodes = grid.nodes, {}
    with pytest.raises(FedplanError, match="20 clients are to be there, but after 300 s 0 are"):
        start(federation, tmp_path, plan=(5, 10), min_clients=CLIENTS)
    end = federation.clock.now() + 100

    def arrive(seconds):
        wait(seconds)
        if federation.clock.now() > end:
            grid.nodes = nodes

    federation.clock.wait = arrive
    strategy, _ = start(federation, tmp_path, plan=(5, 10), min_clients=CLIENTS)
    assert strategy.status == "target"


def test_a_federation_that_fails_says_why(federation, tmp_path):
    for partition in range(CLIENTS):
        federation.node_of(partition).tamper = lambda *_: None
    rules = RoundRules(wait_s=1.0, max_repeats=0)
    for plan in (None, (5, 5)):
        strategy, _ = start(federation, tmp_path, plan=plan, rules=rules)
        assert strategy.status == "unavailable" and "no answer within 60 s" in strategy.message


@pytest.mark.parametrize("text", ["", "{}", '{"clients_per_round": 0, "local_steps": 1}', "[1]"])
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"plan\.json"):
        PlannedFedAvg(target_loss=1.0, learning_rate=0.1, plan=path)


def test_a_plan_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(InputError, match=r"is no plan \(Is a directory\)\. Write one"):
        PlannedFedAvg(target_loss=1.0, learning_rate=0.1, plan=tmp_path)


def test_a_plan_by_turns_is_told_from_a_pair(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text('{"clients_per_round": null, "local_steps": 27}')
    with pytest.raises(InputError, match="To take turns, leave plan out"):
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
    with pytest.raises(InputError, match="the model's arrays have other names, types or shapes"):
        strategy.start(federation.grid, ArrayRecord({"other": Array(np.zeros((7, 2)))}))


def test_a_damaged_model_is_said_to_be(logistic, tmp_path):
    start(make_federation(logistic), tmp_path, plan=(5, 10))
    (path,) = (tmp_path / "flower-flower" / "training").glob("*/*.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read as a model"):
        start(make_federation(logistic), tmp_path, plan=(5, 10))
