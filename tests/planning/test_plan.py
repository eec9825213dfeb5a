"""make_plan at its edges: degenerate inputs, messages, and wrong requests."""

from __future__ import annotations

import math

import bruteforce
import numpy as np
import pytest
from planned import make_plan
from strategies import random_bound, random_fleet

from fedplan import Bound, Constraints, Fleet, InputError, Objective, Pilot, Prices, estimate_bound
from fedplan.convergence.bound import rounds_for_gap

FLEET = Fleet(
    step_time_s=[0.1, 0.2, 0.4, 0.8], comm_time_s=2.0, step_energy_j=0.5, comm_energy_j=1.0
)
BOUND = Bound(a0=1000.0, b0=1.0, c0=10.0)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method", ["exact", "paper"])
def test_fleets_of_one_and_two_devices_are_planned(size, weight, method):
    fleet = Fleet(
        step_time_s=[0.3, 0.7][:size], comm_time_s=1.0, step_energy_j=2.0, comm_energy_j=0.5
    )
    plan = make_plan(fleet, BOUND, energy_weight=weight, method=method)
    grid = bruteforce.grid(fleet, BOUND, 100, mean_times=method == "paper")
    cost = grid.cost(Objective.weighted(weight))
    assert plan.prediction.cost == pytest.approx(
        cost.min(), rel=5e-3 if method == "paper" else 1e-9
    )


@pytest.mark.parametrize("method", ["exact", "paper"])
def test_energy_alone_without_any_energy_takes_the_fastest_and_says_so(method):
    fleet = Fleet(step_time_s=[0.1, 0.9], comm_time_s=1.0)
    plan = make_plan(fleet, BOUND, energy_weight=1.0, method=method)
    assert plan.prediction.cost == 0
    assert (
        plan.setting.pair == make_plan(fleet, BOUND, energy_weight=0.0, method=method).setting.pair
    )
    assert "costs nothing" in plan.message
    if method == "exact":
        assert (plan.certificate.lower_bound, plan.certificate.gap) == (0, 0)


@pytest.mark.parametrize("method", ["exact", "paper"])
def test_without_a0_one_local_step_is_best(method):
    plan = make_plan(FLEET, Bound(a0=0.0, b0=1.0, c0=10.0), method=method)
    assert plan.setting.pair[1] == 1
    bounded = Constraints(min_local_steps=7)
    assert make_plan(FLEET, Bound(a0=0.0, b0=1.0), constraints=bounded).setting.pair[1] == 7


@pytest.mark.parametrize("method", ["exact", "paper"])
@pytest.mark.parametrize("c0", [0.0, 2.0])
def test_without_b0_the_steps_must_be_limited_and_then_the_limit_binds(method, c0):
    endless = Bound(a0=1000.0, b0=0.0, c0=c0)
    with pytest.raises(InputError, match="Give max_local_steps"):
        make_plan(FLEET, endless, method=method)
    limits = Constraints(max_local_steps=40)
    plan = make_plan(FLEET, endless, constraints=limits, method=method)
    grid = bruteforce.grid(FLEET, endless, 40, mean_times=method == "paper")
    assert plan.prediction.cost == pytest.approx(grid.time_s.min(), rel=5e-3)
    if method == "exact":
        assert plan.prediction.cost == pytest.approx(grid.time_s.min(), rel=1e-9)
        assert plan.binding == ("max_local_steps",)


def test_a_tighter_target_changes_no_setting_and_scales_every_total():
    random = np.random.default_rng(50)
    for _ in range(20):
        fleet, bound = random_fleet(random, 20), random_bound(random)
        one, other = (
            make_plan(fleet, bound, energy_weight=0.3, target_gap=gap) for gap in (1.0, 0.25)
        )
        assert one.setting.pair == other.setting.pair
        for name in ("expected_rounds", "time_s", "energy_j", "cost"):
            value = getattr(one.prediction, name)
            assert getattr(other.prediction, name) == pytest.approx(4 * value)


def test_only_the_ratio_of_prices_decides():
    random = np.random.default_rng(51)
    for _ in range(20):
        fleet, bound = random_fleet(random, 20), random_bound(random)
        cheap, dear = (
            make_plan(fleet, bound, prices=Prices(per_hour=3.6 * m, per_kwh=1200.0 * m))
            for m in (1.0, 7.0)
        )
        # 1e-3 a second and 1/3 * 1e-3 a joule: an energy weight of a quarter.
        weighted = make_plan(fleet, bound, energy_weight=0.25)
        assert dear.prediction.cost == pytest.approx(7 * cheap.prediction.cost)
        assert weighted.prediction.cost == pytest.approx(750 * cheap.prediction.cost)
        assert (cheap.unit, weighted.unit) == ("money", "weighted s and J")
        alone = [make_plan(fleet, bound, energy_weight=weight) for weight in (0, 1)]
        assert [plan.unit for plan in alone] == ["s", "J"]
        assert alone[0].prediction.cost == alone[0].prediction.time_s


def test_time_alone_is_the_default():
    assert (
        make_plan(FLEET, BOUND).setting.pair
        == make_plan(FLEET, BOUND, energy_weight=0).setting.pair
    )


def test_the_message_states_choice_proof_binding_limit_and_alternatives():
    fastest, free = (make_plan(FLEET, BOUND, energy_weight=w).prediction for w in (0.0, 1.0))
    limits = Constraints(deadline_s=(fastest.time_s + free.time_s) / 2)
    plan = make_plan(FLEET, BOUND, energy_weight=1.0, constraints=limits)
    k, e = plan.setting.pair
    assert f"Use {k} of 4 clients per round and {e} local steps." in plan.message
    assert "gap 0" in plan.message
    assert plan.binding == ("deadline_s",)
    assert "Without the deadline it would be cheaper." in plan.message
    for other in plan.alternatives:
        assert other.name[1:] in plan.message


def test_the_message_of_an_impossible_deadline_names_the_fastest_setting():
    fastest = make_plan(FLEET, BOUND).prediction
    plan = make_plan(FLEET, BOUND, constraints=Constraints(deadline_s=fastest.time_s / 2))
    assert plan.status == "infeasible"
    assert plan.binding == ("deadline_s",)
    assert plan.best_attainable["deadline_s"] == fastest
    assert f"{fastest.time_s:,.4g} s" in plan.message
    assert f"clients_per_round={fastest.clients_per_round}" in plan.message
    assert f"local_steps={fastest.local_steps}" in plan.message
    with pytest.raises(InputError, match="infeasible"):
        _ = plan.setting.pair


def test_a_limit_met_exactly_is_met():
    best = make_plan(FLEET, BOUND).prediction
    plan = make_plan(FLEET, BOUND, constraints=Constraints(deadline_s=best.time_s))
    assert plan.setting.pair == (best.clients_per_round, best.local_steps)
    assert plan.binding == ()


def test_max_rounds_counts_whole_rounds():
    fewest = bruteforce.grid(FLEET, BOUND, 100).rounds.min()
    least = math.ceil(fewest)
    possible = make_plan(FLEET, BOUND, constraints=Constraints(max_rounds=least))
    assert possible.prediction.rounds == least
    impossible = make_plan(FLEET, BOUND, constraints=Constraints(max_rounds=least - 1))
    assert impossible.best_attainable["max_rounds"].expected_rounds == pytest.approx(fewest)
    assert f"{least} rounds" in impossible.message


def test_wrong_requests_are_all_listed():
    with pytest.raises(InputError) as caught:
        make_plan(FLEET, BOUND, target_gap=-1.0, method="magic", regret_quantile=2.0)
    text = str(caught.value)
    for words in ("target_gap=-1.0", "'magic'", "regret_quantile=2.0"):
        assert words in text
    for gap in (0.0, math.nan, math.inf):
        with pytest.raises(InputError, match="target_gap"):
            make_plan(FLEET, BOUND, target_gap=gap)


def test_extreme_units_do_not_change_the_choice():
    tiny, huge = (
        Fleet(
            step_time_s=FLEET.step_time_s * scale,
            comm_time_s=FLEET.comm_time_s * scale,
            step_energy_j=FLEET.step_energy_j * scale,
            comm_energy_j=FLEET.comm_energy_j * scale,
        )
        for scale in (1e-30, 1e30)
    )
    for method in ("exact", "paper"):
        chosen = {
            make_plan(fleet, BOUND, energy_weight=0.3, method=method).setting.pair
            for fleet in (tiny, FLEET, huge)
        }
        assert len(chosen) == 1


def piloted_plan(*settings, **limits):
    """The plan from pilots that follow one bound exactly, for devices that are all alike."""
    bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    pilots = [
        Pilot(
            clients_per_round=k, local_steps=e, upper_loss=2.0, lower_loss=1.0, rounds_to_upper=0,
            rounds_to_lower=float(rounds_for_gap(bound, k, e, 50)),
        )
        for k, e in settings
    ]  # fmt: skip
    fleet = Fleet(step_time_s=0.1, comm_time_s=1.0, count=50)
    return make_plan(fleet, estimate_bound(pilots, 50), constraints=Constraints(**limits))


def test_a_plan_outside_of_what_was_piloted_says_so():
    within = piloted_plan((2, 1), (2, 40), (50, 1), (50, 40), (10, 10))
    assert "extrapolated" not in within.message
    above = piloted_plan((2, 30), (2, 60), (50, 30), (50, 60), (10, 40))
    assert above.setting.pair[1] < 30 and "fewer local steps than any pilot had (30 to 60)" in (
        above.message
    )
    few = piloted_plan((2, 1), (2, 2), (4, 1), (4, 2), max_local_steps=2, min_clients_per_round=9)
    assert "more clients per round than any pilot had (2 to 4)" in few.message
    assert "a pilot with K=" in few.message


def test_what_holds_a_plan_is_the_limit_given_or_the_reach_of_the_pilots():
    pilots = (2, 1), (2, 2), (50, 1), (50, 2), (10, 2)
    reach = piloted_plan(*pilots)
    assert reach.setting.pair[1] == 4 and "max_local_steps" in reach.binding
    assert "the limit of twice the most local steps piloted" in reach.message
    given = piloted_plan(*pilots, max_local_steps=3)
    assert given.setting.pair[1] == 3 and "Held by the maximum of local steps" in given.message
