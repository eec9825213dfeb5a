"""FedTune's rule on records made by hand.

With 5 clients and 4 steps, the loads t, q, z and v of a round are 4, 1, 20 and 5.
"""

from __future__ import annotations

import numpy as np
import pytest
from course.told import a_problem, a_round

from fedplan.course import FedTune

PROBLEM = a_problem(samples=[1] * 20, step_time_s=0.5, comm_time_s=30.0)


def steering_of(preferences, clients=5, steps=4):
    course = FedTune(
        problem=PROBLEM, clients_per_round=clients, local_steps=steps, preferences=preferences
    )
    return course.begin()


def after(steering, *accuracies):
    """The pair asked for after rounds of these accuracies, the first before training."""
    for number, accuracy in enumerate(accuracies):
        clients = steering.ask().pair[0] if number else 0
        steering.tell(a_round(number, cohort=range(clients), accuracy=accuracy))
    return steering.ask().pair


def test_nothing_moves_at_the_first_gain_nor_without_one():
    assert after(steering_of((0.4, 0.3, 0.2, 0.1)), 0.1, 0.2) == (5, 4)
    assert after(steering_of((0.4, 0.3, 0.2, 0.1)), 0.1, 0.2, 0.209, 0.21) == (5, 4)


def test_at_the_second_gain_what_was_not_measured_counts_most():
    # Loads per gain: 40, 10, 200, 50, then five times that; every change is 0.8, for the worse.
    # eta_z = eta_v = zeta_t = zeta_z = 0.8 * 1000 / 200 = 4, and all others 10^10.
    steering = steering_of((0.4, 0.3, 0.2, 0.1))
    assert after(steering, 0.1, 0.2, 0.22) == (6, 5)
    np.testing.assert_allclose(steering._for_clients, [1e10, 1e10, 4, 4])
    np.testing.assert_allclose(steering._for_steps, [4, 1e10, 4, 1e10])


@pytest.mark.parametrize(
    ("preferences", "pair"),
    [
        ((1, 0, 0, 0), (6, 3)),
        ((0, 1, 0, 0), (6, 5)),
        ((0, 0, 1, 0), (4, 3)),
        ((0, 0, 0, 1), (4, 5)),
    ],
)
def test_each_load_pulls_its_own_way(preferences, pair):
    assert after(steering_of(preferences), 0.1, 0.2, 0.22) == pair


def test_a_move_for_the_better_is_measured_and_nothing_is_punished():
    # With (6, 5) and a gain of 0.05: 100, 20, 600 and 120, after 200, 50, 1000 and 250.
    # So eta_t = 100 / 160, eta_q = zeta_q = 30 / 40 and zeta_v = 130 / 200, and
    # both are negative: dM = 0.4 * 0.625 * 1 + 0.3 * 0.75 * 1.5 - 0.2 * 4 * 2/3 - 0.1 * 4 * 13/12.
    steering = steering_of((0.4, 0.3, 0.2, 0.1))
    assert after(steering, 0.1, 0.2, 0.22, 0.27) == (5, 4)
    np.testing.assert_allclose(steering._for_clients, [0.625, 0.75, 4, 4])
    np.testing.assert_allclose(steering._for_steps, [4, 0.75, 4, 0.65])
    # With these preferences dM is 0.7 * 0.625 + 0.2 * 0.75 * 1.5 - 0.1 * 4 * 2/3 = 0.396.
    assert after(steering_of((0.7, 0.2, 0.1, 0.0)), 0.1, 0.2, 0.22, 0.27)[0] == 7


def test_rounds_without_enough_gain_add_up():
    # Two rounds for a gain of 0.05: twice the loads of one.
    steering = steering_of((0.4, 0.3, 0.2, 0.1))
    after(steering, 0.1, 0.105, 0.15)
    np.testing.assert_allclose(steering._last.loads, [160, 40, 800, 200])


def test_it_stays_within_the_fleet():
    assert after(steering_of((0, 0, 1, 0), clients=1, steps=1), 0.1, 0.2, 0.22) == (1, 1)
    assert after(steering_of((0, 1, 0, 0), clients=20), 0.1, 0.2, 0.22) == (20, 5)


def test_preferences_are_the_parts_of_a_bill():
    # 20 clients and 20 steps: 10 s of computing and 30 s of sending.
    np.testing.assert_allclose(FedTune(problem=PROBLEM).weights, [0.25, 0.75, 0, 0])
    energetic = a_problem(samples=[1] * 50, energy_weight=1.0, step_energy_j=0.1, comm_energy_j=6.0)
    np.testing.assert_allclose(FedTune(problem=energetic).weights, [0, 0, 0.25, 0.75])
