"""The robust method against the regret of every integer (K, E), written out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import bruteforce
import numpy as np
import pytest
from planned import make_plan
from strategies import random_fleet, random_ranges

from fedplan import Bound, Constraints, Fleet, InputError, Objective, Problem
from fedplan.participation.rankings import round_times_s
from fedplan.planning import robust
from fedplan.planning import surface as grid
from fedplan.planning.robust import Case as Asked
from fedplan.planning.robust import Sketch

CENTRE = Bound(a0=400.0, b0=1.0, c0=5.0)


@dataclass
class Case:
    fleet: Fleet
    bounds: list[Bound]
    weight: float
    quantile: float
    gap: float
    constraints: Constraints
    grids: list[bruteforce.Grid]

    def plan(self):
        return make_plan(
            self.fleet,
            CENTRE,
            target_gap=self.gap,
            energy_weight=self.weight,
            constraints=self.constraints,
            plausible=self.bounds,
            regret_quantile=self.quantile,
        )

    @property
    def share(self):
        """How many of the bounds must be served."""
        return math.ceil(self.quantile * len(self.bounds) - 1e-9)

    def regrets(self):
        """The regret of every (K, E), infinite where not allowed; None where nothing is."""
        held = np.stack([grid.allowed(self.constraints) for grid in self.grids]).sum(axis=0)
        allowed = (held >= self.share) & self.grids[0].allowed(self.constraints, limits=())
        if not allowed.any():
            return None
        objective = Objective.weighted(self.weight)
        costs = np.stack([np.where(allowed, g.cost(objective), np.inf) for g in self.grids])
        best = costs.min(axis=(1, 2), keepdims=True)
        return np.sort(costs / best - 1, axis=0)[self.share - 1]


def random_case(random, most_devices=30):
    while True:
        fleet = random_fleet(random, most_devices)
        weight = float(random.choice([0.0, 1.0, random.random()]))
        if weight < 1 or fleet.step_energy_j.max() + fleet.comm_energy_j.max() > 0:
            break
    a0, c0 = random.uniform(1, 30) ** 2, random.uniform(0, 30)
    bounds = [
        Bound(
            a0=a0 * 10 ** random.uniform(-0.7, 0.7),
            b0=10 ** random.uniform(-0.3, 0.3),
            c0=c0 * 10 ** random.uniform(-1, 1),
        )
        for _ in range(random.integers(1, 7))
    ]
    gap, quantile = float(random.choice([1.0, 0.3])), float(random.choice([1.0, 1.0, 0.5, 0.8]))
    steps = bruteforce.steps_to_search(*bounds)
    grids = [bruteforce.grid(fleet, bound, steps, gap=gap) for bound in bounds]
    chosen = random_ranges(random, *grids[0].rounds.shape)
    if random.random() < 0.6:
        name = random.choice(bruteforce.LIMITS)
        least = grids[0].total(name)[grids[0].allowed(Constraints(**chosen))].min()
        limit = float(least * random.uniform(0.8, 3))
        limit = math.floor(limit) + 1 if name == "max_rounds" else limit
        totals = np.stack([grid.total(name) for grid in grids])
        if limit > 0 and not (np.abs(totals / limit - 1) < 1e-7).any():
            chosen[str(name)] = limit
    return Case(fleet, bounds, weight, quantile, gap, Constraints(**chosen), grids)


@pytest.mark.parametrize("seed", range(5))
def test_robust_has_the_smallest_regret_of_all_settings(seed):
    random = np.random.default_rng([5, seed])
    infeasible = 0
    for _ in range(70):
        case = random_case(random)
        plan, regrets = case.plan(), case.regrets()
        if regrets is None:
            assert plan.status == "infeasible"
            infeasible += 1
            continue
        assert plan.status == "optimal"
        assert plan.method == "robust"
        assert plan.regret == pytest.approx(regrets.min(), rel=1e-9, abs=1e-9)
        k, e = plan.setting.pair
        assert regrets[k - 1, e - 1] == pytest.approx(regrets.min(), rel=1e-9, abs=1e-9)
        assert plan.certificate.objective == "regret"
        assert plan.certificate.gap == pytest.approx(0, abs=1e-12)
    assert 3 <= infeasible <= 35


def test_robust_over_one_bound_is_the_exact_plan():
    random = np.random.default_rng(6)
    for _ in range(30):
        case = random_case(random, 15)
        one = case.bounds[0]
        arguments = {"energy_weight": case.weight, "constraints": case.constraints}
        safe = make_plan(case.fleet, one, plausible=[one], **arguments)
        best = make_plan(case.fleet, one, method="exact", **arguments)
        assert safe.status == best.status
        if best.success:
            assert safe.prediction.cost == pytest.approx(best.prediction.cost, rel=1e-9)
            assert safe.regret == pytest.approx(0, abs=1e-12)


def test_robust_predicts_with_the_given_bound_and_keeps_its_setting_if_that_moves():
    random = np.random.default_rng(10)
    case = random_case(random)
    plans = [
        make_plan(case.fleet, bound, energy_weight=0.3, plausible=case.bounds)
        for bound in (CENTRE, Bound(a0=CENTRE.a0 * 7, b0=7.0, c0=35.0))
    ]
    assert plans[0].setting.pair == plans[1].setting.pair
    assert plans[1].prediction.cost == pytest.approx(7 * plans[0].prediction.cost)


def test_worst_case_regret_inside_the_hull_of_the_bounds_is_no_worse():
    random = np.random.default_rng(11)
    for _ in range(20):
        case = random_case(random, 15)
        plan = make_plan(case.fleet, CENTRE, energy_weight=case.weight, plausible=case.bounds)
        shares = random.dirichlet(np.ones(len(case.bounds)))
        mixed = Bound(
            **{
                name: float(shares @ [getattr(bound, name) for bound in case.bounds])
                for name in ("a0", "b0", "c0")
            }
        )
        grid = bruteforce.grid(case.fleet, mixed, bruteforce.steps_to_search(*case.bounds))
        cost = grid.cost(Objective.weighted(case.weight))
        k, e = plan.setting.pair
        assert cost[k - 1, e - 1] / cost.min() - 1 <= plan.regret + 1e-9


def test_on_a_coarse_lattice_the_regret_is_still_true_and_bounded_from_below(monkeypatch):
    monkeypatch.setattr(grid, "_MAX_WORK", 1)
    monkeypatch.setattr(robust, "affordable_lattice", lambda _: 8)
    random = np.random.default_rng(12)
    for _ in range(60):
        case = random_case(random, 40)
        case.constraints = case.constraints.ranges_only()
        plan, regrets = case.plan(), case.regrets()
        k, e = plan.setting.pair
        assert plan.regret == pytest.approx(regrets[k - 1, e - 1], rel=1e-9, abs=1e-9)
        assert plan.certificate.lower_bound <= regrets.min() + 1e-12
        assert plan.certificate.gap == pytest.approx(plan.regret - plan.certificate.lower_bound)


def test_on_a_coarse_lattice_limits_are_met_and_hardly_anything_is_missed(monkeypatch):
    monkeypatch.setattr(grid, "_MAX_WORK", 1)
    monkeypatch.setattr(robust, "affordable_lattice", lambda _: 16)
    random = np.random.default_rng(14)
    limited = 0
    while limited < 60:
        case = random_case(random, 80)
        if not case.constraints.limits_totals:
            continue
        limited += 1
        plan, regrets = case.plan(), case.regrets()
        assert plan.success == (regrets is not None)
        if regrets is not None:
            k, e = plan.setting.pair
            assert plan.regret == pytest.approx(regrets[k - 1, e - 1], abs=0.01)
            assert regrets[k - 1, e - 1] <= regrets.min() + 0.005
            assert plan.certificate.lower_bound <= regrets.min() + 1e-12


def test_no_gap_of_a_lattice_hides_a_regret_below_its_lower_bound():
    random = np.random.default_rng(13)
    for _ in range(150):
        case = random_case(random, 60)
        case.constraints = Constraints()
        objective = Objective.weighted(case.weight)
        n, steps = case.grids[0].rounds.shape
        ks, es = (
            np.unique([1, *random.integers(1, last + 1, random.integers(0, 4)), last])
            for last in (n, steps)
        )
        problem = Problem(fleet=case.fleet, objective=objective)
        bounds = [bound.at_gap(case.gap) for bound in case.bounds]
        asked = Asked.of(problem, bounds, case.quantile)
        sketch = Sketch(asked, ks, es)
        all_ks, all_es = np.arange(1, n + 1), np.arange(1, steps + 1)
        exact = round_times_s(case.fleet, all_ks, all_es)
        assert (sketch.seconds_at_least(all_ks, all_es) <= exact * (1 + 1e-12)).all()
        optima = np.array([grid.cost(objective).min() for grid in case.grids])
        for some_ks, some_es in ((ks, es), (all_ks, es), (all_ks, all_es)):
            lower_bound = sketch.regret_at_least(some_ks, some_es, optima)
            assert 0 <= lower_bound <= case.regrets().min() + 1e-12


def test_robust_needs_bounds_and_a_sensible_quantile():
    fleet = Fleet(step_time_s=1.0, comm_time_s=1.0)
    with pytest.raises(InputError, match="plausible"):
        make_plan(fleet, CENTRE, method="robust")
    for quantile in (0.0, 1.5, math.nan):
        with pytest.raises(InputError, match="regret_quantile"):
            make_plan(fleet, CENTRE, plausible=[CENTRE], regret_quantile=quantile)
