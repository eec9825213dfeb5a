"""The exact method against a brute force over every integer (K, E)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import bruteforce
import numpy as np
import pytest
from planned import make_plan
from scipy.special import gammaln
from strategies import random_bound, random_constraints, random_fleet, random_worth

from fedplan import Bound, Constraints, Fleet, Objective, draw_fleet
from fedplan.planning import exact

REACHED = {"deadline_s": "time_s", "energy_budget_j": "energy_j", "max_rounds": "expected_rounds"}


@dataclass
class Case:
    fleet: Fleet
    bound: Bound
    objective: Objective
    constraints: Constraints
    grid: bruteforce.Grid
    arguments: dict

    def plan(self):
        return make_plan(self.fleet, self.bound, method="exact", **self.arguments)

    @property
    def minimised(self):
        """Cost of every (K, E); time where nothing costs anything."""
        cost = self.grid.cost(self.objective)
        return cost if cost.max() > 0 else self.grid.time_s

    def best(self, constraints):
        return bruteforce.cheapest(self.minimised, self.grid.allowed(constraints))


def random_case(random):
    fleet, bound = random_fleet(random), random_bound(random)
    worth, objective = random_worth(random)
    gap = float(random.choice([1.0, 0.1, 3.0]))
    grid = bruteforce.grid(fleet, bound, bruteforce.steps_to_search(bound), gap=gap)
    constraints = random_constraints(random, grid)
    arguments = {**worth, "target_gap": gap, "constraints": constraints}
    return Case(fleet, bound, objective, constraints, grid, arguments)


def check(case, plan):
    """Cost, proof, feasibility, binding constraints and best attainable are the brute force's."""
    best = case.best(case.constraints)
    if best is None:
        check_infeasible(case, plan)
        return
    cost, _, steps = best
    free = case.constraints.max_local_steps is None and not case.constraints.min_local_steps
    assert not free or steps < case.grid.rounds.shape[1]  # or the brute force looked too near
    k, e = plan.setting.pair
    assert plan.status == "optimal"
    assert case.grid.allowed(case.constraints)[k - 1, e - 1]
    assert case.minimised[k - 1, e - 1] == pytest.approx(cost, rel=1e-9)
    for name, totals in (
        ("expected_rounds", case.grid.rounds),
        ("time_s", case.grid.time_s),
        ("energy_j", case.grid.energy_j),
        ("cost", case.grid.cost(case.objective)),
    ):
        assert getattr(plan.prediction, name) == pytest.approx(totals[k - 1, e - 1], rel=1e-9)
    assert plan.prediction.rounds == math.ceil(plan.prediction.expected_rounds * (1 - 1e-12))
    assert plan.certificate.objective == "cost"
    assert plan.certificate.gap == 0
    assert plan.certificate.lower_bound <= plan.prediction.cost * (1 + 1e-12)
    assert plan.certificate.lower_bound >= plan.prediction.cost * (1 - 1e-9)
    check_binding(case, plan, cost)


def check_binding(case, plan, cost):
    for name, relaxed in case.constraints.relaxations():
        saved = 1 - case.best(relaxed)[0] / cost
        if not 1e-10 < saved < 1e-8:
            assert (name in plan.binding) == (saved > 1e-9), name


def check_infeasible(case, plan):
    assert plan.status == "infeasible"
    assert not plan.success
    assert plan.prediction is None
    in_range = case.grid.allowed(case.constraints, limits=())
    limited = [name for name in REACHED if getattr(case.constraints, name) is not None]
    assert list(plan.best_attainable) == limited
    for name, best in plan.best_attainable.items():
        least = case.grid.total(name)[in_range].min()
        assert getattr(best, REACHED[name]) == pytest.approx(least, rel=1e-9), name
        shown = f"{getattr(case.constraints, name):,.6g}"
        assert shown in plan.message


@pytest.mark.parametrize("seed", range(8))
def test_exact_equals_brute_force_on_random_problems(seed):
    random = np.random.default_rng([1, seed])
    infeasible = 0
    for _ in range(60):
        case = random_case(random)
        plan = case.plan()
        check(case, plan)
        infeasible += not plan.success
    assert 6 <= infeasible <= 30  # both kinds of answer are put to the test


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spacing", [1.15, 8.0])
def test_exact_equals_brute_force_when_chords_replace_most_knots(seed, spacing, monkeypatch):
    refined = []
    add_knots = exact._Search._add_knots

    def spy(self, row, *ks):
        refined.extend(ks)
        add_knots(self, row, *ks)

    monkeypatch.setattr(exact, "_KNOT_WORK", 1)
    monkeypatch.setattr(exact, "_KNOTS_PER_DECADE", 1 / np.log10(spacing))
    monkeypatch.setattr(exact, "_FIRST_STRETCHES", 2)
    monkeypatch.setattr(exact._Search, "_add_knots", spy)
    random = np.random.default_rng([2, seed])
    for _ in range(60):
        case = random_case(random)
        check(case, case.plan())
    assert refined or spacing < 8


def log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_exact_equals_brute_force_over_all_k_of_2000_devices(seed, weight):
    n = 2000
    fleet = draw_fleet(
        n,
        step_time_s=(0.1, 0.05),
        comm_time_s=(2.0, 1.0),
        step_energy_j=(1e-3, 5e-4),
        comm_energy_j=(2e-2, 1e-2),
        law="lognormal",
        seed=seed,
    )
    bound = Bound(a0=3750.0, b0=1.0, c0=[1.0, 26.0, 400.0][seed])
    plan = make_plan(fleet, bound, energy_weight=weight)
    chosen = plan.setting.pair[1]
    e = np.arange(max(1, chosen - 8), chosen + 9)[None, :]
    k, i = np.arange(1, n + 1)[:, None], np.arange(1, n + 1)[None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(log_binomial(i - 1, k - 1) - log_binomial(n, k))
    weights[i < k] = 0
    seconds = weights @ np.sort(fleet.step_time_s[:, None] * e + fleet.comm_time_s[:, None], axis=0)
    joules = k * (fleet.step_energy_j.mean() * e + fleet.comm_energy_j.mean())
    rounds = bound.a0 / e + e * (bound.b0 + bound.c0 * (n - k) / (k * (n - 1)))
    cost = ((1 - weight) * seconds + weight * joules) * rounds
    assert plan.prediction.cost == pytest.approx(cost.min(), rel=1e-9)
    assert 8 in np.argwhere(cost == cost.min())[:, 1]  # the middle of the window


def test_limits_attainable_one_by_one_but_not_together_are_said_to_be_so():
    fleet = Fleet(step_time_s=[0.1] * 20, comm_time_s=1.0, step_energy_j=1.0, comm_energy_j=5.0)
    bound = Bound(a0=400.0, b0=1.0, c0=5.0)
    fastest = make_plan(fleet, bound, energy_weight=0.0).prediction
    thriftiest = make_plan(fleet, bound, energy_weight=1.0).prediction
    limits = Constraints(
        deadline_s=fastest.time_s * 1.001, energy_budget_j=thriftiest.energy_j * 1.001
    )
    plan = make_plan(fleet, bound, constraints=limits)
    assert plan.status == "infeasible"
    assert plan.best_attainable["deadline_s"] == fastest
    assert plan.best_attainable["energy_budget_j"].energy_j == thriftiest.energy_j
    assert "together" in plan.message
    for alone in (
        Constraints(deadline_s=limits.deadline_s),
        Constraints(energy_budget_j=limits.energy_budget_j),
    ):
        assert make_plan(fleet, bound, constraints=alone).success


def test_alternatives_are_priced_and_checked_against_the_limits():
    random = np.random.default_rng(4)
    for _ in range(40):
        case = random_case(random)
        plan = case.plan()
        if not plan.success or plan.prediction.cost == 0:
            continue
        width = case.grid.rounds.shape[1]
        cost, allowed = case.grid.cost(case.objective), case.grid.allowed(case.constraints)
        for other in plan.alternatives:
            k, e = other.prediction.clients_per_round, other.prediction.local_steps
            if e <= width:
                assert other.feasible == allowed[k - 1, e - 1]
                ratio = cost[k - 1, e - 1] / plan.prediction.cost
                assert other.cost_ratio == pytest.approx(ratio, rel=1e-9)
                assert other.cost_ratio >= 1 - 1e-9 or not other.feasible


def test_what_is_left_out_too_early_shows_in_the_certificate(monkeypatch):
    fleet = draw_fleet(30, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), seed=1)
    bound, worth = Bound(a0=2000.0, b0=1.0, c0=20.0), {"energy_weight": 0.0}
    assert make_plan(fleet, bound, method="exact", **worth).certificate.gap == 0
    ceiling = exact._Search._ceiling
    monkeypatch.setattr(exact._Search, "_ceiling", lambda self: 0.9 * ceiling(self))
    careless = make_plan(fleet, bound, method="exact", **worth)
    assert careless.certificate.lower_bound < careless.prediction.cost
    assert careless.certificate.gap > 0
