"""Adaptive tau's rule on reports made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from course.told import a_problem, a_round

from fedplan.course import AdaptiveTau
from fedplan.errors import InputError

PROBLEM = a_problem(samples=[1, 3], step_time_s=[1.0, 0.5], comm_time_s=[2.0, 9.0], rate=0.1)


def test_the_bound_is_the_papers():
    # c = 1 and b = 9 of 110: T = 100 tau / (tau + 9) = 10, 18.18 and 25.
    # eta beta = 1: h = 0.3 (2^tau - 1) - 0.3 tau = 0, 0.3 and 1.2.
    steering = AdaptiveTau(problem=PROBLEM, phi=0.5, budget=110.0).begin()
    found = steering.bounds(np.array([1.0, 2.0, 3.0]), rho=2.0, beta=10.0, delta=3.0, rate=0.1)
    by_hand = [
        2 / 1.0,
        (1 + np.sqrt(1 + 4 * (200 / 11) ** 2 * 0.015)) / (200 / 110) + 0.6,
        (1 + np.sqrt(101)) / 2.5 + 2.4,
    ]
    np.testing.assert_allclose(found, by_hand)
    np.testing.assert_allclose(found, [2.0, 3.66048, 6.81995], rtol=1e-5)


def test_without_a_budget_it_is_what_a_hundred_rounds_of_one_step_cost():
    tau, told = np.arange(1.0, 20.0), {"rho": 2.0, "beta": 10.0, "delta": 3.0, "rate": 0.1}
    usual = AdaptiveTau(problem=PROBLEM).begin().bounds(tau, **told)
    given = AdaptiveTau(problem=PROBLEM, budget=100 * (1.0 + 9.0)).begin().bounds(tau, **told)
    np.testing.assert_array_equal(usual, given)


def test_costs_are_those_of_the_slowest_and_of_everyones_joules():
    assert AdaptiveTau(problem=PROBLEM).costs == (1.0, 9.0)
    energetic = a_problem(
        samples=[1, 1], energy_weight=1.0, step_energy_j=[1.0, 2.0], comm_energy_j=[3.0, 5.0]
    )
    assert AdaptiveTau(problem=energetic).costs == (3.0, 8.0)


def test_what_clients_report_counts_by_their_samples():
    steering = AdaptiveTau(problem=PROBLEM, phi=1e-9).begin()
    record = a_round(
        1, cohort=(0, 1), update_norms=[2, 4], losses=[1, 2], losses_after=[0.5, 4],
        gradient_changes=[2, 12], gradient_spreads=[1, 2],
    )  # fmt: skip
    steering.tell(record)
    # rho = (0.25 + 3 * 0.5) / 4, beta = (1 + 3 * 3) / 4 and delta = (1 + 3 * 2) / 4
    assert "rho 0.438, beta 2.5 and delta 1.75" in steering.decisions[-1].why


def test_without_drift_steps_grow_tenfold_up_to_a_hundred():
    steering, found = AdaptiveTau(problem=PROBLEM).begin(), []
    for number in range(4):
        found.append(steering.ask().local_steps)
        alike = {"update_norms": [1, 1], "gradient_changes": [1, 1]}
        steering.tell(a_round(number + 1, cohort=(0, 1), **alike))
    assert found == [1, 10, 100, 100]


def test_clients_that_drift_far_take_one_step():
    steering = AdaptiveTau(problem=PROBLEM, local_steps=50).begin()
    wild = {
        "update_norms": [1, 1], "losses": [9, 9], "gradient_changes": [1e3, 1e3],
        "gradient_spreads": [1e3, 1e3],
    }  # fmt: skip
    steering.tell(a_round(1, cohort=(0, 1), **wild))
    assert steering.ask().local_steps == 1


def test_it_needs_a_learning_rate():
    with pytest.raises(InputError, match="learning rate"):
        AdaptiveTau(problem=replace(PROBLEM, learning_rate=None))
