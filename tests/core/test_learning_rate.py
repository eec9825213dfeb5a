"""Learning rates of rounds, by every schedule."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedplan import InputError
from fedplan.core.learning_rate import LearningRate


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InputError) as error:
        LearningRate(initial=-1.0, schedule="linear", decay=2.0)
    assert len(error.value.problems) == 3


@given(r=st.integers(0, 500), every=st.integers(1, 50))
def test_a_step_is_an_exponential_of_whole_steps(r, every):
    rate = LearningRate(initial=0.1, schedule="step", decay=0.7, decay_every=every)
    of_steps = LearningRate(initial=0.1, schedule="exponential", decay=0.7)
    assert rate.at(r) == of_steps.at(r // every)


@given(rounds=st.integers(1, 300))
def test_a_cosine_falls_from_the_first_rate_to_a_hundredth_and_stays(rounds):
    rate = LearningRate(initial=0.2, schedule="cosine", decay_rounds=rounds)
    rates = [rate.at(r) for r in range(2 * rounds)]
    assert rates[0] == 0.2 and rates == sorted(rates, reverse=True)
    assert rates[rounds:] == [rate.at(rounds)] * rounds == [0.2 * 0.01] * rounds


def test_numbers_of_numpy_are_numbers():
    words = {"schedule": "list", "decay_every": None}
    given_ = LearningRate(initial=np.float32(0.5), rates=np.array([0.2, 0.3]), **words)
    plain = LearningRate(initial=0.5, rates=[0.2, 0.3], **words)
    assert repr(given_) == repr(plain) and hash(given_) == hash(plain)
    assert json.loads(json.dumps(asdict(given_)))["rates"] == [0.2, 0.3]


def test_the_last_of_the_listed_rates_goes_on():
    rate = LearningRate(initial=0.1, schedule="list", rates=(0.2, 0.3))
    assert [rate.at(r) for r in (0, 1, 2, 3, 1000)] == [0.1, 0.2, 0.3, 0.3, 0.3]


@pytest.mark.parametrize(
    ("schedule", "words", "count"),
    [
        ("step", {}, 1),
        ("step", {"decay_every": 0, "decay": 0.0}, 2),
        ("cosine", {}, 1),
        ("cosine", {"decay_rounds": -1, "initial": 0.0}, 2),
        ("list", {}, 1),
        ("list", {"rates": (0.1, 0.0, float("inf"))}, 2),
    ],
)
def test_what_a_schedule_needs_is_asked_for(schedule, words, count):
    with pytest.raises(InputError) as error:
        LearningRate(**{"initial": 0.1, "schedule": schedule, **words})
    assert len(error.value.problems) == count
