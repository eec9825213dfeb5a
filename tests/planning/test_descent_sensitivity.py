"""What a choice from a fitted descent is worth, against every setting tried one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.convergence.descent import Descent
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.participation.uniform import round_energy_j, round_time_s
from fedplan.planning.descent_sensitivity import descent_alternatives, descent_sensitivity

FLEET = Fleet(
    step_time_s=[0.1, 0.2, 0.1, 0.4, 0.1, 0.3],
    comm_time_s=[2.0, 1.0, 3.0, 2.0, 2.0, 1.0],
    step_energy_j=0.5,
    comm_energy_j=3.0,
)
DESCENT = Descent(
    num_clients=len(FLEET),
    first_loss=2.3,
    target_loss=0.5,
    rate=LearningRate(initial=0.1),
    parameters=np.array([math.log(8), 2, math.log(0.5), 3, math.log(0.25), 0, 0.25, 1, 0]),
    covariance=np.eye(9) * 1e-4,
    reach=(1, 6, 1, 40),
)


def cost(fleet, objective, clients, steps):
    """Written out: rounds times what a round costs."""
    rounds = float(DESCENT.rounds(clients, steps))
    seconds, joules = (
        round_time_s(fleet, clients, steps),
        float(round_energy_j(fleet, clients, steps)),
    )
    return rounds * (
        objective.per_second * seconds
        + objective.per_joule * joules
        + objective.per_client_round * clients
    )


def lowest(fleet, objective, most_clients=6):
    return min(
        cost(fleet, objective, k, e) for k in range(1, most_clients + 1) for e in range(1, 41)
    )


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_alternatives_are_priced_one_by_one_and_the_cheapest_is(weight):
    objective = Objective.weighted(weight)
    found = descent_alternatives(FLEET, DESCENT, objective, (4, 12))
    chosen = cost(FLEET, objective, 4, 12)
    for other in found:
        at = (other.prediction.clients_per_round, other.prediction.local_steps)
        assert other.cost_ratio == pytest.approx(cost(FLEET, objective, *at) / chosen)
    assert found[0].prediction.cost == pytest.approx(lowest(FLEET, objective))
    assert {(o.prediction.clients_per_round, o.prediction.local_steps) for o in found[1:]} == {
        (2, 12), (6, 12), (4, 6), (4, 24)
    }  # fmt: skip


def test_alternatives_that_break_a_limit_say_so():
    limits = Constraints(max_clients_per_round=5, min_local_steps=8)
    found = descent_alternatives(FLEET, DESCENT, Objective.weighted(0.3), (4, 12), limits)
    feasible = {other.name: other.feasible for other in found}
    assert feasible["half as many clients"] and feasible["twice as many local steps"]
    assert not feasible["every client"] and not feasible["half as many local steps"]


def test_being_wrong_costs_what_the_best_of_the_truth_would_save():
    objective = Objective.weighted(0.3)
    cases = {case.name: case for case in descent_sensitivity(FLEET, DESCENT, objective, (4, 12))}
    slow = Fleet(
        step_time_s=FLEET.step_time_s,
        comm_time_s=2 * FLEET.comm_time_s,
        step_energy_j=FLEET.step_energy_j,
        comm_energy_j=FLEET.comm_energy_j,
    )
    truths = {
        "communication twice as slow": (slow, objective),
        "energy weight 0.2": (FLEET, Objective.weighted(0.2)),
        "energy weight 0.4": (FLEET, Objective.weighted(0.4)),
    }
    assert truths.keys() | {"communication twice as fast"} == cases.keys()
    for name, (fleet, goal) in truths.items():
        expected = cost(fleet, goal, 4, 12) / lowest(fleet, goal) - 1
        assert cases[name].regret == pytest.approx(expected)


def test_prices_have_no_weight_to_be_wrong_about_and_nothing_costs_nothing():
    money = Objective(per_second=0.01, per_joule=0.002, unit="money")
    names = [case.name for case in descent_sensitivity(FLEET, DESCENT, money, (4, 12))]
    assert names == ["communication twice as fast", "communication twice as slow"]
    unmeasured = Fleet(step_time_s=FLEET.step_time_s, comm_time_s=1.0)
    assert descent_sensitivity(unmeasured, DESCENT, Objective.weighted(1.0), (4, 12)) == []
