"""When a training arrives, from its losses so far."""

from __future__ import annotations

import math

import pytest

from fedplan.core.learning_rate import LearningRate
from fedplan.course.forecast import Forecast


def forecast_of(losses, target, rate=None):
    made = Forecast(target, rate or (lambda _: 0.1))
    for loss in losses:
        made.add(loss)
    return made


def test_losses_that_fall_with_the_logarithm_are_followed():
    made = forecast_of([3 - 0.5 * math.log(r) for r in range(1, 41)], target=0.8)
    assert made.way_left() == pytest.approx(math.log(math.exp(2.2 / 0.5) / 40), abs=1e-9)
    arrival = made.arrival()
    assert 40 < arrival.low < arrival.rounds < arrival.high < math.inf


def test_losses_that_fall_as_a_power_are_followed_and_far_targets_known():
    losses = [3 * r**-0.3 for r in range(1, 41)]
    made = forecast_of(losses, target=3 * 200**-0.3)
    assert made.loss_at(80) == pytest.approx(3 * 80**-0.3, rel=1e-9)
    # Power law says round 200: five times as far as 40, which a limit must leave a third of.
    assert not made.is_far_beyond(100) and not made.is_far_beyond(80)
    assert made.is_far_beyond(60) and not made.is_far_beyond(40)


def test_one_flat_half_gives_no_target_up():
    """Bad luck for a while is no reason: the line through all rounds is as good."""
    losses = [3 * min(r, 20) ** -0.5 for r in range(1, 41)]
    made = forecast_of(losses, target=0.9 * losses[-1])
    assert made.way_left() == math.inf and not made.is_far_beyond(400)
    assert forecast_of(losses, target=0.01 * losses[-1]).is_far_beyond(400)


def test_a_target_within_the_scatter_of_the_losses_may_be_met_by_luck():
    flat = [1.0 + 0.02 * (-1) ** r for r in range(40)]  # from 0.98 to 1.02
    assert forecast_of(flat, target=0.981).is_in_the_scatter(50)
    assert not forecast_of(flat, target=0.95).is_in_the_scatter(50)
    falls = [3 * r**-0.3 for r in range(1, 41)]  # exactly as the line has it
    assert forecast_of(falls, target=3 * 79**-0.3).is_in_the_scatter(80)
    assert not forecast_of(falls, target=3 * 81**-0.3).is_in_the_scatter(80)
    assert not forecast_of([1.0, 2.0], target=0.5).is_in_the_scatter(50)
    assert not forecast_of(flat, target=0.0).is_in_the_scatter(50)


@pytest.mark.parametrize(("later", "recedes"), [(0.02, False), (0.001, True)])
def test_an_end_recedes_where_losses_hardly_fall_any_more(later, recedes):
    """Losses fall by 8% per round at first, and then more slowly, or hardly any more."""
    made = Forecast(0.5, lambda _: 0.1)
    seen = []
    for round_ in range(1, 61):
        made.add(4.0 * math.exp(-0.08 * min(round_, 20) - later * max(round_ - 20, 0)))
        seen.append(made.recedes(patience=10))
    assert not any(seen[:40])  # luck lasts as long
    assert any(seen) == recedes


def test_the_interval_narrows_as_the_target_comes_near():
    losses = [3 - 0.5 * math.log(r) for r in range(1, 81)]
    widths = []
    for length in (10, 20, 40, 75):
        arrival = forecast_of(losses[:length], target=losses[-1]).arrival()
        widths.append(arrival.high / arrival.low)
    assert widths == sorted(widths, reverse=True)


def test_with_few_losses_nothing_is_said_and_gaps_do_no_harm():
    assert forecast_of([3.0, 2.0], target=1.0).arrival() is None
    full = [3 - 0.5 * math.log(r) for r in range(1, 41)]
    gaps = [loss if place % 3 else None for place, loss in enumerate(full)]
    assert forecast_of(gaps, 0.8).way_left() == pytest.approx(forecast_of(full, 0.8).way_left())


def test_losses_below_zero_are_left_out_of_logarithms():
    made = forecast_of([3 - 0.5 * math.log(r) for r in range(1, 61)] + [0.0, -0.5], target=0.8)
    assert made.arrival().low < math.inf and made.loss_at(80) > 0
    assert made.is_in_the_scatter(80) and not made.is_far_beyond(80)
    assert forecast_of([-1.0] * 9, target=0.8).arrival() is None


def test_losses_that_rise_lead_nowhere():
    made = forecast_of([1 + 0.01 * r for r in range(20)], target=0.5)
    assert made.way_left() == math.inf
    assert not made.within_reach(10_000)


def test_a_rate_that_dies_out_is_never_in_time():
    rate = LearningRate(initial=0.1, schedule="exponential", decay=0.5)
    made = forecast_of([2 - 0.01 * r for r in range(20)], 1.0, lambda round_: rate.at(round_ - 1))
    assert made.arrival().high == math.inf
    assert not made.within_reach(1000)


@pytest.mark.parametrize(("arrives", "ever"), [(99_000, True), (101_000, False)])
def test_a_target_further_than_a_hundred_thousand_rounds_may_never_be_reached(arrives, ever):
    """The most hopeful reading: half of what the line says is left, in the logarithm of time."""
    left = 2 * math.log(arrives / 40)
    losses = [3 - 0.1 * math.log(r) for r in range(1, 41)]
    made = forecast_of(losses, target=losses[-1] - 0.1 * left)
    assert made.way_left() == pytest.approx(left)
    assert math.isfinite(made.arrival().high) == ever


def test_what_is_reached_is_near():
    made = forecast_of([3 - 0.1 * r for r in range(20)], target=1.2)
    assert made.way_left() == 0.0 and made.within_reach(21)
    arrival = made.arrival()
    assert 20 < arrival.low < arrival.rounds < arrival.high < 40


def test_losses_that_fall_by_the_same_share_are_followed():
    made = forecast_of([0.97**r for r in range(1, 41)], target=0.97**80)
    arrival = made.arrival()
    way = math.sqrt(math.log(2))
    assert arrival.rounds == pytest.approx(40 * math.exp(1.47 * way))
    assert arrival.low < 80 < arrival.high


def test_no_loss_is_below_nothing():
    losses = [0.97**r for r in range(1, 41)]
    arrival = forecast_of(losses, target=0.0).arrival()
    assert arrival.rounds > forecast_of(losses, target=0.97**80).arrival().high


def test_what_is_left_is_counted_from_half_a_round_on():
    losses = [math.exp(-0.1 * r) for r in range(20)]

    def rounds(ahead):
        return forecast_of(losses, target=losses[-1] * math.exp(-0.1 * ahead)).arrival().rounds

    assert rounds(0.1) == pytest.approx(rounds(0.5))
    assert rounds(0.5) < rounds(0.75) < rounds(1.0)
