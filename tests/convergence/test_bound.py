"""The bound: its terms, its limits, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan import Bound, Constraints, InputError
from fedplan.convergence.bound import drift, gap_after_rounds, rounds_for_gap, sampling_variance
from fedplan.planning.steps import steps_range


def test_leaving_c0_out_means_the_papers_bound():
    assert Bound(a0=5.0, b0=2.0).c0 == 2.0
    assert Bound(a0=5.0, b0=2.0, c0=0.0).c0 == 0.0
    assert Bound(a0=5.0, b0=2.0, c0=9.0).as_in_paper == Bound(a0=5.0, b0=2.0, c0=2.0)
    assert Bound.from_ratio(73.0) == Bound(a0=73.0, b0=1.0, c0=1.0)


def test_wrong_coefficients_are_all_listed():
    with pytest.raises(InputError) as caught:
        Bound(a0=-1.0, b0=math.nan, c0=math.inf)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="a0 \\+ b0 > 0"):
        Bound(a0=0.0, b0=0.0, c0=1.0)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 10**6), st.data())
def test_the_sampling_term_is_one_alone_zero_together_and_falls_between(n, data):
    k = data.draw(st.integers(1, n - 1))
    assert sampling_variance(1, n) == 1
    assert sampling_variance(n, n) == 0
    assert sampling_variance(k, n) > sampling_variance(k + 1, n)
    assert sampling_variance(k, n) == pytest.approx((n / k - 1) / (n - 1), rel=1e-9)


def test_a_fleet_of_one_has_no_sampling_term():
    assert sampling_variance(1, 1) == 0
    assert drift(Bound(a0=1.0, b0=2.0, c0=50.0), 1, 1) == 2.0


def test_the_sampling_term_is_the_variance_of_a_mean_of_k_of_n():
    random = np.random.default_rng(0)
    values = random.standard_normal(9)
    one = values.var()
    for k in (1, 2, 5, 9):
        samples = np.array([random.permutation(9)[:k] for _ in range(20_000)])
        assert values[samples].mean(axis=1).var() == pytest.approx(
            one * float(sampling_variance(k, 9)), rel=0.05, abs=1e-12
        )


def test_rounds_broadcast_over_clients_and_steps():
    bound = Bound(a0=100.0, b0=1.0, c0=3.0)
    rounds = rounds_for_gap(bound, np.array([[1], [4]]), np.array([[5, 10]]), 4, 0.5)
    assert rounds == pytest.approx(np.array([[80.0, 100.0], [50.0, 40.0]]))


def test_halving_the_gap_doubles_the_rounds_and_more_rounds_shrink_the_gap():
    bound = Bound(a0=100.0, b0=1.0, c0=3.0)
    needed = rounds_for_gap(bound, 2, 5, 10, 1.0)
    assert rounds_for_gap(bound, 2, 5, 10, 0.5) == pytest.approx(2 * needed)
    gaps = gap_after_rounds(bound, 2, 5, 10, np.array([1, 10, 100]))
    assert gaps == pytest.approx(float(gaps[0]) / np.array([1, 10, 100]))


@settings(max_examples=50, deadline=None)
@given(st.floats(1, 1e6), st.floats(1e-2, 10), st.floats(0, 50), st.integers(1, 20))
def test_past_the_steps_of_fewest_rounds_no_k_needs_fewer_rounds(a0, b0, c0, k):
    bound = Bound(a0=a0, b0=b0, c0=c0)
    furthest = math.ceil(bound.fewest_rounds_steps())
    beyond = rounds_for_gap(bound, k, np.array([furthest, furthest + 1, furthest * 3]), 20)
    assert (np.diff(beyond) >= -1e-12 * beyond[0]).all()
    assert steps_range(Constraints(), bound) == (1, max(1, furthest))


def test_without_drift_the_steps_must_be_limited():
    endless = Bound(a0=10.0, b0=0.0, c0=0.0)
    assert endless.fewest_rounds_steps() == math.inf
    with pytest.raises(InputError, match="max_local_steps"):
        steps_range(Constraints(), endless)
    assert steps_range(Constraints(max_local_steps=30), endless) == (1, 30)


def test_wrong_constraints_are_all_listed():
    with pytest.raises(InputError) as caught:
        Constraints(
            deadline_s=0.0,
            energy_budget_j=math.inf,
            max_rounds=-3,
            min_clients_per_round=0,
            min_local_steps=9,
            max_local_steps=8,
        )
    assert len(caught.value.problems) == 5
    with pytest.raises(InputError, match="num_clients=3"):
        Constraints(min_clients_per_round=4).clients_range(3)
