"""Corners that once went wrong: each is a small problem with an answer known otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from planned import make_plan, sensitivity

from fedplan import (
    Bound,
    Constraints,
    Fleet,
    InputError,
    Pilot,
    Prices,
    Problem,
    compute_frontier,
    cost_surface,
    draw_fleet,
    estimate_bound,
)
from fedplan import make_plan as by_law
from fedplan.core.objective import Objective
from fedplan.participation.uniform_sampling import round_time_s
from fedplan.planning.predict import predict


def pilots(*runs):
    return [
        Pilot(
            clients_per_round=k,
            local_steps=e,
            upper_loss=2,
            lower_loss=1,
            rounds_to_upper=0,
            rounds_to_lower=rounds,
        )
        for k, e, rounds in runs
    ]


def test_the_fewest_rounds_attainable_are_those_of_the_most_clients_allowed():
    plan = make_plan(
        Fleet(step_time_s=[1.0] * 10, comm_time_s=1.0),
        Bound(a0=1e4, b0=1.0, c0=100.0),
        constraints=Constraints(max_clients_per_round=1, max_rounds=5),
    )
    best = plan.best_attainable["max_rounds"]
    assert (best.clients_per_round, best.local_steps, best.rounds) == (1, 10, 2010)


def test_pilots_that_put_everything_on_sampling_still_give_a_bound():
    estimate = estimate_bound(pilots((34, 3, 40), (22, 3, 87), (66, 35, 138)), 106)
    assert estimate.bound.a0 + estimate.bound.b0 > 0
    assert all(bound.a0 + bound.b0 > 0 for bound in estimate.plausible)


def test_narrow_limits_on_a_large_fleet_are_met_where_they_can_be():
    fleet = draw_fleet(
        5000,
        step_time_s=(0.1, 0.05),
        comm_time_s=(2.0, 1.0),
        step_energy_j=(1.0, 0.3),
        comm_energy_j=(2.0, 0.6),
        law="lognormal",
    )
    bound = Bound(a0=4000.0, b0=1.0, c0=300.0)
    deadline = make_plan(fleet, bound).prediction.time_s * 1.01
    frugal = make_plan(
        fleet, bound, energy_weight=1.0, constraints=Constraints(deadline_s=deadline)
    )
    limits = Constraints(deadline_s=deadline, energy_budget_j=frugal.prediction.energy_j * 1.001)
    assert make_plan(fleet, bound, constraints=limits).success
    assert make_plan(fleet, bound, constraints=limits, plausible=[bound]).success
    assert compute_frontier(fleet, bound, constraints=limits)


def test_a_limit_on_steps_is_enough_where_drift_is_all_but_nothing():
    plan = make_plan(
        Fleet(step_time_s=[0.1, 0.2], comm_time_s=2.0),
        Bound(a0=1.0, b0=1e-20),
        constraints=Constraints(max_local_steps=10),
    )
    assert plan.setting.pair == (1, 10) and plan.binding == ("max_local_steps",)


@pytest.mark.parametrize("runs", [((5, 20, 90), (10, 20, 80), (50, 20, 75)), ((5, 20, 90),) * 2])
def test_following_the_suggested_pilots_leads_out_of_the_dark(runs):
    truth = Bound(a0=900.0, b0=0.4, c0=5.0)
    known = list(runs)
    for _ in range(4):
        estimate = estimate_bound(pilots(*known), 100)
        if estimate.status == "ok":
            break
        k, e = estimate.suggested_pilot
        spread = (100 - k) / (k * 99)
        known.append((k, e, truth.a0 / e + e * (truth.b0 + truth.c0 * spread)))
    assert estimate.status == "ok"


def test_sensitivity_takes_an_estimate_whose_bounds_may_lack_drift():
    estimate = estimate_bound(pilots((3, 10, 400), (20, 10, 380), (20, 20, 190), (3, 20, 230)), 100)
    assert any(bound.b0 == 0 for bound in estimate.plausible)
    fleet = Fleet(step_time_s=0.1, comm_time_s=1.0, count=100)
    plan = make_plan(fleet, estimate)
    cases = sensitivity(fleet, estimate, plan)
    assert max(case.regret for case in cases[:-2]) == pytest.approx(plan.regret, abs=1e-9)


def test_equal_devices_leave_no_frontier_made_of_rounding():
    fleet = Fleet(step_time_s=[0.3] * 3, comm_time_s=0.7, step_energy_j=1.5, comm_energy_j=2.0)
    points = compute_frontier(fleet, Bound(a0=300.0, b0=1.0, c0=0.0))
    assert {point.clients_per_round for point in points} == {1}


def test_a_quantile_of_regrets_claims_no_more_than_it_knows():
    fleet = draw_fleet(30, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    bounds = [Bound(a0=3000.0, b0=1.0, c0=c0) for c0 in (1.0, 10.0, 30.0, 100.0)]
    plan = make_plan(fleet, bounds[0], plausible=bounds, regret_quantile=0.75)
    assert "Under 75% of the plausible bounds" in plan.message


def test_a_cheaper_alternative_is_said_to_break_the_limit():
    fleet = draw_fleet(
        50, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7), step_energy_j=(1.0, 0.3)
    )
    bound = Bound(a0=3000.0, b0=1.0, c0=20.0)
    free = make_plan(fleet, bound, energy_weight=1.0)
    limits = Constraints(deadline_s=free.prediction.time_s * 0.8)
    message = make_plan(fleet, bound, energy_weight=1.0, constraints=limits).message
    assert "less and break a constraint" in message and "Without the deadline" in message


def test_fleets_of_billions_are_certified_without_being_expanded():
    random = np.random.default_rng(0)
    for _ in range(40):
        groups = int(random.integers(2, 40))
        fleet = Fleet(
            step_time_s=10 ** random.uniform(-2, 0, groups),
            comm_time_s=10 ** random.uniform(-1, 1, groups),
            step_energy_j=10 ** random.uniform(-3, 0, groups),
            count=(10 ** random.uniform(0, 9, groups)).astype(np.int64) + 1,
        )
        bound = Bound(a0=10 ** random.uniform(2, 4.5), b0=1.0, c0=10 ** random.uniform(-1, 6))
        fastest = make_plan(fleet, bound)
        limits = Constraints(
            deadline_s=fastest.prediction.time_s * (1 + 10 ** random.uniform(-3, 0))
        )
        plan = make_plan(fleet, bound, energy_weight=0.5, constraints=limits)
        assert fastest.certificate.gap == plan.certificate.gap == 0
        for _ in range(20):
            k = int(10 ** random.uniform(0, np.log10(len(fleet))))
            e = int(10 ** random.uniform(0, 2))
            other = predict(fleet, bound, Objective.weighted(0.0), k, e)
            assert other.time_s >= fastest.prediction.time_s * (1 - 1e-11)
            balanced = predict(fleet, bound, Objective.weighted(0.5), k, e)
            if balanced.time_s <= limits.deadline_s:
                assert balanced.cost >= plan.prediction.cost * (1 - 1e-11)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Prices(mb_per_client_round=5.0),
        lambda: Constraints(min_clients_per_round=1.5),
        lambda: Constraints(min_local_steps=float("nan")),
        lambda: draw_fleet(3, step_time_s=(1.0, 0.1), comm_time_s=(0.0, 1.0)),
        lambda: round_time_s(Fleet(step_time_s=1.0, comm_time_s=1.0), 0, 1),
        lambda: cost_surface(
            Fleet(step_time_s=1.0, comm_time_s=1.0),
            Bound(a0=1.0, b0=1.0),
            Objective.weighted(0),
            [0],
            [1],
        ),
    ],
)
def test_arguments_without_a_meaning_are_refused(wrong):
    with pytest.raises(InputError, match=r"must|at least"):
        wrong()


@pytest.mark.parametrize("law", ["turns", "shuffled"])
def test_devices_that_stand_for_others_stand_for_all_of_them(law):
    fleet = Fleet(step_time_s=np.linspace(0.1, 0.2, 8193), comm_time_s=2.0)
    plan = by_law(Problem(fleet=fleet), participation=law)
    assert plan.success and 8193 in {one.prediction.clients_per_round for one in plan.alternatives}
