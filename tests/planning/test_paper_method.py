"""The paper's Algorithm 2 against the integer minimum of P3, written out."""

from __future__ import annotations

import bruteforce
import numpy as np
import pytest
from planned import make_plan
from strategies import random_bound, random_fleet, random_ranges

from fedplan import Constraints, Fleet, InputError, Objective, Prices


def p3_case(random):
    fleet, bound = random_fleet(random), random_bound(random)
    grid = bruteforce.grid(fleet, bound, bruteforce.steps_to_search(bound), mean_times=True)
    return fleet, bound, grid, Constraints(**random_ranges(random, *grid.rounds.shape))


@pytest.mark.parametrize("seed", range(6))
def test_paper_is_within_half_a_percent_of_the_integer_minimum_of_p3(seed):
    random = np.random.default_rng([3, seed])
    for _ in range(70):
        fleet, bound, grid, constraints = p3_case(random)
        weight = float(random.choice([0.0, 1.0, random.random()]))
        plan = make_plan(
            fleet, bound, energy_weight=weight, constraints=constraints, method="paper"
        )
        k, e = plan.setting.pair
        cost, allowed = grid.cost(Objective.weighted(weight)), grid.allowed(constraints)
        assert allowed[k - 1, e - 1]
        assert cost[k - 1, e - 1] <= bruteforce.cheapest(cost, allowed)[0] * 1.005
        assert plan.prediction.cost == pytest.approx(cost[k - 1, e - 1], rel=1e-9)
        assert plan.prediction.time_s == pytest.approx(grid.time_s[k - 1, e - 1], rel=1e-9)


def test_paper_prices_participation_too():
    random = np.random.default_rng(7)
    prices = Prices(per_hour=1.0, per_kwh=0.3, per_client_round=1e-3)
    for _ in range(60):
        fleet, bound, grid, constraints = p3_case(random)
        plan = make_plan(fleet, bound, prices=prices, constraints=constraints, method="paper")
        best = bruteforce.cheapest(grid.cost(prices.objective()), grid.allowed(constraints))
        assert plan.prediction.cost == pytest.approx(best[0], rel=5e-3)


def test_paper_ignores_the_spread_of_the_fleet_and_the_refined_c0():
    random = np.random.default_rng(8)
    for _ in range(20):
        fleet, bound = random_fleet(random), random_bound(random)
        same_means = Fleet(
            step_time_s=fleet.mean("step_time_s"),
            comm_time_s=fleet.mean("comm_time_s"),
            step_energy_j=fleet.mean("step_energy_j"),
            comm_energy_j=fleet.mean("comm_energy_j"),
            count=len(fleet),
        )
        costs = [
            make_plan(devices, used, energy_weight=0.3, method="paper").prediction.cost
            for devices in (fleet, same_means)
            for used in (bound, bound.as_in_paper)
        ]
        assert costs == pytest.approx([costs[0]] * 4, rel=1e-12)


def test_paper_proves_nothing_and_says_so():
    fleet = Fleet(step_time_s=[0.1, 0.4], comm_time_s=1.0)
    plan = make_plan(fleet, random_bound(np.random.default_rng(1)), method="paper")
    assert plan.certificate.objective == "p3"
    assert plan.certificate.lower_bound is None
    assert plan.certificate.gap is None
    assert "Algorithm 2" in plan.message


def test_paper_refuses_limits_on_totals():
    fleet = Fleet(step_time_s=1.0, comm_time_s=1.0)
    bound = random_bound(np.random.default_rng(1))
    with pytest.raises(InputError, match="Use 'exact'"):
        make_plan(fleet, bound, method="paper", constraints=Constraints(deadline_s=1.0))


def test_paper_as_an_alternative_is_priced_with_stragglers_and_never_beats_exact():
    random = np.random.default_rng(9)
    for _ in range(60):
        fleet, bound = random_fleet(random, 30), random_bound(random)
        weight = random.random()
        plan = make_plan(fleet, bound, energy_weight=weight)
        other = {a.name: a for a in plan.alternatives}["the paper's method"]
        k, e = other.prediction.clients_per_round, other.prediction.local_steps
        assert (k, e) == make_plan(fleet, bound, energy_weight=weight, method="paper").setting.pair
        grid = bruteforce.grid(fleet, bound, e)
        cost = grid.cost(Objective.weighted(weight))[k - 1, e - 1]
        assert other.prediction.cost == pytest.approx(cost, rel=1e-9)
        assert other.cost_ratio >= 1 - 1e-12
