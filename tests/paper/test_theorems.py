"""Theorems 1-4, Corollaries 1-4 and Eqs. 21-22 on P3, and where exact stragglers break them.

P3 prices a round at the mean time and takes c0 = b0; each test states the theorem's conditions.
"""

from __future__ import annotations

import math

import bruteforce
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from planned import make_plan
from strategies import fleets, nonnegative, paper_bounds, positive

from fedplan import Bound, Fleet, Objective, draw_fleet, predict
from fedplan.convergence.bound import gap_after_rounds, rounds_for_gap
from fedplan.planning.paper import closed_form_clients, closed_form_steps
from fedplan.planning.steps import optimal_steps, training_cost

quick = settings(max_examples=80, deadline=None)
costly_fleets = fleets(min_devices=2, energy=positive, comm=positive)
inner_weights = st.floats(0.02, 0.98)


def p3_cost(fleet, bound, weight, k, e):
    objective = Objective.weighted(weight)
    return predict(fleet, bound, objective, k, e, exact_stragglers=False).cost


def slope(cost, at):
    """d log cost / d log x, by a central difference."""
    step = 1e-5
    return (cost(at * (1 + step)) - cost(at * (1 - step))) / (2 * step * cost(at))


@quick
@given(fleets(min_devices=3), paper_bounds(), st.floats(0, 1), st.integers(1, 200), st.data())
def test_theorem_1_the_curvature_in_k_is_the_papers_and_vanishes_at_weight_1(
    fleet, bound, weight, e, data
):
    n = len(fleet)
    k = data.draw(st.integers(2, n - 1))
    below, here, above = (p3_cost(fleet, bound, weight, at, e) for at in (k - 1, k, k + 1))
    shared = fleet.mean("step_time_s") * e**2 + fleet.mean("comm_time_s") * e
    # The paper's second derivative holds (1 / K)'' = 2 / K^3; on integers that is 2 / (K^3 - K).
    curvature = (1 - weight) * bound.b0 * n / (n - 1) * shared * 2 / (k**3 - k)
    rounding = 1e-13 * (below + above)
    assert above - 2 * here + below == pytest.approx(curvature, rel=1e-9, abs=rounding)


@quick
@given(fleets(min_devices=2), paper_bounds(), st.floats(0, 0.98), st.integers(2, 200), st.data())
def test_theorem_1_p3_is_strictly_convex_in_local_steps(fleet, bound, weight, e, data):
    k = data.draw(st.integers(1, len(fleet)))
    below, here, above = (p3_cost(fleet, bound, weight, k, at) for at in (e - 1, e, e + 1))
    assert above - here > here - below


@quick
@given(costly_fleets, paper_bounds(), inner_weights, st.floats(1, 200))
def test_eq_21_is_where_p3_is_stationary_in_k(fleet, bound, weight, e):
    k = closed_form_clients(fleet, bound, Objective.weighted(weight), e)
    assert slope(lambda at: bruteforce.p3(fleet, bound, weight, at, e), k) == pytest.approx(
        0, abs=1e-7
    )


@quick
@given(costly_fleets, paper_bounds(), st.floats(0, 1), st.data())
def test_eq_22_corrected_is_where_p3_is_stationary_in_local_steps(fleet, bound, weight, data):
    k = data.draw(st.floats(1, len(fleet)))
    e = closed_form_steps(fleet, bound, Objective.weighted(weight), k)
    assert slope(lambda at: bruteforce.p3(fleet, bound, weight, k, at), e) == pytest.approx(
        0, abs=1e-7
    )


@quick
@given(costly_fleets, paper_bounds(), st.floats(0, 1), st.data())
def test_eq_22_as_printed_always_lies_past_the_minimum(fleet, bound, weight, data):
    k = data.draw(st.floats(1, len(fleet)))
    printed = bruteforce.printed_steps(fleet, bound, weight, k)
    right = closed_form_steps(fleet, bound, Objective.weighted(weight), k)
    assert printed > right
    cost = [bruteforce.p3(fleet, bound, weight, k, e) for e in (right, printed)]
    assert cost[1] > cost[0]


@quick
@given(positive, positive, st.floats(1e-2, 1e6), positive)
def test_optimal_steps_solves_the_cubic_and_minimises_the_training_cost(p, q, a0, drift):
    e = float(optimal_steps(p, q, a0, drift))
    assert 2 * p / q * e**3 + e**2 == pytest.approx(a0 / drift, rel=1e-9)
    best = (p * e + q) * (a0 / e + drift * e)
    assert training_cost(p, q, a0, drift, e) == pytest.approx(best, rel=1e-12)
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert training_cost(p, q, a0, drift, e * factor) > best


@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1e6, 1e12])
def test_optimal_steps_keeps_its_digits_when_costs_are_very_unequal(ratio):
    e = float(optimal_steps(ratio, 1.0, 1e4, 1.0))
    assert 2 * ratio * e**3 + e**2 == pytest.approx(1e4, rel=1e-12)


def test_optimal_steps_has_the_right_limits():
    assert optimal_steps(1.0, 0.0, 100.0, 1.0) == 0.0  # a round itself is free
    assert optimal_steps(1.0, 1.0, 0.0, 1.0) == 0.0
    assert optimal_steps(0.0, 1.0, 100.0, 1.0) == pytest.approx(10.0)  # only rounds cost
    assert optimal_steps(1.0, 1.0, 100.0, 0.0) == math.inf


@quick
@given(fleets(min_devices=2), paper_bounds(), st.integers(1, 200))
def test_theorem_2_time_alone_under_mean_times_falls_with_k_so_all_clients_are_best(
    fleet, bound, e
):
    costs = [p3_cost(fleet, bound, 0.0, k, e) for k in range(1, len(fleet) + 1)]
    assert (np.diff(costs) < 0).all()
    assert make_plan(fleet, bound, energy_weight=0, method="paper").setting.pair[0] == len(fleet)


def test_theorem_2_fails_under_exact_stragglers_on_setup_3s_fleet():
    fleet = draw_fleet(100, step_time_s=(0.1, 0.1 / 3), comm_time_s=(2.0, 2.0 / 3), seed=1)
    bound = Bound.from_ratio(3750)
    assert make_plan(fleet, bound, energy_weight=0, method="paper").setting.pair[0] == 100
    assert make_plan(fleet, bound, energy_weight=0, method="exact").setting.pair == (1, 24)


@quick
@given(positive, nonnegative, st.integers(2, 40), paper_bounds())
def test_theorem_2_holds_exactly_for_equal_devices(step_s, comm_s, n, bound):
    fleet = Fleet(step_time_s=step_s, comm_time_s=comm_s, count=n)
    assert make_plan(fleet, bound, energy_weight=0, method="exact").setting.pair[0] == n


@quick
@given(costly_fleets, paper_bounds(), st.sampled_from([0.0, 1.0]), st.data())
def test_corollaries_1_and_3_cost_falls_then_rises_with_local_steps(fleet, bound, weight, data):
    k = data.draw(st.integers(1, len(fleet)))
    turn = closed_form_steps(fleet, bound, Objective.weighted(weight), k)
    steps = np.arange(1, math.ceil(turn) + 50)
    costs = np.array([p3_cost(fleet, bound, weight, k, int(e)) for e in steps])
    assert (np.diff(costs[steps <= turn]) < 0).all()
    assert (np.diff(costs[steps >= turn]) > 0).all()


@quick
@given(costly_fleets, paper_bounds(), st.floats(1.1, 10), st.sampled_from([0.0, 1.0]), st.data())
def test_corollaries_2_and_4_dearer_communication_means_more_local_steps(
    fleet, bound, factor, weight, data
):
    k = data.draw(st.floats(1, len(fleet)))
    dearer = Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s * (factor if weight == 0 else 1),
        step_energy_j=fleet.step_energy_j,
        comm_energy_j=fleet.comm_energy_j * (factor if weight == 1 else 1),
    )
    objective = Objective.weighted(weight)
    assert closed_form_steps(dearer, bound, objective, k) > closed_form_steps(
        fleet, bound, objective, k
    )


@quick
@given(fleets(min_devices=2, energy=positive), paper_bounds(), st.integers(1, 200))
def test_theorem_3_energy_alone_rises_with_k_so_one_client_is_best_stragglers_or_not(
    fleet, bound, e
):
    costs = [p3_cost(fleet, bound, 1.0, k, e) for k in range(1, len(fleet) + 1)]
    assert (np.diff(costs) > 0).all()
    for method in ("paper", "exact"):
        assert make_plan(fleet, bound, energy_weight=1, method=method).setting.pair[0] == 1


def test_theorem_3_fails_where_sampling_few_clients_costs_more_rounds_than_the_paper_assumes():
    fleet = Fleet(step_time_s=[0.1] * 10, comm_time_s=1.0, step_energy_j=1.0, comm_energy_j=50.0)
    refined = Bound(a0=100.0, b0=1.0, c0=200.0)
    assert make_plan(fleet, refined, energy_weight=1, method="exact").setting.pair[0] == 10


def alternate(fleet, bound, weight, start=None):
    """(K*, E*) of P3: the closed forms in turn from K = N or `start`, as Algorithm 2 does."""
    objective = Objective.weighted(weight)
    k = float(start or len(fleet))
    for _ in range(300):
        e = max(1.0, closed_form_steps(fleet, bound, objective, k))
        k = min(max(1.0, closed_form_clients(fleet, bound, objective, e)), len(fleet))
    return k, e


@settings(max_examples=30, deadline=None)
@given(costly_fleets, paper_bounds(), st.floats(0.01, 10))
def test_theorem_4_at_equal_power_k_and_e_fall_as_the_energy_weight_grows(fleet, bound, watts):
    fleet = Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s,
        step_energy_j=watts * fleet.step_time_s,
        comm_energy_j=watts * fleet.comm_time_s,
    )
    path = np.array([alternate(fleet, bound, weight) for weight in np.linspace(0, 1, 9)])
    assert (np.diff(path, axis=0) <= 1e-6 * path[:-1]).all()
    assert path[0, 0] == len(fleet)
    assert path[-1, 0] == 1


@settings(max_examples=30, deadline=None)
@given(costly_fleets, paper_bounds(), inner_weights, st.data())
def test_alternating_from_anywhere_ends_in_the_global_minimum_of_p3(fleet, bound, weight, data):
    # c(K) = (N-2)/(N-1) + N/((N-1) K), so P3 is a sum of positive terms in powers of K and E: a
    # geometric program, convex in (log K, log E). Biconvexity alone would not promise this.
    n = len(fleet)
    k, e = alternate(fleet, bound, weight)
    other = alternate(fleet, bound, weight, start=data.draw(st.floats(1, n)))
    assert other == pytest.approx((k, e), rel=1e-6)
    ks = np.geomspace(1, n, 60)[:, None]
    es = np.geomspace(1, 2 * bound.fewest_rounds_steps(), 200)[None, :]
    least = bruteforce.p3(fleet, bound, weight, k, e)
    assert (bruteforce.p3(fleet, bound, weight, ks, es) >= least * (1 - 1e-9)).all()


def test_theorem_4_fails_under_exact_stragglers():
    # The slowest device computes slowly but talks fast, so all clients want short local runs.
    times = {"step_time_s": [0.2, 2.0], "comm_time_s": [10.0, 1.0]}
    fleet = Fleet(**times, step_energy_j=times["step_time_s"], comm_energy_j=times["comm_time_s"])
    settings_chosen = [
        make_plan(fleet, Bound(a0=400.0, b0=1.0), energy_weight=weight).setting.pair
        for weight in (0.0, 0.1)
    ]
    assert settings_chosen == [(2, 5), (1, 7)]


def test_eq_21_has_the_right_limits():
    fleet = Fleet(step_time_s=1.0, comm_time_s=1.0, step_energy_j=1.0, count=10)
    bound = Bound(a0=100.0, b0=1.0)
    assert closed_form_clients(fleet, bound, Objective.weighted(0.0), 5.0) == math.inf
    assert closed_form_clients(fleet, bound, Objective.weighted(1.0), 5.0) == 0.0
    alone = Fleet(step_time_s=1.0, comm_time_s=1.0, step_energy_j=1.0)
    assert closed_form_clients(alone, bound, Objective.weighted(0.5), 5.0) == 1.0


@quick
@given(fleets(min_devices=2, max_devices=2, energy=positive), paper_bounds(), inner_weights)
def test_eq_21_holds_for_two_devices_where_its_n_minus_2_term_vanishes(fleet, bound, weight):
    k = closed_form_clients(fleet, bound, Objective.weighted(weight), 7.0)
    assert slope(lambda at: bruteforce.p3(fleet, bound, weight, at, 7.0), k) == pytest.approx(
        0, abs=1e-7
    )


@quick
@given(paper_bounds(), st.integers(1, 50), st.integers(1, 300), st.floats(1e-3, 10), st.data())
def test_rounds_for_gap_and_gap_after_rounds_are_inverse(bound, n, e, gap, data):
    k = data.draw(st.integers(1, n))
    rounds = float(rounds_for_gap(bound, k, e, n, gap))
    assume(rounds > 0)
    s = bruteforce.sampling_term(k, n)
    assert rounds == pytest.approx((bound.a0 + bound.b0 * (1 + s) * e**2) / (e * gap), rel=1e-12)
    assert gap_after_rounds(bound, k, e, n, rounds) == pytest.approx(gap, rel=1e-12)
