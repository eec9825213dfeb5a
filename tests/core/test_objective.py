"""Prices and predictions against hand computation."""

from __future__ import annotations

import math

import bruteforce
import numpy as np
import pytest
from strategies import random_bound, random_fleet, random_worth

from fedplan import Bound, Fleet, InputError, Objective, Prices, cost_surface, predict
from fedplan.core.setting import Prediction

FLEET = Fleet(
    step_time_s=[0.1, 0.3], comm_time_s=[2.0, 1.0], step_energy_j=[1.0, 3.0], comm_energy_j=4.0
)


def test_a_prediction_by_hand():
    # One of two devices: rounds (100 + 25 (1 + 3)) / (5 * 0.5) = 80, each 0.2 * 5 + 1.5 = 2.5 s
    # and 2 * 5 + 4 = 14 J. Both: rounds (100 + 25) / 2.5 = 50, each max(2.5, 2.5) = 2.5 s, 28 J.
    bound, worth = Bound(a0=100.0, b0=1.0, c0=3.0), Objective.weighted(0.25)
    one = predict(FLEET, bound, worth, 1, 5, target_gap=0.5)
    assert (one.expected_rounds, one.time_s, one.energy_j) == pytest.approx((80, 200, 1120))
    assert one.cost == pytest.approx(0.75 * 200 + 0.25 * 1120)
    both = predict(FLEET, bound, worth, 2, 5, target_gap=0.5)
    assert (both.expected_rounds, both.time_s, both.energy_j) == pytest.approx((50, 125, 1400))


def test_stragglers_count_unless_told_otherwise():
    bound, worth = Bound(a0=100.0, b0=1.0), Objective.weighted(0.0)
    exact = predict(FLEET, bound, worth, 2, 10)
    mean = predict(FLEET, bound, worth, 2, 10, exact_stragglers=False)
    assert exact.time_s == pytest.approx(exact.expected_rounds * 4.0)  # max(3, 4)
    assert mean.time_s == pytest.approx(exact.expected_rounds * 3.5)


def test_the_cost_surface_is_the_brute_force_grid():
    random = np.random.default_rng(30)
    for _ in range(40):
        fleet, bound = random_fleet(random, 25), random_bound(random, 30)
        _, objective = random_worth(random)
        grid = bruteforce.grid(fleet, bound, 40, gap=0.7)
        ks, es = np.arange(1, len(fleet) + 1), np.arange(1, 41)
        surface = cost_surface(fleet, bound, objective, ks, es, target_gap=0.7)
        assert surface.expected_rounds == pytest.approx(grid.rounds, rel=1e-12)
        assert surface.time_s == pytest.approx(grid.time_s, rel=1e-11)
        assert surface.energy_j == pytest.approx(grid.energy_j, rel=1e-11)
        assert surface.cost == pytest.approx(grid.cost(objective), rel=1e-11)


def test_the_cost_surface_keeps_the_order_it_was_asked_in():
    surface = cost_surface(FLEET, Bound(a0=9.0, b0=1.0), Objective.weighted(0.5), [2, 1], [7, 3])
    assert surface.clients_per_round.tolist() == [2, 1]
    assert surface.local_steps.tolist() == [7, 3]
    for row, k in enumerate((2, 1)):
        for column, e in enumerate((7, 3)):
            one = predict(FLEET, Bound(a0=9.0, b0=1.0), Objective.weighted(0.5), k, e)
            assert surface.cost[row, column] == pytest.approx(one.cost)


def test_prices_by_hand():
    objective = Prices(
        per_hour=7.2,
        per_kwh=0.3,
        per_client_round=0.01,
        per_mb=0.002,
        mb_per_client_round=25.0,
        co2_g_per_kwh=400.0,
        per_kg_co2=0.5,
    ).objective()
    assert objective.per_second == pytest.approx(7.2 / 3600)
    assert objective.per_joule == pytest.approx((0.3 + 0.5 * 0.4) / 3.6e6)
    assert objective.per_client_round == pytest.approx(0.01 + 0.05)
    assert objective.unit == "money"


def test_carbon_alone_is_counted_in_grams():
    prices = Prices(co2_g_per_kwh=360.0)
    objective = prices.objective()
    assert (objective.per_second, objective.per_client_round) == (0, 0)
    assert objective.per_joule * 3.6e6 == pytest.approx(360)
    assert objective.unit == "g CO2"
    assert prices.co2_g(3.6e6) == pytest.approx(360)


def test_a_participation_price_is_paid_for_every_client_and_round():
    bound = Bound(a0=100.0, b0=1.0)
    priced = predict(FLEET, bound, Prices(per_client_round=0.25).objective(), 2, 5)
    assert priced.cost == pytest.approx(0.25 * 2 * priced.expected_rounds)


def test_wrong_prices_are_all_listed():
    with pytest.raises(InputError) as caught:
        Prices(per_hour=-1.0, per_kwh=math.nan, per_mb=1.0, per_kg_co2=2.0)
    text = str(caught.value)
    for name in ("per_hour=-1.0", "per_kwh=nan", "mb_per_client_round", "co2_g_per_kwh"):
        assert name in text
    with pytest.raises(InputError, match="at least one price"):
        Prices()


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_an_energy_weight_outside_zero_to_one_is_refused(weight):
    with pytest.raises(InputError, match="energy_weight"):
        Objective.weighted(weight)


def test_a_setting_outside_the_fleet_lists_both_problems():
    with pytest.raises(InputError) as caught:
        predict(FLEET, Bound(a0=1.0, b0=1.0), Objective.weighted(0.0), 3, 0)
    assert "num_clients=2" in str(caught.value)
    assert "local_steps=0" in str(caught.value)


@pytest.mark.parametrize(("expected", "whole"), [(0.2, 1), (3.0, 3), (3.0 + 1e-13, 3), (3.01, 4)])
def test_rounds_are_rounded_up_but_not_by_rounding_errors(expected, whole):
    prediction = Prediction(
        clients_per_round=1,
        local_steps=1,
        expected_rounds=expected,
        time_s=0.0,
        energy_j=0.0,
        cost=0.0,
    )
    assert prediction.rounds == whole
