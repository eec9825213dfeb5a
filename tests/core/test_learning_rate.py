"""Learning-rate time: sums of rates, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedplan import InputError
from fedplan.core.learning_rate import LearningRate

rates = st.one_of(
    st.just(LearningRate(initial=0.3)),
    st.just(LearningRate(initial=0.1, schedule="harmonic")),
    st.floats(0.5, 1.0).map(
        lambda decay: LearningRate(initial=0.1, schedule="exponential", decay=decay)
    ),
)


@given(rate=rates, rounds=st.integers(0, 300))
def test_time_is_the_sum_of_the_rates_over_the_first(rate, rounds):
    total = sum(rate.at(r) for r in range(rounds)) / rate.initial
    assert rate.time(rounds) == pytest.approx(total, rel=1e-10, abs=1e-12)


@given(rate=rates, rounds=st.floats(0, 1000))
def test_rounds_undo_time(rate, rounds):
    assume(rate.slope(rounds) > 1e-6)  # once the rate has died out, many rounds are the same time
    assert rate.rounds(rate.time(rounds)) == pytest.approx(rounds, rel=1e-6, abs=1e-6)


@given(rate=rates, rounds=st.integers(0, 100))
def test_the_slope_is_what_the_next_round_adds(rate, rounds):
    added = rate.time(rounds + 1) - rate.time(rounds)
    assert rate.slope(rounds) == pytest.approx(float(added), rel=1e-6, abs=1e-12)


def test_time_that_no_number_of_rounds_makes_takes_infinitely_many():
    rate = LearningRate(initial=1.0, schedule="exponential", decay=0.9)
    assert np.isinf(rate.rounds([10.1, 11.0])).all() and np.isfinite(rate.rounds(9.99))
    assert np.isinf(LearningRate(initial=1.0, schedule="harmonic").rounds(1e4))


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


@pytest.mark.parametrize("method", ["time", "rounds", "slope"])
def test_where_learning_rate_time_is_not_known_it_is_refused(method):
    rate = LearningRate(initial=0.1, schedule="cosine", decay_rounds=9)
    with pytest.raises(InputError, match="learning-rate time is known of"):
        getattr(rate, method)(3)
