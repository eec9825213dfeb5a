"""Adaptive client sampling: chances worked out by hand, and against all others."""

from __future__ import annotations

import math

import numpy as np
from course.told import a_problem, a_round

from fedplan.core.learning_rate import LearningRate
from fedplan.course import Infocom22
from fedplan.course.infocom22 import chances


def test_without_beta_chances_are_those_of_corollary_2():
    # 0.2 * 3 / sqrt(4) = 0.3 and 0.8 * 1 / sqrt(1) = 0.8
    p, g, t = np.array([0.2, 0.8]), np.array([3.0, 1.0]), np.array([4.0, 1.0])
    np.testing.assert_allclose(chances(p, g, t, 5, math.inf), [3 / 11, 8 / 11])


def test_with_beta_no_other_chances_cost_less():
    p, g, t = np.array([0.3, 0.7]), np.array([2.0, 1.0]), np.array([5.0, 1.0])
    all_first = np.linspace(1e-4, 1 - 1e-4, 20_001)
    for ratio in (0.1, 1.0, 10.0, 1e6):
        costs = [
            (ratio * ((p * g) ** 2 / q).sum() / 4 + 1) * (q @ t)
            for q in np.stack([all_first, 1 - all_first], axis=1)
        ]
        best = all_first[int(np.argmin(costs))]
        np.testing.assert_allclose(chances(p, g, t, 4, ratio)[0], best, atol=2e-3)


def test_draws_that_cost_nothing_leave_data_and_norms():
    p, g = np.array([0.25, 0.75]), np.array([1.0, 1.0])
    np.testing.assert_allclose(chances(p, g, np.zeros(2), 1, math.inf), p)


def test_norms_that_clients_report_change_the_chances():
    problem = a_problem(samples=[1, 1, 1], rate=0.5)
    steering = Infocom22(problem=problem, clients_per_round=2, local_steps=4).begin()
    np.testing.assert_allclose(steering.ask().participation.chances, [1 / 3] * 3)
    steering.tell(a_round(1, cohort=(0, 1), update_norms=[3.0, 1.0]))
    # Client 2 has told nothing: it has the mean of the others.
    np.testing.assert_allclose(steering.ask().participation.chances, [1 / 2, 1 / 6, 1 / 3])
    steering.tell(a_round(2, cohort=(2,), update_norms=[4.0]))
    np.testing.assert_allclose(steering.ask().participation.chances, [3 / 8, 1 / 8, 4 / 8])


def test_norms_are_per_step_and_rate():
    falling = LearningRate(initial=1.0, schedule="step", decay=0.5, decay_every=1)
    problem = a_problem(samples=[1, 1], rate=falling)
    steering = Infocom22(problem=problem, clients_per_round=1, local_steps=4).begin()
    steering.tell(a_round(1, cohort=(0,), update_norms=[1.0]))
    steering.tell(a_round(2, cohort=(1,), update_norms=[1.0]))  # at half the rate
    np.testing.assert_allclose(steering.ask().participation.chances, [1 / 3, 2 / 3])


def test_a_draw_costs_its_seconds_and_joules():
    problem = a_problem(
        samples=[1, 1], step_time_s=[1.0, 2.0], energy_weight=0.5, step_energy_j=[0.0, 7.0]
    )
    course = Infocom22(problem=problem, clients_per_round=2, local_steps=1)
    # 0.5 * 1 and 0.5 * 2 + 0.5 * 2 * 7 = 8: q ~ 1 and 1 / 4.
    np.testing.assert_allclose(course.setting.participation.chances, [0.8, 0.2])


def test_a_client_without_a_gradient_can_still_be_drawn():
    steering = Infocom22(problem=a_problem(samples=[1, 1]), clients_per_round=1).begin()
    steering.tell(a_round(1, cohort=(0, 1), update_norms=[1.0, 0.0]))
    assert min(steering.ask().participation.chances) > 0
