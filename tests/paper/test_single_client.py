"""A single client per round is a legal plan of every method, where energy alone counts."""

from __future__ import annotations

import re

import pytest

from fedplan import Bound, Constraints, Fleet, Objective, Problem, estimate_bound, make_plan
from fedplan.participation import uniform
from fedplan.planning.predict import predict
from fedplan_reproduction.published import published_pilots

FLEET = Fleet(
    step_time_s=[0.1] * 60 + [0.15] * 40, comm_time_s=2.0, step_energy_j=1e-3, comm_energy_j=2e-2
)
ENERGY = Problem(fleet=FLEET, objective=Objective.weighted(1.0))
RATIO = Bound.from_ratio(3_750.0)


@pytest.mark.parametrize("method", ["paper", "exact", "robust"])
def test_every_method_plans_a_single_client(method):
    plausible = (RATIO, Bound.from_ratio(3_000.0)) if method == "robust" else ()
    plan = make_plan(ENERGY, RATIO, method=method, plausible=plausible)
    assert plan.setting.pair[0] == 1 and plan.prediction.energy_j > 0
    assert "Use 1 of 100 clients per round" in plan.message


def test_the_papers_plan_from_pilots_of_ten_clients_and_more_is_a_single_one():
    estimate = estimate_bound(published_pilots("setup3"), 100, method="pairwise")
    plan = make_plan(ENERGY, estimate, method="paper")
    assert plan.setting.pair[0] == 1  # Theorem 3
    asked = Problem(
        fleet=FLEET, objective=ENERGY.objective, limits=Constraints(min_clients_per_round=3)
    )
    assert make_plan(asked, estimate, method="paper").setting.pair[0] == 3


def test_a_regret_says_over_which_clients_per_round_it_was_taken():
    estimate = estimate_bound(published_pilots("setup3"), 100)
    said = make_plan(ENERGY, estimate).message
    assert re.search(r"more than the best setting with K from 5 to 100 would", said)
    everyone = make_plan(ENERGY, RATIO, plausible=[RATIO, Bound.from_ratio(3_000.0)]).message
    assert "more than the best setting would" in everyone


@pytest.mark.parametrize("law", ["turns", "shuffled"])
def test_other_laws_take_groups_of_one(law):
    limits = Constraints(max_clients_per_round=1)
    asked = Problem(fleet=FLEET, objective=ENERGY.objective, limits=limits)
    plan = make_plan(asked, participation=law)
    assert plan.success
    if law == "turns":
        assert len(plan.groups) == 100  # of one client each
    else:
        assert plan.prediction.clients_per_round == 1


def test_a_single_client_costs_what_the_mean_device_does():
    found = predict(FLEET, RATIO, ENERGY.objective, 1, 23)
    mean = predict(FLEET, RATIO, ENERGY.objective, 1, 23, exact_stragglers=False)
    assert found.time_s == pytest.approx(mean.time_s)  # Case 2 of the paper
    assert uniform(1, 23).pair == (1, 23)


def test_the_command_line_plans_and_fixes_a_single_client(fedplan, tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text(
        "step_time_s,comm_time_s,step_energy_j,comm_energy_j,count\n0.1,2,0.001,0.02,100\n"
    )
    for more in ((), ("--max-clients-per-round", 1)):
        asked = ("--fleet", path, "--ratio", 3_750, "--energy-weight", 1, *more)
        for method in ("paper", "exact"):
            result = fedplan("plan", *asked, "--method", method, "--format", "json")
            assert result.code == 0 and result.json["clients_per_round"] == 1
