"""The paper's published numbers: what reproduces, and what does not (Table I's averages)."""

from __future__ import annotations

import bruteforce
import numpy as np
import pytest
from planned import make_plan

from fedplan import Bound, Fleet, Objective, estimate_bound
from fedplan.convergence.estimation import estimation_overhead, pair_ratios
from fedplan.planning.paper import closed_form_steps
from fedplan_reproduction.published import published_pilots

SETUP_1 = Fleet(step_time_s=3.1e-3, comm_time_s=0.34, count=20)
SETUP_2 = Fleet(step_time_s=0.1, comm_time_s=2.0, count=100)
SETUP_3 = Fleet(step_time_s=0.1, comm_time_s=2.0, step_energy_j=1e-3, comm_energy_j=2e-2, count=100)

# fleet, gamma, published A0/B0, integer optimum of P3, root of the right cubic, of the printed one
ROWS = [
    pytest.param(SETUP_1, 0.0, 73_560, (20, 143), 142.8, 169.9, id="setup 1, gamma 0"),
    pytest.param(SETUP_2, 0.0, 3_140, (100, 29), 28.5, 34.1, id="setup 2, gamma 0"),
    pytest.param(SETUP_3, 0.0, 3_750, (100, 30), 30.4, 36.5, id="setup 3, gamma 0"),
    pytest.param(SETUP_3, 0.45, 3_750, (5, 29), 28.6, 34.1, id="setup 3, gamma 0.45"),
    pytest.param(SETUP_3, 0.9, 3_750, (1, 24), 23.6, 28.0, id="setup 3, gamma 0.9"),
]

NUM_CLIENTS = {1: 20, 2: 100, 3: 100}


def table_pilots(setup):
    """One row of Table I: rounds to F_a and F_b at each sampled (K, E)."""
    return published_pilots(f"setup{setup}")


@pytest.mark.parametrize(("fleet", "weight", "ratio", "optimum", "right", "printed"), ROWS)
def test_the_papers_method_finds_the_integer_optimum_of_p3(
    fleet, weight, ratio, optimum, right, printed
):
    bound = Bound.from_ratio(ratio)
    plan = make_plan(fleet, bound, energy_weight=weight, method="paper")
    assert plan.setting.pair == optimum
    k = np.arange(1.0, len(fleet) + 1)[:, None]
    e = np.arange(1.0, 400.0)[None, :]
    costs = bruteforce.p3(fleet, bound, weight, k, e)
    assert tuple(np.argwhere(costs == costs.min())[0] + 1) == optimum
    assert plan.prediction.cost == pytest.approx(costs.min(), rel=1e-12)


@pytest.mark.parametrize(("fleet", "weight", "ratio", "optimum", "right", "printed"), ROWS)
def test_the_right_cubic_is_next_to_the_optimum_and_the_printed_one_a_fifth_too_far(
    fleet, weight, ratio, optimum, right, printed
):
    bound, k = Bound.from_ratio(ratio), optimum[0]
    root = closed_form_steps(fleet, bound, Objective.weighted(weight), k)
    assert root == pytest.approx(right, abs=0.05)
    assert abs(root - optimum[1]) < 1
    assert bruteforce.printed_steps(fleet, bound, weight, k) == pytest.approx(printed, abs=0.05)
    nearby = root * np.array([0.999, 1.001])
    least = bruteforce.p3(fleet, bound, weight, k, root)
    assert (bruteforce.p3(fleet, bound, weight, k, nearby) > least).all()
    assert bruteforce.p3(fleet, bound, weight, k, printed) > least * 1.005


@pytest.mark.parametrize(("setup", "mean"), [(1, 63_489), (3, 3_529)])
def test_the_mean_over_all_pairs_of_table_1_is_not_the_published_ratio(setup, mean):
    pilots, n = table_pilots(setup), NUM_CLIENTS[setup]
    ratios = pair_ratios(pilots, n)
    assert np.isfinite(ratios).all()
    assert ratios.mean() == pytest.approx(mean, abs=0.5)
    estimate = estimate_bound(pilots, n, method="pairwise")
    assert estimate.ratio == pytest.approx(mean, abs=0.5)
    assert (estimate.status, estimate.pairs_used, estimate.pairs_rejected) == ("ok", len(ratios), 0)


def test_every_pair_of_table_1_solves_eq_25():
    pilots = table_pilots(1)
    ratios = iter(pair_ratios(pilots, 20))
    for position, one in enumerate(pilots):
        for other in pilots[position + 1 :]:
            rho = next(ratios)
            need = [
                rho
                + (1 + (20 - p.clients_per_round) / (p.clients_per_round * 19)) * p.local_steps**2
                for p in (one, other)
            ]
            spent = [p.local_steps * (p.rounds_to_lower - p.rounds_to_upper) for p in (one, other)]
            assert need[0] / need[1] == pytest.approx(spent[0] / spent[1], rel=1e-9)


def test_setup_2_of_table_1_has_one_undefined_and_two_negative_pairs():
    ratios = pair_ratios(table_pilots(2), 100)
    assert ratios.size == 21
    assert np.isnan(ratios).sum() == 1
    assert (ratios < 0).sum() == 2
    estimate = estimate_bound(table_pilots(2), 100, method="pairwise")
    assert estimate.status == "ill-conditioned"
    assert (estimate.pairs_used, estimate.pairs_rejected) == (18, 3)


def test_setups_2_and_3_pilot_only_k_equal_to_e_and_are_called_ill_conditioned():
    for setup in (2, 3):
        assert estimate_bound(table_pilots(setup), 100).status == "ill-conditioned"


def test_setup_3s_pilots_cost_more_than_twice_the_training():
    pilots = table_pilots(3)
    assert estimation_overhead(pilots, rounds=1, local_steps=1) == 15_380
    assert estimation_overhead(pilots, rounds=7_000 / 30, local_steps=30) > 2
