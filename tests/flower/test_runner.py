"""The runner keeps the contract, and has the simulator's losses."""

from __future__ import annotations

import numpy as np
import pytest
from contracts.runner import RunnerContract
from flower.conftest import CLIENTS, RATE

from fedplan.core.fleet import Fleet
from fedplan.core.problem import Problem
from fedplan.core.records import Observation, Stop
from fedplan.core.setting import Setting
from fedplan.course.live import Live
from fedplan.flower.conduct import AWAY, LATE, RESTS, SLACK_S, Conduct
from fedplan.flower.rules import RoundRules
from fedplan.participation import Shuffled, Turns, Weighted, uniform
from fedplan.participation.grouping import RAREST


class TestContract(RunnerContract):
    @pytest.fixture
    def runner(self, federation):
        return federation.runner()


class TestContractWithFederatedEvaluation(RunnerContract):
    @pytest.fixture
    def runner(self, federation):
        return federation.runner(evaluate=None)


@pytest.mark.parametrize(("clients", "steps", "seed"), [(1, 3, 0), (5, 10, 1), (CLIENTS, 4, 2)])
def test_losses_and_cohorts_are_the_simulators(federation, simulator, clients, steps, seed):
    stop = Stop(max_rounds=10)
    live = federation.runner().run(uniform(clients, steps), stop, seed=seed)
    simulated = simulator.run(uniform(clients, steps), stop, seed=seed)
    assert [r.cohort for r in live.rounds] == [r.cohort for r in simulated.rounds]
    np.testing.assert_allclose(live.losses, simulated.losses, rtol=1e-5)


def test_clients_evaluate_to_the_same_loss(federation, simulator):
    stop = Stop(max_rounds=3)
    live = federation.runner(evaluate=None).run(uniform(4, 5), stop, seed=3)
    np.testing.assert_allclose(
        live.losses, simulator.run(uniform(4, 5), stop, seed=3).losses, rtol=1e-5
    )


FLEET = Fleet(step_time_s=np.linspace(0.0625, 0.25, CLIENTS), comm_time_s=0.5, step_energy_j=2.0)


def problem_of(logistic, **options):
    return Problem(fleet=FLEET, target_loss=0.8, learning_rate=RATE, **options).with_samples(
        logistic.sizes
    )


@pytest.mark.parametrize("law", [Turns, Shuffled, Weighted])
def test_every_law_has_the_simulators_losses_cohorts_and_shares(
    federation, simulator, logistic, law
):
    setting = Setting(participation=law.of(problem_of(logistic), 5, 4), local_steps=5)
    stop = Stop(max_rounds=12)
    live = federation.runner(samples=logistic.sizes.tolist()).run(setting, stop, seed=3)
    simulated = simulator.run(setting, stop, seed=3)
    assert [r.cohort for r in live.rounds] == [r.cohort for r in simulated.rounds]
    for one, other in zip(live.rounds, simulated.rounds, strict=True):
        assert one.shares == pytest.approx(other.shares)
    np.testing.assert_allclose(live.losses, simulated.losses, rtol=1e-3)  # rounding grows


def test_an_online_course_is_steered_as_in_the_simulator(federation, simulator, logistic):
    course = Live.online(problem_of(logistic), guessed=False)
    stop = Stop(max_rounds=8, target_loss=0.8)
    live = federation.runner(samples=logistic.sizes.tolist()).run(course, stop, seed=1)
    simulated = simulator.run(course, stop, seed=1)
    assert (live.setting, live.identity) == (course.setting, course.identity)
    assert len(live.decisions) > 1 and live.decisions[0] == simulated.decisions[0]
    same = live.decisions[1].round
    np.testing.assert_allclose(live.losses[:same], simulated.losses[:same], rtol=1e-5)
    for one, other in zip(live.rounds[1:same], simulated.rounds[1:same], strict=True):
        ratios = [
            np.linalg.norm(each.signal.whole) / np.linalg.norm(each.signal.halfway)
            for each in (one, other)
        ]
        assert ratios[0] == pytest.approx(ratios[1], rel=0.3)  # the seed makes the projection


def test_who_fails_is_left_out_and_the_shares_say_so(federation, simulator, logistic):
    federation.node_of(3).tamper = lambda *_: None
    del federation.grid.nodes[node_id(federation.grid, 19)]
    setting = Setting(participation=Turns.of(problem_of(logistic), 5, 4), local_steps=5)
    names = [f"partition-{client}" for client in range(CLIENTS)]
    runner = federation.runner(
        samples=logistic.sizes.tolist(), names=names, rules=RoundRules(deadline_s=10.0)
    )
    run = runner.run(setting, Stop(max_rounds=10), seed=3)
    assert run.status == "rounds"
    for record in run.rounds[1:]:
        whole = setting.participation.cohort(logistic.sizes.astype(float), 3, record.round)
        shares = dict(zip(whole.clients.tolist(), whole.shares.tolist(), strict=True))
        assert set(record.cohort) == set(shares) - {3, 19}
        assert record.shares == pytest.approx([shares[client] for client in record.cohort])
    problems = {
        (one.client, one.problem) for r in run.rounds for one in r.observations if one.problem
    }
    assert problems == {(3, "no answer within 10 s"), (3, RESTS), (19, AWAY)}


def test_a_client_that_always_fails_is_asked_less_and_less(federation, logistic):
    federation.node_of(3).tamper = lambda *_: None
    everyone = Setting(
        participation=Turns(groups=(tuple(range(CLIENTS)),), visits=(1,)), local_steps=2
    )
    runner = federation.runner(rules=RoundRules(deadline_s=10.0))
    run = runner.run(everyone, Stop(max_rounds=40))
    asked = [
        record.round
        for record in run.rounds
        for one in record.observations
        if one.client == 3 and one.problem != RESTS
    ]
    assert asked == [1, 2, 4, 8, 16, 32]
    federation.node_of(3).tamper = None
    again = federation.runner(rules=RoundRules(deadline_s=10.0)).run(everyone, Stop(max_rounds=2))
    assert 3 in again.rounds[2].cohort


def test_a_round_waits_no_longer_than_its_group_takes(federation):
    setting = Setting(
        participation=Turns(groups=(tuple(range(CLIENTS)),), visits=(1,)), local_steps=4
    )

    def hang_after(_, told):
        if told.record.round == 2:
            federation.node_of(3).tamper = lambda *_: None

    runner = federation.runner(rules=RoundRules(deadline_s=3600.0), report=hang_after)
    run = runner.run(setting, Stop(max_rounds=5))
    slowest = run.rounds[2].seconds
    assert slowest < 3 < run.rounds[3].seconds <= LATE * slowest + SLACK_S + 1
    assert run.rounds[4].seconds <= 2 * (LATE * slowest + SLACK_S) + 1
    assert run.rounds[5].seconds < 3  # it sits this one out


def test_more_steps_make_training_longer_and_not_messages():
    def answers(client, steps, trained):
        return Observation(
            client=client, local_steps=steps, train_seconds=trained, round_trip_seconds=9.0
        )

    conduct = Conduct()
    conduct.hear([answers(0, 10, 0.1), answers(0, 50, 0.5)])
    assert conduct.deadline_s([0], 50, 3600.0) == LATE * 9.0 + SLACK_S
    assert conduct.deadline_s([0], 1000, 3600.0) == LATE * (8.5 + 20 * 0.5) + SLACK_S
    conduct.hear([answers(1, 50, None)])  # all of it may be training
    assert conduct.deadline_s([1], 1000, 3600.0) == LATE * 20 * 9.0 + SLACK_S


def test_a_round_that_nobody_answers_counts_and_changes_nothing(federation):
    groups = (tuple(range(1, CLIENTS)), (0,))
    setting = Setting(participation=Turns(groups=groups, visits=(1, 1)), local_steps=2)
    federation.node_of(0).tamper = lambda *_: None
    run = federation.runner(rules=RoundRules(deadline_s=10.0)).run(setting, Stop(max_rounds=4))
    assert [len(record.cohort) for record in run.rounds] == [0, CLIENTS - 1, 0, CLIENTS - 1, 0]
    assert run.rounds[2].seconds >= 10.0 and run.rounds[2].shares == ()
    assert run.rounds[2].loss == run.rounds[1].loss > run.rounds[3].loss


def test_a_federation_that_never_answers_ends_the_run(federation):
    for node in federation.grid.nodes.values():
        node.tamper = lambda *_: None
    setting = Setting(
        participation=Turns(groups=(tuple(range(10)), tuple(range(10, 20))), visits=(1, 1)),
        local_steps=2,
    )
    runner = federation.runner(rules=RoundRules(deadline_s=5.0, max_repeats=1))
    run = runner.run(setting, Stop(max_rounds=50))
    assert run.status == "unavailable" and "no answer within 5 s" in run.message
    assert run.num_rounds == 2 and not runner.weights["weights"].any()
    federation.grid.nodes.clear()
    run = runner.run(setting, Stop(max_rounds=50))
    assert run.status == "unavailable" and "no client is there" in run.message


def test_more_data_than_a_group_was_made_for_does_not_shake_the_model(federation):
    def boast(_, reply):
        reply.content["metrics"]["num-examples"] = 20_000
        return reply

    groups = tuple((client,) for client in range(CLIENTS))
    setting = Setting(participation=Turns(groups=groups, visits=(1,) * CLIENTS), local_steps=2)
    federation.node_of(10).tamper = boast
    run = federation.runner().run(setting, Stop(max_rounds=11))
    assert run.rounds[10].shares[0] < run.rounds[11].shares[0] == RAREST


def node_id(grid, partition):
    return next(i for i, node in grid.nodes.items() if node.config["partition-id"] == partition)
