"""The descent: what it says, that it is found again, and that plans on it are good ones."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan import Constraints, Fleet, InputError, Objective, draw_fleet
from fedplan.convergence.curves import Curve
from fedplan.convergence.descent import Descent, fit_descent, law_of
from fedplan.core.learning_rate import LearningRate
from fedplan.participation.uniform import round_energy_j
from fedplan.planning.descent_plan import (
    QUANTILE,
    forecast,
    plan_descent,
    settings_within_reach,
)
from fedplan.planning.surface import round_times_s, upper_quantile
from fedplan.studies.pilots import DESIGNS

N, TARGET, FIRST = 50, 0.5, 2.3
RATES = {
    "constant": LearningRate(initial=0.05),
    "harmonic": LearningRate(initial=0.1, schedule="harmonic"),
    "exponential": LearningRate(initial=0.02, schedule="exponential", decay=0.998),
}
FLEET = draw_fleet(
    N, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), step_energy_j=(1e-3, 3e-4),
    comm_energy_j=(2e-2, 6e-3), seed=3,
)  # fmt: skip


def prior_of(rate):
    return law_of(rate, N, FIRST / TARGET).PRIOR


def true_descent(rate, **changes):
    """One the prior allows, and no pilot was needed for."""
    likeliest = {name: mean for name, (mean, _) in prior_of(rate).items()}
    likeliest["time"] = math.log(float(rate.time(60.0)))
    if rate.schedule != "harmonic":  # every part falls from the start
        likeliest |= {"curvature": 0.0, "sampling_power": 0.5}
    values = np.array(list({**likeliest, **changes}.values()))
    return Descent(
        num_clients=N, first_loss=FIRST, target_loss=TARGET, rate=rate, parameters=values,
        covariance=np.eye(len(values)) * 1e-6, reach=(1, N, 1, 1000),
    )  # fmt: skip


def curve(descent, clients, steps, depth, seed=0):
    """The losses of a run that descends exactly like this, down to a share of the way."""
    losses = np.geomspace(FIRST, TARGET * (FIRST / TARGET) ** depth, 400)
    rounds = descent.rounds(clients, steps, losses)
    last = int(rounds[-1])
    interpolated = np.interp(np.arange(last + 1), rounds, losses)
    return Curve(
        clients_per_round=clients, local_steps=steps, seed=seed,
        losses=(FIRST, *interpolated[1:].tolist()),
    )  # fmt: skip


def three_pilots(descent, depth=0.2):
    return [
        curve(descent, 10, 40, depth), curve(descent, 10, 12, depth), curve(descent, 2, 25, depth),
    ]  # fmt: skip


@given(
    clients=st.integers(1, N - 1),
    steps=st.integers(1, 500),
    ratio=st.floats(1.0, 4.0),
    rate=st.sampled_from([rate for rate in RATES.values() if rate.schedule != "harmonic"]),
)
def test_more_clients_never_take_longer_unless_the_rate_is_harmonic(clients, steps, ratio, rate):
    descent = true_descent(rate)
    at = descent.rounds(clients, steps, ratio * TARGET)
    assert descent.rounds(clients + 1, steps, ratio * TARGET) <= at


def test_with_a_constant_rate_it_is_a_sum_of_three_parts():
    values = np.array([math.log(8), 2, math.log(0.5), 1, math.log(0.25), 1, 0.25, 1.25, 0])
    law = law_of(LearningRate(initial=0.1), N, 16.0)
    at_target = law.time(values, [1, N], 10, 1.0)
    assert at_target.tolist() == pytest.approx([8 * 1.75, 8 * 1.5])
    halfway = law.time(values, N, 20, 4.0)
    assert halfway == pytest.approx(8 * (math.exp(-1.0) + 0.5 * math.exp(-1.5) / 2))


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_long_pilots_without_noise_are_found_again(rate):
    truth = true_descent(rate)
    found = fit_descent(three_pilots(truth, depth=0.02), N, TARGET, rate)
    for clients, steps in ((5, 10), (20, 30), (N, 60), (2, 25)):
        expected = float(truth.rounds(clients, steps))
        assert float(found.rounds(clients, steps)) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
@pytest.mark.parametrize("more_steps", [False, True])
@pytest.mark.parametrize("more_clients", [False, True])
def test_short_pilots_lead_to_a_plan_near_the_best(rate, more_steps, more_clients):
    changes = {"steps_share": 0.5, "sampling_share": 0.4}
    if rate.schedule == "harmonic":  # of which more is known beforehand
        changes = {"steps_share": 0.2, "noise": 0.35}
    truth = true_descent(
        rate,
        **{
            name: prior_of(rate)[name][0] + (change if more else -change)
            for (name, change), more in zip(
                changes.items(), (more_steps, more_clients), strict=True
            )
        },
    )
    first, second, few = DESIGNS[rate.schedule].stages[0]
    pilots = [curve(truth, 10, 40, first), curve(truth, 10, 12, second), curve(truth, 2, 25, few)]
    found = fit_descent(pilots, N, TARGET, rate)
    for weight in (0.0, 0.5, 0.8):
        objective = Objective.weighted(weight)
        chosen = plan_descent(FLEET, found, objective).forecast.prediction
        best = plan_descent(FLEET, truth, objective).forecast.prediction
        true_cost = forecast(
            FLEET, truth, objective, chosen.clients_per_round, chosen.local_steps
        ).prediction.cost
        assert true_cost <= 1.12 * best.cost


def test_few_clients_whose_loss_did_not_fall_do_not_keep_plans_from_fewer_than_many():
    many = three_pilots(true_descent(RATES["harmonic"]), 0.3)[:2]
    stuck = Curve(clients_per_round=3, local_steps=25, seed=0, losses=(FIRST,) * 13)
    found = fit_descent([*many, stuck], N, TARGET, RATES["harmonic"])
    assert found.reach == (3, 20, 6, 80)
    chosen = plan_descent(FLEET, found, Objective.weighted(1.0)).forecast.prediction
    assert chosen.clients_per_round < 10


def test_pilots_that_share_their_cohorts_tell_more_of_e_than_pilots_that_do_not():
    truth = true_descent(RATES["constant"])
    same = three_pilots(truth, 0.4)
    apart = [same[0], curve(truth, 10, 12, 0.4, seed=1), same[2]]
    spreads = [
        fit_descent(pilots, N, TARGET, RATES["constant"]).covariance[2, 2]
        for pilots in (same, apart)
    ]
    assert spreads[0] < spreads[1]


def test_longer_pilots_leave_less_open():
    truth = true_descent(RATES["constant"])
    found = [
        fit_descent(three_pilots(truth, depth), N, TARGET, RATES["constant"])
        for depth in (0.6, 0.3, 0.05)
    ]
    intervals = [
        np.diff(np.log(forecast(FLEET, one, Objective.weighted(0.0), 10, 20).rounds_interval))[0]
        for one in found
    ]
    assert intervals[0] > intervals[1] > intervals[2]


@settings(max_examples=20)
@given(weight=st.floats(0, 1), seed=st.integers(0, 100))
def test_the_plan_has_the_smallest_regret_of_all_settings(weight, seed):
    fleet = draw_fleet(
        8, step_time_s=(0.2, 0.1), comm_time_s=(1.0, 0.5), step_energy_j=(0.1, 0.05), seed=seed
    )
    rate = RATES["exponential"]
    values = np.array([3.5, 1.6, -0.6, 3.0, -0.65, 0.0, 0.25, 1.2, 0.5])
    descent = Descent(
        num_clients=8, first_loss=FIRST, target_loss=TARGET, rate=rate, parameters=values,
        covariance=np.diag([0.05, 0.1, 0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1]), reach=(1, N, 5, 60),
    )  # fmt: skip
    objective = Objective.weighted(weight)
    plan = plan_descent(fleet, descent, objective)
    ks, es = np.arange(1, 9), np.arange(5, 61)
    k, e = ks[:, np.newaxis], es[np.newaxis, :]
    rounds = descent.rounds(k, e, parameters=descent.draws(100))
    seconds, joules = round_times_s(fleet, ks, es), round_energy_j(fleet, k, e)
    costs = objective.of_round(seconds, joules, k) * rounds
    regrets = upper_quantile(costs / costs.min(axis=(1, 2), keepdims=True) - 1, QUANTILE)
    assert plan.regret == pytest.approx(regrets.min(), abs=2e-3)


def test_limits_are_kept_or_the_plan_is_infeasible():
    descent = true_descent(RATES["constant"], sampling_share=0.0)  # clients save time, not energy
    free = plan_descent(FLEET, descent, Objective.weighted(1.0)).forecast.prediction
    fastest = plan_descent(FLEET, descent, Objective.weighted(0.0)).forecast.prediction
    limits = Constraints(deadline_s=(free.time_s + fastest.time_s) / 2)
    held = plan_descent(FLEET, descent, Objective.weighted(1.0), limits).forecast.prediction
    assert held.time_s <= limits.deadline_s * 1.001 and held.energy_j > free.energy_j
    never = plan_descent(FLEET, descent, Objective.weighted(1.0), Constraints(deadline_s=1.0))
    assert never.status == "infeasible" and never.forecast is None
    assert "No setting keeps the deadline of 1 s in 90%" in never.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("deadline_s", r"shortest deadline that can be counted on is ([\d,.]+) s"),
        ("energy_budget_j", r"smallest energy budget that can be counted on is ([\d,.]+) J"),
    ],
)
def test_what_is_said_to_be_attainable_can_be_planned_for(name, words):
    descent = true_descent(RATES["exponential"])
    objective = Objective.weighted(0.5)
    refused = plan_descent(FLEET, descent, objective, Constraints(**{name: 1e-3}))
    least = float(re.search(words, refused.message)[1].replace(",", ""))
    assert not plan_descent(FLEET, descent, objective, Constraints(**{name: 0.97 * least})).success
    held = plan_descent(FLEET, descent, objective, Constraints(**{name: least}))
    chosen = held.forecast.prediction
    rounds = descent.rounds(*setting_of(chosen), parameters=descent.draws(100))
    total = chosen.time_s if name == "deadline_s" else chosen.energy_j
    kept = np.mean(rounds * total / chosen.expected_rounds <= least)
    assert kept >= QUANTILE and f" in {kept:.0%} of what they leave possible." in held.message


def test_limits_that_only_break_each_other_are_said_to():
    descent = true_descent(RATES["constant"])
    objective = Objective.weighted(0.5)
    alone = [
        plan_descent(FLEET, descent, objective, Constraints(**{name: 1e-3})).message
        for name in ("deadline_s", "energy_budget_j")
    ]
    seconds, joules = (
        float(re.search(r"counted on is ([\d,.]+) ", text)[1].replace(",", "")) for text in alone
    )
    both = Constraints(deadline_s=1.001 * seconds, energy_budget_j=1.001 * joules)
    refused = plan_descent(FLEET, descent, objective, both)
    assert not refused.success and "together in 90%" in refused.message
    assert refused.message.count("that can be counted on by itself is") == 2


def test_no_limit_is_named_where_too_many_trainings_never_arrive():
    rate = RATES["exponential"]
    time = math.log(0.8 * float(rate.time(math.inf)))
    unsure = true_descent(rate, time=time, steps_share=-9.0, sampling_share=-9.0)
    unsure = replace(unsure, covariance=np.diag([0.25**2, *[1e-6] * 8]))
    plan = plan_descent(FLEET, unsure, Objective.weighted(0.0), Constraints(deadline_s=1.0))
    assert not plan.success and "None arrives as surely" in plan.message
    assert "counted on" not in plan.message


def setting_of(prediction):
    return prediction.clients_per_round, prediction.local_steps


@pytest.mark.parametrize(
    ("weight", "limits", "held"),
    [
        (0.0, {"max_local_steps": 6}, "the maximum of local steps"),
        (0.0, {"min_local_steps": 55}, "the minimum of local steps"),
        (0.0, {"max_clients_per_round": 2}, "the maximum of clients per round"),
        (1.0, {"min_clients_per_round": 9}, "the minimum of clients per round"),
    ],
)
def test_a_plan_at_the_end_of_a_range_says_what_holds_it(weight, limits, held):
    descent = true_descent(RATES["exponential"])
    objective = Objective.weighted(weight)
    message = plan_descent(FLEET, descent, objective, Constraints(**limits)).message
    assert f"Held by {held}: beyond it" in message
    (low_k, high_k), (low_e, high_e) = settings_within_reach(FLEET, descent, Constraints())
    free = plan_descent(FLEET, descent, objective)
    clients, steps = setting_of(free.forecast.prediction)
    at_an_end = clients == low_k > 1 or steps in (low_e, high_e)
    assert ("Held by" in free.message) == at_an_end and clients <= high_k


def test_a_plan_where_the_pilots_end_says_so():
    narrow = replace(true_descent(RATES["exponential"]), reach=(4, N, 5, 6))
    held = "the fewest clients per round that the pilots tell of and the most local steps that the"
    assert f"Held by {held} pilots tell of" in (
        plan_descent(FLEET, narrow, Objective.weighted(0.0)).message
    )


def test_no_plan_has_more_than_twice_the_clients_of_a_pilot_unless_it_is_asked_for():
    equal = Fleet(step_time_s=[0.1] * N, comm_time_s=2.0)  # where all are as quick as one
    found = fit_descent(
        three_pilots(true_descent(RATES["constant"]), 0.3), N, TARGET, RATES["constant"]
    )
    quickest = Objective.weighted(0.0)
    held = plan_descent(equal, found, quickest)
    assert held.forecast.prediction.clients_per_round == 20
    assert "Held by the most clients per round that the pilots tell of" in held.message
    asked = plan_descent(equal, found, quickest, Constraints(max_clients_per_round=N))
    assert asked.forecast.prediction.clients_per_round == N


def test_where_the_rate_may_die_out_the_plan_is_for_the_case_that_it_does_not():
    rate = RATES["exponential"]
    longest = float(rate.time(math.inf))
    means = np.array([0.0, 1.6, -0.6, 3.0, -0.65, 0.0, 0.25, 1.2, 0.5])

    def plan(share):
        """The plan where the best setting takes this share of all the time there is."""
        values = means.copy()
        values[0] = math.log(share * longest)
        covariance = np.diag([0.3, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01]) ** 2
        descent = Descent(
            num_clients=N, first_loss=FIRST, target_loss=TARGET, rate=rate, parameters=values,
            covariance=covariance, reach=(1, N, 5, 60),
        )  # fmt: skip
        return plan_descent(FLEET, descent, Objective.weighted(0.0))

    sure, unsure, never = plan(0.05), plan(1.0), plan(20.0)
    assert math.isfinite(sure.forecast.rounds_interval[1]) and "if it" not in sure.message
    assert unsure.status == "chosen" and math.isinf(unsure.forecast.rounds_interval[1])
    assert math.isfinite(unsure.forecast.prediction.cost) and math.isfinite(unsure.regret)
    assert "if it gets there" in unsure.message
    assert never.status == "infeasible" and "died out" in never.message


def test_a_setting_that_would_be_cut_off_is_avoided():
    descent = true_descent(RATES["harmonic"])
    objective = Objective.weighted(0.9)
    free = plan_descent(FLEET, descent, objective).forecast.prediction
    allowed = free.expected_rounds * 0.7
    held = plan_descent(FLEET, descent, objective, max_rounds=allowed).forecast
    assert held.rounds_interval[1] <= 1.01 * allowed < free.expected_rounds


def test_ranges_are_kept():
    limits = Constraints(min_clients_per_round=7, max_clients_per_round=9, max_local_steps=11)
    plan = plan_descent(FLEET, true_descent(RATES["harmonic"]), Objective.weighted(0.9), limits)
    chosen = plan.forecast.prediction
    assert 7 <= chosen.clients_per_round <= 9 and chosen.local_steps <= 11


def test_where_nothing_costs_anything_the_quickest_is_chosen():
    fleet = Fleet(step_time_s=[0.1] * N, comm_time_s=1.0)
    descent = true_descent(RATES["constant"])
    assert (
        plan_descent(fleet, descent, Objective.weighted(1.0)).forecast.prediction.local_steps
        == plan_descent(fleet, descent, Objective.weighted(0.0)).forecast.prediction.local_steps
    )


def test_a_large_fleet_is_planned_for_in_a_moment():
    fleet = draw_fleet(100_000, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), seed=1)
    small = true_descent(RATES["constant"])
    descent = replace(small, num_clients=100_000, reach=(1, 100_000, 1, 1000))
    assert plan_descent(fleet, descent, Objective.weighted(0.0)).success


def test_losses_that_were_not_evaluated_are_left_out():
    truth = true_descent(RATES["constant"])
    full = three_pilots(truth, 0.3)
    thinned = [
        Curve(
            clients_per_round=one.clients_per_round, local_steps=one.local_steps, seed=0,
            losses=tuple(x if r % 3 == 0 else None for r, x in enumerate(one.losses)),
        )
        for one in full
    ]  # fmt: skip
    found = [fit_descent(pilots, N, TARGET, truth.rate) for pilots in (full, thinned)]
    rounds = [float(one.rounds(10, 20)) for one in found]
    assert rounds[1] == pytest.approx(rounds[0], rel=0.1)


def test_pilots_that_say_nothing_are_refused():
    flat = Curve(clients_per_round=5, local_steps=5, seed=0, losses=(2.0, 2.0, 2.1))
    with pytest.raises(InputError, match="no pilot's loss fell"):
        fit_descent([flat], N, TARGET, RATES["constant"])
    with pytest.raises(InputError, match="target_loss > 0"):
        fit_descent([flat], N, 0.0, RATES["constant"])


def test_one_round_is_not_called_rounds():
    rate = RATES["constant"]
    quick = true_descent(
        rate, time=math.log(float(rate.time(0.5))), steps_share=-9.0, sampling_share=-9.0
    )
    plan = plan_descent(FLEET, quick, Objective.weighted(0.0))
    assert plan.forecast.prediction.rounds == 1 and "Expect 1 round (" in plan.message
    usual = plan_descent(FLEET, true_descent(rate), Objective.weighted(0.0))
    assert " rounds (" in usual.message
