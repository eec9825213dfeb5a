"""The time-energy frontier against the non-dominated pairs of a brute force."""

from __future__ import annotations

from itertools import pairwise

import bruteforce
import numpy as np
import pytest
from planned import make_plan
from strategies import random_bound, random_constraints, random_fleet

from fedplan import Bound, Constraints, Fleet, Objective, compute_frontier
from fedplan.planning import surface as grid_module


def spread_fleet(random, size):
    """Continuous values: no two settings take exactly the same time or energy."""
    return Fleet(
        step_time_s=random.lognormal(-2, 0.7, size),
        comm_time_s=random.lognormal(0.5, 0.7, size),
        step_energy_j=random.lognormal(-3, 0.7, size),
        comm_energy_j=random.lognormal(-1, 0.7, size),
    )


def spread_case(random, *, limited=0.2):
    fleet = spread_fleet(random, int(random.integers(1, 25)))
    bound = Bound(a0=random.uniform(1, 30) ** 2, b0=1.0, c0=random.uniform(0.1, 30))
    gap = float(random.choice([1.0, 0.3]))
    grid = bruteforce.grid(fleet, bound, bruteforce.steps_to_search(bound), gap=gap)
    constraints = random_constraints(random, grid, limited=limited)
    return fleet, bound, gap, grid, constraints


def settings_of(points):
    return [(point.clients_per_round, point.local_steps) for point in points]


@pytest.mark.parametrize("seed", range(4))
def test_the_frontier_is_the_set_of_non_dominated_settings(seed):
    random = np.random.default_rng([20, seed])
    compared = 0
    while compared < 40:
        fleet, bound, gap, grid, constraints = spread_case(random)
        allowed = grid.allowed(constraints)
        if not allowed.any():
            continue
        points = compute_frontier(fleet, bound, target_gap=gap, constraints=constraints)
        chosen = settings_of(points)
        assert len(set(chosen)) == len(chosen)
        assert set(chosen) == bruteforce.non_dominated(grid.time_s, grid.energy_j, allowed)
        for point, (k, e) in zip(points, chosen, strict=True):
            assert point.time_s == pytest.approx(grid.time_s[k - 1, e - 1], rel=1e-9)
            assert point.energy_j == pytest.approx(grid.energy_j[k - 1, e - 1], rel=1e-9)
        compared += 1


def test_with_ties_and_zeros_every_setting_is_matched_by_a_point_and_no_point_is_beaten():
    random = np.random.default_rng(21)
    for _ in range(120):
        fleet, bound = random_fleet(random, 20), random_bound(random, 25)
        grid = bruteforce.grid(fleet, bound, bruteforce.steps_to_search(bound))
        points = compute_frontier(fleet, bound)
        t, j = np.array([(point.time_s, point.energy_j) for point in points]).T
        assert (np.diff(t) > 0).all()
        assert (np.diff(j) < 0).all()
        all_t, all_j = grid.time_s.ravel(), grid.energy_j.ravel()
        served = (t <= all_t[:, None] * (1 + 1e-9)) & (j <= all_j[:, None] * (1 + 1e-9))
        assert served.any(axis=1).all()
        # Without c0 equal devices take the same time at every K, to rounding.
        as_fast = all_t[:, None] <= t * ((1 - 1e-9) if bound.c0 == 0 else (1 + 1e-12))
        assert not (as_fast & (all_j[:, None] < j * (1 - 1e-9))).any()
        as_thrifty = all_j[:, None] <= j * (1 + 1e-12)
        assert not (as_thrifty & (all_t[:, None] < t * (1 - 1e-9))).any()


def test_the_ranges_of_energy_weight_tile_zero_to_one():
    random = np.random.default_rng(22)
    for _ in range(60):
        fleet, bound, _, _, _ = spread_case(random)
        points = compute_frontier(fleet, bound)
        supported = [p for p in points if p.energy_weight_from is not None]
        assert supported[0] is points[0]
        assert supported[-1] is points[-1]
        assert supported[0].energy_weight_from == 0
        assert supported[-1].energy_weight_to == 1
        for left, right in pairwise(supported):
            assert left.energy_weight_to == right.energy_weight_from
            assert left.energy_weight_from < left.energy_weight_to


def test_make_plan_selects_each_supported_point_inside_its_range_and_no_other():
    random = np.random.default_rng(23)
    unsupported = 0
    for _ in range(25):
        fleet, bound, gap, _, constraints = spread_case(random, limited=0.0)
        points = compute_frontier(fleet, bound, target_gap=gap, constraints=constraints)
        for point in points:
            if point.energy_weight_from is None:
                assert point.energy_weight_to is None
                unsupported += 1
                continue
            inside = random.uniform(point.energy_weight_from, point.energy_weight_to)
            plan = make_plan(
                fleet, bound, target_gap=gap, energy_weight=inside, constraints=constraints
            )
            assert plan.setting.pair == (point.clients_per_round, point.local_steps)
    assert unsupported > 10


def test_an_unsupported_point_is_cheapest_at_no_energy_weight():
    random = np.random.default_rng(24)
    for _ in range(20):
        fleet, bound, _, _, _ = spread_case(random)
        points = compute_frontier(fleet, bound)
        t, j = np.array([(point.time_s, point.energy_j) for point in points]).T
        weight = np.linspace(0, 1, 2001)[:, None]
        cheapest = set(np.argmin((1 - weight) * t + weight * j, axis=1).tolist())
        supported = {i for i, p in enumerate(points) if p.energy_weight_from is not None}
        assert cheapest <= supported


def test_the_ends_are_the_fastest_and_the_thriftiest_plan():
    random = np.random.default_rng(25)
    for _ in range(20):
        fleet, bound, _, _, _ = spread_case(random)
        points = compute_frontier(fleet, bound)
        fastest = make_plan(fleet, bound, energy_weight=0.0).setting.pair
        thriftiest = make_plan(fleet, bound, energy_weight=1.0).setting.pair
        assert settings_of(points)[0] == fastest
        assert settings_of(points)[-1] == thriftiest


def test_without_any_energy_the_frontier_is_the_fastest_setting_alone():
    fleet = Fleet(step_time_s=[0.1, 0.2, 0.7], comm_time_s=1.0)
    bound = Bound(a0=200.0, b0=1.0, c0=4.0)
    (point,) = compute_frontier(fleet, bound)
    assert point.time_s == pytest.approx(make_plan(fleet, bound).prediction.time_s, rel=1e-12)
    assert (point.energy_weight_from, point.energy_weight_to) == (0.0, 1.0)


def test_a_fleet_too_large_to_list_gets_a_lattice_of_true_points_none_dominating_another(
    monkeypatch,
):
    monkeypatch.setattr(grid_module, "_MAX_WORK", 1)
    random = np.random.default_rng(26)
    fleet = spread_fleet(random, 150)
    bound = Bound(a0=5000.0, b0=1.0, c0=20.0)
    grid = bruteforce.grid(fleet, bound, bruteforce.steps_to_search(bound))
    points = compute_frontier(fleet, bound)
    t, j = np.array([(point.time_s, point.energy_j) for point in points]).T
    assert (np.diff(t) > 0).all()
    assert (np.diff(j) < 0).all()
    for (k, e), point in zip(settings_of(points), points, strict=True):
        assert point.time_s == pytest.approx(grid.time_s[k - 1, e - 1], rel=1e-9)
    for weight in (0.0, 0.2, 0.8, 1.0):
        cost = grid.cost(Objective.weighted(weight))
        assert ((1 - weight) * t + weight * j).min() <= cost.min() * 1.02


def test_limits_cut_the_frontier():
    random = np.random.default_rng(27)
    fleet = spread_fleet(random, 12)
    bound = Bound(a0=300.0, b0=1.0, c0=9.0)
    whole = compute_frontier(fleet, bound)
    middle = whole[len(whole) // 2]
    limits = Constraints(deadline_s=middle.time_s)
    kept = compute_frontier(fleet, bound, constraints=limits)
    assert settings_of(kept) == settings_of(whole)[: len(whole) // 2 + 1]


def test_limits_that_nothing_meets_leave_an_empty_frontier():
    fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, step_energy_j=1.0)
    limits = Constraints(deadline_s=1e-3)
    assert compute_frontier(fleet, Bound(a0=100.0, b0=1.0), constraints=limits) == []
