"""What being wrong costs: every regret against a brute force of the altered truth."""

from __future__ import annotations

import bruteforce
import numpy as np
import pytest
from planned import make_plan, sensitivity
from strategies import random_bound, random_fleet

from fedplan import Bound, Constraints, Fleet, InputError, Objective, Prices


def truths(fleet, bound, objective, weight):
    """The altered truths by name: fleet, bound, objective."""
    slow, fast = (
        Fleet(
            step_time_s=fleet.step_time_s,
            comm_time_s=fleet.comm_time_s * factor,
            step_energy_j=fleet.step_energy_j,
            comm_energy_j=fleet.comm_energy_j,
            count=fleet.count,
        )
        for factor in (2.0, 0.5)
    )
    found = {
        "communication twice as slow": (slow, bound, objective),
        "communication twice as fast": (fast, bound, objective),
    }
    for name in ("a0", "b0", "c0"):
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            values = {"a0": bound.a0, "b0": bound.b0, "c0": bound.c0}
            if values[name]:
                values[name] *= factor
                found[f"{name} {word} as large"] = (fleet, Bound(**values), objective)
    if weight is not None:
        for other in {max(0.0, weight - 0.1), min(1.0, weight + 0.1)} - {weight}:
            found[f"energy weight {other:.2g}"] = (fleet, bound, Objective.weighted(other))
    return found


def check(cases, expected, plan, constraints):
    assert {case.name for case in cases} == set(expected)
    for case in cases:
        fleet, bound, objective = expected[case.name]
        width = max(bruteforce.steps_to_search(bound), plan.setting.pair[1])
        grid = bruteforce.grid(fleet, bound, width)
        cost = grid.cost(objective)
        best = bruteforce.cheapest(cost, grid.allowed(constraints, limits=()))
        k, e = plan.setting.pair
        regret = cost[k - 1, e - 1] / best[0] - 1 if best[0] else 0.0
        assert case.regret >= 0
        assert case.regret == pytest.approx(regret, rel=1e-7, abs=1e-9), case.name
        at = cost[case.clients_per_round - 1, case.local_steps - 1]
        assert at == pytest.approx(best[0], rel=1e-9)


@pytest.mark.parametrize("weight", [None, 0.0, 0.05, 0.5, 1.0])
def test_regrets_with_an_energy_weight_are_those_of_a_brute_force(weight):
    random = np.random.default_rng(40)
    for _ in range(6):
        fleet, bound = random_fleet(random, 20), random_bound(random, 30)
        limits = Constraints(max_clients_per_round=max(1, len(fleet) // 2))
        plan = make_plan(fleet, bound, energy_weight=weight, constraints=limits)
        cases = sensitivity(fleet, bound, plan, energy_weight=weight, constraints=limits)
        expected = truths(fleet, bound, Objective.weighted(weight or 0.0), weight or 0.0)
        check(cases, expected, plan, limits)


def test_regrets_with_prices_are_in_money():
    random = np.random.default_rng(41)
    prices = Prices(per_hour=1.0, per_kwh=30.0, per_client_round=1e-3)
    for _ in range(6):
        fleet, bound = random_fleet(random, 20), random_bound(random, 30)
        plan = make_plan(fleet, bound, prices=prices)
        cases = sensitivity(fleet, bound, plan, prices=prices)
        check(cases, truths(fleet, bound, prices.objective(), None), plan, Constraints())


def test_plausible_bounds_replace_the_halved_and_doubled_ones():
    fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    bound = Bound(a0=1000.0, b0=1.0)
    others = [Bound(a0=300.0, b0=1.0, c0=9.0), bound, Bound(a0=5000.0, b0=2.0, c0=0.0)]
    plan = make_plan(fleet, bound, energy_weight=0.2)
    cases = sensitivity(fleet, bound, plan, energy_weight=0.2, plausible=others)
    objective = Objective.weighted(0.2)
    expected = {
        name: truth
        for name, truth in truths(fleet, bound, objective, 0.2).items()
        if "as large" not in name
    }
    expected["a0=300, b0=1, c0=9"] = (fleet, others[0], objective)
    expected["a0=5000, b0=2, c0=0"] = (fleet, others[2], objective)
    check(cases, expected, plan, Constraints())


def test_limits_on_totals_do_not_enter_the_regret():
    fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    free = make_plan(fleet, bound, energy_weight=1.0)
    limits = Constraints(deadline_s=free.prediction.time_s * 0.99)
    plan = make_plan(fleet, bound, energy_weight=1.0, constraints=limits)
    cases = sensitivity(fleet, bound, plan, energy_weight=1.0, constraints=limits)
    check(cases, truths(fleet, bound, Objective.weighted(1.0), 1.0), plan, Constraints())


def test_an_infeasible_plan_has_nothing_to_be_unsure_of():
    fleet = Fleet(step_time_s=1.0, comm_time_s=1.0)
    bound = Bound(a0=10.0, b0=1.0)
    plan = make_plan(fleet, bound, constraints=Constraints(deadline_s=1e-3))
    with pytest.raises(InputError, match="infeasible"):
        sensitivity(fleet, bound, plan)
