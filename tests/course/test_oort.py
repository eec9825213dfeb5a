"""Oort's rule on reports made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from course.told import a_problem, a_round

from fedplan.course import Oort

PROBLEM = a_problem(samples=[10, 20, 30, 40, 50], step_time_s=[1.0, 2.0, 4.0, 8.0, 16.0])


def steering_of(clients=2):
    return Oort(problem=PROBLEM, clients_per_round=clients, local_steps=1).begin()


def test_the_first_round_tries_anyone():
    law = steering_of().ask().participation
    assert law.clients == () and law.drawn == 2 and law.pool == (0, 1, 2, 3, 4)
    many = a_problem(samples=[10, 20, 30, 40, 50, 60], step_time_s=[1, 1, 1, 1, 1, 2])
    law = Oort(problem=many, clients_per_round=1, local_steps=1).begin().ask().participation
    # 60 samples count for 60 / 4 there, so that 10 are the least promising of six.
    assert law.pool == (1, 2, 3, 4, 5)


def test_scores_are_worth_and_staleness_times_slowness():
    steering = steering_of()
    steering.tell(a_round(1, cohort=(0, 2, 3), losses=[2.0, 1.0, 1.0]))
    # Worth 20, 30 and 40; T is the time of the first of five, 1 s.
    stale = math.sqrt(0.1 * math.log(5))
    expected = [0 + stale, np.nan, (0.5 + stale) / 16, (1 + stale) / 64, np.nan]
    np.testing.assert_allclose(steering.scores(5), expected)
    steering.tell(a_round(4, cohort=(0,), losses=[5.0]))
    # Client 0 is worth 50 since round 4: the range is now 30 to 50.
    expected[0] = 1 + stale / 2
    expected[2:4] = (0 + stale) / 16, (0.5 + stale) / 64
    np.testing.assert_allclose(steering.scores(5), expected)


def test_the_very_highest_worth_is_clipped():
    many = a_problem(samples=[1] * 100)
    steering = Oort(problem=many, clients_per_round=99, local_steps=1).begin()
    steering.tell(a_round(1, cohort=range(100), losses=np.arange(100.0)))
    scores = steering.scores(1)
    assert scores[98] == scores[99] == pytest.approx(98 / 99) and scores[97] < scores[98]


def test_ever_fewer_untried_clients_are_drawn():
    many = a_problem(samples=[1] * 1000)
    steering = Oort(problem=many, clients_per_round=100, local_steps=1).begin()
    drawn = []
    for number in range(1, 4):
        law = steering.ask().participation
        drawn.append(law.drawn)
        assert law.clients_per_round == 100 and len(law.pool) == 5 * law.drawn
        fresh = range(200 * number, 200 * number + 200)
        steering.tell(a_round(number, cohort=fresh, losses=np.ones(200)))
    # Of the first round nobody is tried. Then 100 - int(100 (1 - 0.9 * 0.95^r)).
    assert drawn == [100, 82, 78]


def test_with_everyone_tried_the_best_are_taken():
    steering = steering_of()
    steering.tell(a_round(30, cohort=range(5), losses=[3.0, 2.0, 1.0, 1.0, 1.0]))
    law = steering.ask().participation
    assert law.clients == (0, 1) and law.drawn == 0


@pytest.mark.parametrize(("later", "percentile"), [(1.05, 15.0), (1.2, 10.0), (6.0, 5.0)])
def test_the_preferred_time_moves_with_the_worth_of_those_chosen(later, percentile):
    steering = steering_of()
    steering._chosen_worth = [1.0] * 20 + [later] * 20
    steering._pace()
    assert steering._percentile == percentile


def test_the_preferred_time_moves_every_twenty_rounds_from_the_fortieth_on():
    alike = a_problem(samples=[10] * 5)
    steering = Oort(problem=alike, clients_per_round=2, local_steps=1).begin()
    percentiles = {}
    for number in range(1, 80):
        losses = [1.0 if number < 20 else 10.0] * 5
        steering.tell(a_round(number, cohort=range(5), losses=losses))
        percentiles[number + 1] = steering._percentile
    moves = {r: p for r, p in percentiles.items() if p != percentiles.get(r - 1, 10.0)}
    assert moves == {40: 5.0, 60: 10.0, 80: 15.0}  # worth has grown tenfold, and then stays


def test_a_longer_preferred_time_spares_slower_clients():
    steering = steering_of()
    steering.tell(a_round(1, cohort=range(5), losses=[1.0] * 5))
    steering._percentile = 50.0  # the third of five: 4 s
    worth = np.array([0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(steering.scores(1), worth * [1, 1, 1, 1 / 4, 1 / 16])
    steering._percentile = 100.0
    np.testing.assert_allclose(steering.scores(1), worth)
