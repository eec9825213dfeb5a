"""Pilots to bound: recovery, intervals, and honesty about what the pilots cannot tell."""

from __future__ import annotations

import math

import bruteforce
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned import make_plan

from fedplan import Bound, Constraints, Fleet, InputError, Pilot, estimate_bound
from fedplan.convergence.estimation import pair_ratios

N = 100
DESIGN = ((3, 30), (10, 20), (20, 45), (50, 70), (3, 70), (20, 20))
TRUTH = Bound(a0=3750.0, b0=1.0, c0=26.0)


def pilot(k, e, rounds, before=10.0):
    return Pilot(
        clients_per_round=k,
        local_steps=e,
        upper_loss=1.5,
        lower_loss=1.3,
        rounds_to_upper=before,
        rounds_to_lower=before + rounds,
    )


def rounds_needed(truth, k, e, num_clients=N):
    s = bruteforce.sampling_term(k, num_clients)
    return (truth.a0 + e**2 * (truth.b0 + truth.c0 * s)) / e


def pilots_of(truth, design=DESIGN, errors=None, num_clients=N):
    """Pilots that would be seen if `truth` held, off by the given factors."""
    errors = np.ones(len(design)) if errors is None else errors
    return [
        pilot(k, e, rounds_needed(truth, k, e, num_clients) * error)
        for (k, e), error in zip(design, errors, strict=True)
    ]


@settings(max_examples=80, deadline=None)
@given(st.floats(100, 1e5), st.floats(0.1, 10), st.one_of(st.just(0.0), st.floats(0.1, 500)))
def test_pilots_without_noise_recover_the_bound(a0, b0, c0):
    truth = Bound(a0=a0, b0=b0, c0=c0)
    estimate = estimate_bound(pilots_of(truth), N)
    assert estimate.bound.a0 == pytest.approx(a0, rel=1e-7)
    # A pilot's rounds know b0 and c0 no better than the share of the rounds they cause.
    typical = a0 / 2000
    assert estimate.bound.b0 == pytest.approx(b0, rel=1e-7, abs=1e-8 * typical)
    assert estimate.bound.c0 == pytest.approx(c0, rel=1e-7, abs=1e-7 * typical)
    for name, (low, high) in estimate.intervals.items():
        assert low <= getattr(truth, name) * (1 + 1e-7) + 1e-7 * typical
        assert high >= getattr(truth, name) * (1 - 1e-7)


def test_noiseless_pilots_are_ok_and_reported_exactly_fitted_ratios():
    estimate = estimate_bound(pilots_of(TRUTH), N)
    assert estimate.status == "ok"
    assert estimate.ratio == pytest.approx(3750)
    assert estimate.ratio_interval[0] < 3750 < estimate.ratio_interval[1]
    assert estimate.suggested_pilot is None
    assert estimate.plausible[0] == estimate.bound
    assert len(estimate.plausible) >= 7


@pytest.mark.parametrize("truth", [TRUTH, Bound(a0=1000.0, b0=1.0, c0=5.0)])
def test_intervals_cover_the_truth_about_nine_times_in_ten(truth):
    random = np.random.default_rng(0)
    hits = {"a0": 0, "b0": 0, "c0": 0, "ratio": 0}
    for _ in range(200):
        errors = 1 + 0.1 * random.standard_normal(len(DESIGN))
        estimate = estimate_bound(pilots_of(truth, errors=errors), N)
        for name, (low, high) in estimate.intervals.items():
            hits[name] += low <= getattr(truth, name) <= high
        low, high = estimate.ratio_interval
        hits["ratio"] += low <= truth.a0 / truth.b0 <= high
    for name, count in hits.items():
        assert 0.80 <= count / 200 <= 0.99, name


def test_noise_does_not_bias_the_rounds_predicted():
    # Weighing each pilot by its own noisy rounds instead of the fit's would lose about 9% here.
    random = np.random.default_rng(1)
    ratios = []
    for _ in range(200):
        errors = np.exp(0.3 * random.standard_normal(len(DESIGN)) - 0.3**2 / 2)
        bound = estimate_bound(pilots_of(TRUTH, errors=errors), N).bound
        ratios += [rounds_needed(bound, k, e) / rounds_needed(TRUTH, k, e) for k, e in DESIGN]
    assert np.mean(ratios) == pytest.approx(1, abs=0.04)


def test_more_noise_makes_wider_intervals():
    widths = []
    for size in (0.0, 0.1, 0.5):
        errors = 1 + size * np.array([1, -1, 0.5, -0.5, -1, 1])
        low, high = estimate_bound(pilots_of(TRUTH, errors=errors), N).intervals["a0"]
        widths.append(high - low)
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize(
    "design",
    [
        pytest.param([(10, 10), (20, 20), (40, 40)], id="K = E"),
        pytest.param([(k, k) for k in (10, 20, 30, 40, 50, 60, 80)], id="the paper's seven"),
        pytest.param([(5, 5), (50, 50)], id="two pilots"),
        pytest.param([(20, 10), (20, 20), (20, 40)], id="one K"),
        pytest.param([(1, 10), (1, 40)], id="one client"),
        pytest.param([(100, 10), (100, 40)], id="all clients"),
        pytest.param([(5, 40), (10, 20), (20, 10)], id="K E constant"),
        pytest.param([(40, 10), (44, 40), (42, 80), (45, 10)], id="K all but the same"),
    ],
)
def test_pilots_that_cannot_tell_k_from_e_are_ill_conditioned_until_the_suggested_one_is_run(
    design,
):
    before = estimate_bound(pilots_of(TRUTH, design), N)
    assert before.status == "ill-conditioned"
    assert before.success
    k, e = before.suggested_pilot
    assert 1 <= k <= N
    assert min(d[1] for d in design) <= e <= max(d[1] for d in design)
    assert f"clients_per_round={k}, local_steps={e}" in before.message
    after = estimate_bound(pilots_of(TRUTH, [*design, (k, e)]), N)
    assert after.status == "ok"
    assert after.bound.c0 == pytest.approx(TRUTH.c0, rel=1e-6)


def test_one_k_leaves_c0_open_and_takes_the_papers_tie():
    estimate = estimate_bound(pilots_of(TRUTH, [(20, 10), (20, 20), (20, 40)]), N)
    assert estimate.bound.c0 == estimate.bound.b0
    assert estimate.intervals["c0"][0] == 0
    assert max(bound.c0 for bound in estimate.plausible) > 20


def test_an_open_c0_goes_with_the_unit_of_local_steps():
    """Local steps of half the length, twice as many of them: b0 and c0 are a quarter."""
    whole, halves = (
        estimate_bound(
            pilots_of(Bound(a0=1e6, b0=1.0 / unit**2), [(N, 10 * unit), (N, 40 * unit)]), N
        )
        for unit in (1, 2)
    )
    assert whole.intervals["c0"][1] == halves.intervals["c0"][1] == math.inf
    one, other = (max(bound.c0 for bound in found.plausible) for found in (whole, halves))
    assert other == pytest.approx(one / 4, rel=1e-5)


def test_the_same_setting_twice_is_unidentified_and_cannot_be_planned_with():
    estimate = estimate_bound([pilot(5, 20, 30), pilot(5, 20, 31)], N)
    assert estimate.status == "unidentified"
    assert not estimate.success
    assert estimate.bound is None
    assert estimate.suggested_pilot != (5, 20)
    with pytest.raises(InputError, match="no bound to plan with"):
        make_plan(Fleet(step_time_s=1.0, comm_time_s=1.0, count=N), estimate)


def test_pilots_that_show_no_price_of_long_runs_give_b0_zero_and_an_infinite_ratio():
    flat = [pilot(k, e, 3000 / e) for k, e in DESIGN]
    estimate = estimate_bound(flat, N)
    assert estimate.bound.a0 == pytest.approx(3000)
    assert estimate.bound.b0 == pytest.approx(0, abs=1e-9)
    assert estimate.ratio > 1e9
    assert estimate.ratio_interval[1] == math.inf


@st.composite
def noisy_pilots(draw):
    """A bound's own pilots off by up to a factor of 2, one of them with all clients."""
    n = draw(st.integers(1, 300))
    b0 = draw(st.floats(0.1, 10))
    truth = Bound(a0=draw(st.floats(10, 1e5)), b0=b0, c0=b0 * draw(st.floats(0, 50)))
    others = st.tuples(st.integers(1, n), st.integers(1, 300))
    design = [(n, draw(st.integers(1, 300))), *draw(st.lists(others, min_size=1, max_size=7))]
    errors = draw(st.lists(st.floats(0.5, 2), min_size=len(design), max_size=len(design)))
    return pilots_of(truth, design, errors, n), n


@settings(max_examples=120, deadline=None)
@given(noisy_pilots(), st.sampled_from(["joint", "pairwise"]))
def test_estimation_never_fails_and_never_returns_nan_in_a_bound(case, method):
    pilots, n = case
    estimate = estimate_bound(pilots, n, method=method)
    assert (estimate.bound is None) == (estimate.status == "unidentified")
    if estimate.bound is None:
        return
    for bound in (estimate.bound, *estimate.plausible):
        assert all(0 <= value < math.inf for value in (bound.a0, bound.b0, bound.c0))
    for low, high in (*estimate.intervals.values(), estimate.ratio_interval):
        assert 0 <= low <= high
    low, high = estimate.ratio_interval
    if estimate.status == "ok":
        assert low * (1 - 1e-6) <= estimate.ratio <= high * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(noisy_pilots(), st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_rounds_in_another_unit_scale_the_bound_and_order_does_not_matter(case, factor, shuffle):
    pilots, n = case
    scaled = [
        pilot(p.clients_per_round, p.local_steps, factor * (p.rounds_to_lower - 10.0))
        for p in pilots
    ]
    shuffle.shuffle(scaled)
    one, other = estimate_bound(pilots, n), estimate_bound(scaled, n)
    assert other.status == one.status
    if one.bound is None:
        return
    size = one.bound.a0 + one.bound.b0 + one.bound.c0
    for name in ("a0", "b0", "c0"):
        assert getattr(other.bound, name) == pytest.approx(
            factor * getattr(one.bound, name), rel=1e-5, abs=1e-6 * factor * size
        )


@settings(max_examples=40, deadline=None)
@given(st.floats(100, 1e5), st.floats(0.1, 10))
def test_the_pairwise_method_recovers_the_papers_bound(a0, b0):
    truth = Bound(a0=a0, b0=b0)
    estimate = estimate_bound(pilots_of(truth), N, method="pairwise")
    assert estimate.ratio == pytest.approx(a0 / b0, rel=1e-6)
    assert estimate.bound.a0 == pytest.approx(a0, rel=1e-6)
    assert pair_ratios(pilots_of(truth), N) == pytest.approx(a0 / b0, rel=1e-5)


def test_every_pair_whose_ratio_is_not_negative_counts():
    pilots = pilots_of(Bound(a0=0.5, b0=1.0), [(10, 1), (20, 2), (50, 4), (80, 3)])
    assert pair_ratios(pilots, N) == pytest.approx([0.5] * 6)
    for method in ("joint", "pairwise"):
        estimate = estimate_bound(pilots, N, method=method)
        assert (estimate.pairs_used, estimate.pairs_rejected) == (6, 0)


def test_a_plan_from_an_estimate_is_robust_and_stays_within_the_pilots_reach():
    estimate = estimate_bound(pilots_of(Bound(a0=1e6, b0=1.0, c0=1.0)), N)
    fleet = Fleet(step_time_s=[0.01] * N, comm_time_s=10.0)
    plan = make_plan(fleet, estimate)
    assert plan.method == "robust"
    assert plan.regret >= 0
    assert plan.setting.pair[1] <= 2 * max(e for _, e in DESIGN)
    further = make_plan(fleet, estimate, constraints=Constraints(max_local_steps=500))
    assert further.setting.pair[1] > plan.setting.pair[1]


def test_wrong_pilots_are_reported_all_at_once():
    mixed = [pilot(5, 20, 30), pilot(200, 20, 30), pilot(300, 10, 5)]
    mixed.append(
        Pilot(
            clients_per_round=5,
            local_steps=10,
            upper_loss=9.0,
            lower_loss=1.0,
            rounds_to_upper=1,
            rounds_to_lower=2,
        )
    )
    with pytest.raises(InputError) as caught:
        estimate_bound(mixed, N)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="pilots >= 2"):
        estimate_bound([pilot(5, 20, 30)], N)
    with pytest.raises(InputError, match="'joint' or 'pairwise'"):
        estimate_bound(pilots_of(TRUTH), N, method="guess")


def test_a_wrong_pilot_lists_every_problem():
    with pytest.raises(InputError) as caught:
        Pilot(
            clients_per_round=0,
            local_steps=2.5,
            upper_loss=1.0,
            lower_loss=2.0,
            rounds_to_upper=-1,
            rounds_to_lower=math.nan,
        )
    columns = {problem.column for problem in caught.value.problems}
    assert columns >= {"clients_per_round", "local_steps", "rounds_to_upper", "rounds_to_lower"}
    assert "lower_loss" in columns
