"""AdaComm's rule on losses made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from course.told import a_problem, a_round

from fedplan.core.learning_rate import LearningRate
from fedplan.course import AdaComm


def steps_after(losses, rate=0.1):
    """Local steps after each of these losses, of rounds 0, 10, 20 and so on."""
    steering = AdaComm(problem=a_problem(samples=[1] * 4, rate=rate)).begin()
    found = []
    for number, loss in enumerate(losses):
        steering.tell(a_round(10 * number, cohort=range(4), loss=loss))
        assert steering.ask().clients_per_round == 4
        found.append(steering.ask().local_steps)
    return found


def test_steps_follow_the_root_of_the_loss():
    # 20 sqrt(1 / 4) = 10, 20 sqrt(0.3 / 4) = 5.48, 20 sqrt(0.04 / 4) = 2
    assert steps_after([4.0, 1.0, 0.3, 0.04]) == [20, 10, 6, 2]


def test_steps_are_halved_where_the_loss_stalls():
    assert steps_after([4.0, 1.0, 1.0, 1.1]) == [20, 10, 5, 3]
    assert steps_after([4.0, 1.0, 0.98]) == [20, 10, 5]  # 9.9 is still 10 steps
    assert steps_after([4.0] * 9)[-1] == 1


def test_losses_below_zero_call_for_the_fewest_steps():
    assert steps_after([4.0, -1.0])[-1] == 1 and steps_after([-1.0, 0.5, 0.5])[-1] == 1


def test_a_rate_that_falls_calls_for_more_steps():
    # The rate is a quarter after ten rounds: 20 sqrt(1 / 4 * 4) = 20.
    falling = LearningRate(initial=0.4, schedule="step", decay=0.25, decay_every=10)
    assert steps_after([4.0, 1.0], falling) == [20, 20]
    # It stalls, and the rate is a sixteenth: 10 / 2 * 4 = 20.
    assert steps_after([4.0, 1.0, 1.0], falling) == [20, 20, 20]


@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(None, id="nobody knows the rate"),
        pytest.param(LearningRate(initial=0.1, schedule="exponential", decay=1e-40), id="it is 0"),
    ],
)
def test_a_rate_that_says_nothing_leaves_the_loss_alone_to_decide(rate):
    problem = replace(a_problem(samples=[1] * 4), learning_rate=rate)
    steering = AdaComm(problem=problem).begin()
    for number, loss in ((0, 4.0), (10, 1.0)):
        steering.tell(a_round(number, cohort=range(4), loss=loss))
    assert steering.ask().local_steps == 10  # 20 sqrt(1 / 4)


def test_it_looks_every_ten_rounds_or_when_a_loss_is_there():
    steering = AdaComm(problem=a_problem(samples=[1] * 4)).begin()
    for number, loss in ((0, 4.0), (5, 1.0), (10, None)):
        steering.tell(a_round(number, cohort=range(4), loss=loss))
        assert steering.ask().local_steps == 20
    steering.tell(a_round(12, cohort=range(4), loss=1.0))
    assert steering.ask().local_steps == 10
    assert [decision.round for decision in steering.decisions] == [1, 13]
