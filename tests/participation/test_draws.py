"""Draws of clients stay what they were, uniform, and the same for the same seed and round."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from fedplan.participation.draws import deal, pick, present, uniforms


@pytest.mark.parametrize(
    ("seed", "round_", "num_clients", "cohort"),
    [
        (0, 1, 10, [0, 4, 9]),
        (1, 1, 100, [6, 15, 19, 22, 29, 58, 68, 74, 77, 87]),
        (7, 3, 5, [2, 3]),
        (2**40 + 3, 250, 1000, [97, 418, 681, 864]),
        (-5, 17, 20, [2, 3, 5, 7, 17, 19]),
    ],
)
def test_cohorts_of_stored_runs_are_drawn_again(seed, round_, num_clients, cohort):
    assert pick(seed, round_, num_clients, len(cohort)).tolist() == cohort


def test_cohorts_are_uniform_over_all_subsets():
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    for round_ in range(1, 5001):
        counts[tuple(pick(7, round_, 5, 2).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 0.001
    assert pick(7, 3, 5, 5).tolist() == [0, 1, 2, 3, 4]


def test_a_deal_has_everybody_once_and_begins_with_the_cohort():
    dealt = deal(3, 2, 50, 50)
    assert sorted(dealt.tolist()) == list(range(50))
    assert sorted(dealt[:7].tolist()) == pick(3, 2, 50, 7).tolist()


def test_numbers_lie_between_0_and_1_and_are_their_rounds_own():
    numbers = np.concatenate([uniforms(1, round_, 50) for round_ in range(1, 101)])
    assert ((numbers >= 0) & (numbers < 1)).all() and abs(numbers.mean() - 0.5) < 0.02
    assert len(set(numbers.tolist())) == numbers.size


def test_a_client_is_missing_by_chance_whoever_else_is_asked():
    clients = np.arange(4000)
    there = present(5, 9, clients, 0.3)
    assert abs(there.mean() - 0.7) < 0.03
    assert present(5, 9, clients[100:200], 0.3).tolist() == there[100:200].tolist()
    assert present(5, 9, clients, 0.0).all()
