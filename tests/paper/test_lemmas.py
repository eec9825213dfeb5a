"""Lemmas 1 and 2 and the paper's two exact cases, against enumeration of all subsets."""

from __future__ import annotations

import math

import bruteforce
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import fleets, nonnegative, positive

from fedplan import Fleet
from fedplan.participation.slowest import SlowestClient, expected_slowest, log_choose_ratio
from fedplan.participation.uniform_sampling import mean_round_time_s, round_energy_j, round_time_s

quick = settings(max_examples=60, deadline=None)
times = st.one_of(nonnegative, st.sampled_from([0.0, 1.0, 2.0]))


@quick
@given(st.lists(times, min_size=1, max_size=12))
def test_lemma_2_equals_the_mean_maximum_of_all_subsets_at_every_k(values):
    ks = range(1, len(values) + 1)
    listed = [bruteforce.mean_max_of_subsets(values, k) for k in ks]
    assert expected_slowest(values, list(ks)) == pytest.approx(listed, rel=1e-12)


@quick
@given(st.lists(st.tuples(times, st.integers(1, 3)), min_size=1, max_size=4))
def test_lemma_2_with_counts_equals_the_subsets_of_the_expanded_fleet(groups):
    values, count = zip(*groups, strict=True)
    expanded = np.repeat(values, count).tolist()
    ks = range(1, len(expanded) + 1)
    listed = [bruteforce.mean_max_of_subsets(expanded, k) for k in ks]
    assert expected_slowest(values, list(ks), count=count) == pytest.approx(listed, rel=1e-12)


def test_lemma_2_gives_zero_where_every_time_is_zero():
    assert expected_slowest([0.0, 0.0, 0.0], [1, 2, 3]).tolist() == [0.0, 0.0, 0.0]


@quick
@given(fleets(max_devices=9), st.integers(1, 300), st.data())
def test_round_time_and_energy_equal_the_mean_over_all_cohorts(fleet, local_steps, data):
    k = data.draw(st.integers(1, len(fleet)))
    step_s, comm_s, step_j, comm_j = bruteforce.expand(fleet)
    seconds = bruteforce.mean_max_of_subsets(step_s * local_steps + comm_s, k)
    joules = bruteforce.mean_sum_of_subsets(step_j * local_steps + comm_j, k)
    assert round_time_s(fleet, k, local_steps) == pytest.approx(seconds, rel=1e-12)
    assert round_energy_j(fleet, k, local_steps) == pytest.approx(joules, rel=1e-12)


def test_lemma_1_counts_every_device_of_a_group():
    fleet = Fleet(step_time_s=1.0, comm_time_s=1.0, step_energy_j=[1.0, 5.0], count=[3, 1])
    assert round_energy_j(fleet, 2, 10) == pytest.approx(2 * 10 * (3 * 1.0 + 5.0) / 4)


@quick
@given(fleets(min_devices=3), st.integers(1, 200))
def test_round_time_rises_with_k_and_ever_more_slowly(fleet, local_steps):
    seconds = SlowestClient(fleet, local_steps).round_time_s(np.arange(1, len(fleet) + 1))
    rounding = 1e-12 * seconds[-1]
    assert (np.diff(seconds) >= -rounding).all()
    assert (np.diff(seconds, 2) <= rounding).all()


@quick
@given(fleets(), st.lists(st.floats(1.0, 500.0), min_size=3, max_size=3, unique=True), st.data())
def test_round_time_is_convex_in_local_steps(fleet, steps, data):
    k = data.draw(st.integers(1, len(fleet)))
    low, middle, high = sorted(steps)
    share = (middle - low) / (high - low)
    chord = (1 - share) * round_time_s(fleet, k, low) + share * round_time_s(fleet, k, high)
    assert round_time_s(fleet, k, middle) <= chord * (1 + 1e-12)


@quick
@given(fleets(), st.floats(1.0, 500.0), st.floats(1.0, 500.0), st.data())
def test_the_slowest_clients_line_is_a_tangent_of_the_round_time(fleet, anchor, elsewhere, data):
    k = data.draw(st.integers(1, len(fleet)))
    step_s, comm_s = SlowestClient(fleet, anchor).step_and_comm_s(k)
    assert step_s[0] * anchor + comm_s[0] == pytest.approx(round_time_s(fleet, k, anchor))
    line = step_s[0] * elsewhere + comm_s[0]
    assert line <= round_time_s(fleet, k, elsewhere) * (1 + 1e-12)


@quick
@given(positive, nonnegative, st.integers(1, 40), st.integers(1, 200), st.data())
def test_case_1_equal_devices_take_the_mean_time_at_every_k(step_s, comm_s, n, steps, data):
    k = data.draw(st.integers(1, n))
    for fleet in (
        Fleet(step_time_s=[step_s] * n, comm_time_s=comm_s),
        Fleet(step_time_s=step_s, comm_time_s=comm_s, count=n),
    ):
        assert round_time_s(fleet, k, steps) == pytest.approx(step_s * steps + comm_s, rel=1e-12)


@quick
@given(fleets(), st.integers(1, 200))
def test_case_2_one_client_a_round_takes_the_mean_time(fleet, steps):
    assert round_time_s(fleet, 1, steps) == pytest.approx(mean_round_time_s(fleet, steps))


def test_a_million_devices_have_the_mean_at_one_client_and_the_maximum_at_all():
    random = np.random.default_rng(0)
    values = random.lognormal(0, 1, 10**6)
    n = values.size
    ks = [1, 2, 3, n // 2, n - 1, n]
    one, two, three, half, all_but_one, every = expected_slowest(values, ks)
    assert one == pytest.approx(values.mean(), rel=1e-11)
    assert every == values.max()
    ranked = np.sort(values)
    # K = 2 is C(i-1, 1) / C(N, 2) written out, and at K = N-1 only the two slowest can be slowest.
    assert two == pytest.approx(ranked @ np.arange(n) * 2 / (n * (n - 1)), rel=1e-11)
    assert all_but_one == pytest.approx(ranked[-1] - (ranked[-1] - ranked[-2]) / n, rel=1e-12)
    # At K = N/2 the ranks from the top have probability 1/2, 1/4, ... to one part in N.
    assert half == pytest.approx(ranked[::-1][:40] @ 0.5 ** np.arange(1, 41), rel=1e-4)
    assert one < two < three < half < all_but_one < every


@pytest.mark.parametrize("k", [1, 2, 17, 1000, 50_000, 99_999])
def test_a_grouped_fleet_equals_the_fleet_it_stands_for(k):
    random = np.random.default_rng(k)
    values, count = random.lognormal(0, 1, 500), random.integers(1, 400, 500)
    expanded = np.repeat(values, count)
    k = min(k, expanded.size)
    assert expected_slowest(values, k, count=count) == pytest.approx(
        expected_slowest(expanded, k), rel=1e-11
    )


def test_a_huge_grouped_fleet_stays_finite_and_between_mean_and_maximum():
    n = 10**12
    count = np.array([n // 2, n // 2 - 1, 1])
    slowest = expected_slowest([1.0, 2.0, 50.0], [1, 2, n // 2, n - 1, n], count=count)
    assert slowest[0] == pytest.approx((1.0 * count[0] + 2.0 * count[1] + 50.0) / n, rel=1e-12)
    assert slowest[1] == pytest.approx(0.25 * 1.0 + 0.75 * 2.0, rel=1e-9)
    assert slowest[2] == pytest.approx((2.0 + 50.0) / 2, rel=1e-9)
    assert slowest[4] == 50.0
    assert (np.diff(slowest) > 0).all()


@st.composite
def choices(draw, largest, nearest):
    """(M, c, K) with M - c and M - K at least M / nearest, and K <= M - c."""
    total = draw(st.integers(2, largest))
    least = max(1, math.ceil(total / nearest))
    removed = draw(st.integers(1, total - least))
    chosen = draw(st.integers(1, max(1, min(total - removed, total - least))))
    return total, removed, chosen


def log_ratio(total, removed, chosen):
    with mpmath.workdps(60):
        return (
            mpmath.loggamma(total - removed + 1)
            - mpmath.loggamma(total - removed - chosen + 1)
            - mpmath.loggamma(total + 1)
            + mpmath.loggamma(total - chosen + 1)
        )


def computed_log_ratio(total, removed, chosen):
    arrays = (np.array([float(value)]) for value in (total, removed, chosen))
    return float(log_choose_ratio(*arrays)[0])


@settings(max_examples=300, deadline=None)
@given(st.one_of(choices(40, 1000), choices(10**6, 1000), choices(10**12, 1000)))
def test_log_choose_ratio_has_twelve_digits(choice):
    assert computed_log_ratio(*choice) == pytest.approx(float(log_ratio(*choice)), rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(choices(10**12, math.inf))
def test_the_chance_of_avoiding_a_group_is_right_to_rounding_however_dominant_it_is(choice):
    chance = float(mpmath.exp(log_ratio(*choice)))
    assert math.exp(computed_log_ratio(*choice)) == pytest.approx(chance, rel=0, abs=1e-14)


def test_a_sample_cannot_avoid_a_group_when_too_few_devices_are_left():
    assert computed_log_ratio(10, 8, 3) == -math.inf
