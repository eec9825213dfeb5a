"""Forecast: how many rounds a training will take, from its losses so far.

The losses of the last two thirds of the rounds are taken to go on falling by the same share in each
round. In truth they fall more slowly later on, so a far target is further than that: how much
further was counted on real trainings, which gives the expected round and its interval.

Whether a target is out of reach is decided in learning-rate time (the sum of the rates so far),
which takes account of a rate that dies out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

# ln(rounds in all / rounds so far), as a multiple of the root of what the losses say it is: median
# and 90% interval. Counted on 384 trainings of twelve tasks of the suite, at five moments each.
_EXPECTED, _LOW, _HIGH = 1.47, 0.66, 2.8
_MOST = 100.0  # times the rounds so far that losses can say
# With p the `way_left`, this times p / (1 + p) is the upper end of its 90% interval, counted at 441
# moments of 96 trainings of the suite's development half.
_LATEST = 5.0
# A target is given up if, by a power law, it is more than this many times as far, in ln time, as a
# limit allows. Counted on 416 questions to 104 trainings of thirteen tasks of the suite: of targets
# 10% above what was reached in time 0.2% are given up, and all that are a third of it or lower.
_FAR = 3.0
_FEWEST = 4  # losses that a line is drawn through: with fewer it says nothing
_STANDSTILL = 1e-6  # time that grows by less than this share has come to an end
_FURTHEST = 100_000  # rounds that are looked ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """When the target is expected to be reached, in rounds from the first on.

    The upper end is infinite if losses do not fall, or the rate dies out before.
    """

    rounds: float
    low: float
    high: float


class Forecast:
    """The losses of one training, and when they will reach the target.

    rate : the learning rate of each round, counted from 1.

    >>> forecast = Forecast(target_loss=1.0, rate=lambda round_: 0.1)
    >>> for round_ in range(1, 51):
    ...     forecast.add(3.0 - 0.4 * math.log(round_))
    >>> round(math.exp(forecast.way_left()), 2)  # the target is at round exp(5) = 148
    2.97
    """

    def __init__(self, target_loss: float, rate: Callable[[int], float]) -> None:
        self._target, self._rate = target_loss, rate
        self._losses: list[float] = []
        self._nearest = (math.inf, 0)  # where the end was expected, in rounds so far, and when
        self._clock = np.zeros(1)  # the time after each round, further than was trained

    def add(self, loss: float | None) -> None:
        """Add the loss after one more round; None if it was not measured."""
        self._losses.append(math.nan if loss is None else loss)

    def way_left(self) -> float | None:
        """ln(time to the target / time so far); inf where losses rise, None while they are few."""
        line = self._line_in_time()
        if line is None:
            return None
        level, slope = line
        if level <= self._target:
            return 0.0
        return (self._target - level) / slope if slope < 0 else math.inf

    def loss_at(self, round_: int) -> float | None:
        """The loss after a later round, by a power of time; None while there is no line."""
        line = self._line_in_time(of=np.log)
        if line is None:
            return None
        ahead = math.log(self._time_of(round_) / self._now)
        return math.exp(line[0] + min(line[1], 0.0) * ahead)

    @np.errstate(divide="ignore", invalid="ignore")  # a loss of 0 or less has no logarithm
    def is_in_the_scatter(self, round_: int) -> bool:
        """Whether a loss as far below the line as one has been would be at the target by then."""
        line, rounds = self._line_in_time(of=np.log), len(self._losses)
        expected = self.loss_at(round_)
        if line is None or expected is None or self._target <= 0:
            return False
        times = np.log(self._clock[rounds // 2 + 1 : rounds + 1] / self._now)
        lucky = np.nanmin(np.log(self._losses[rounds // 2 :]) - line[0] - line[1] * times)
        return math.log(expected) + float(lucky) <= math.log(self._target)

    @np.errstate(divide="ignore", invalid="ignore")
    def arrival(self) -> Arrival | None:
        """When the target is expected to be reached; None while unknown."""
        rounds = len(self._losses)
        first = rounds // 3
        before_now = np.arange(first + 1.0 - rounds, 1.0)
        line = _line(before_now, np.log(self._losses[first:]), np.ones(rounds - first))
        if line is None:
            return None
        level, slope = line
        gap = level - math.log(self._target) if self._target > 0 else math.inf
        left = max(gap / -slope, 0.5) if slope < 0 else math.inf
        way = math.sqrt(math.log(min(1.0 + left / rounds, _MOST)))
        middle, low, high = (rounds * math.exp(k * way) for k in (_EXPECTED, _LOW, _HIGH))
        reachable = self.within_reach(_FURTHEST)
        return Arrival(rounds=middle, low=low, high=high if reachable else math.inf)

    def recedes(self, patience: int) -> bool:
        """Whether the end is further away, in rounds so far, than it once was.

        That is, by the low end of the interval, further than was expected when it was nearest, if
        that was `patience` rounds ago. To know that, it has to be asked at every look.
        """
        arrival, rounds = self.arrival(), len(self._losses)
        if arrival is None:
            return False
        nearest, seen = self._nearest
        if rounds >= patience and arrival.rounds / rounds < nearest:
            self._nearest = (arrival.rounds / rounds, rounds)
        return rounds - seen >= patience and arrival.low / rounds > nearest

    def latest(self) -> float:
        """The round by which the target is reached at the latest; infinite while unknown."""
        left = self.way_left()
        if left is None:
            return math.inf
        part = 1.0 if math.isinf(left) else left / (1.0 + left)
        wanted = self._now * math.exp(_LATEST * part)
        if wanted > self._time_of(_FURTHEST):
            return math.inf
        after = int(np.searchsorted(self._clock, wanted))
        before, step = self._clock[after - 1], self._clock[after] - self._clock[after - 1]
        return max(len(self._losses), after - 1 + float((wanted - before) / step))

    def within_reach(self, round_: int) -> bool:
        """Whether the target may be reached by this round, on the most optimistic reading.

        Far from the target the line overestimates more often than not, so half of it is used.
        """
        left = self.way_left()
        if left is None or len(self._losses) >= round_:
            return True
        return left / 2.0 <= math.log(self._time_of(round_) / self._now)

    def is_far_beyond(self, round_: int) -> bool:
        """Whether losses that keep falling as a power of time would still be far too high by then.

        A power law without a floor is the most hopeful shape of a loss, and of two such lines,
        through all rounds and through the later half, the more hopeful level and slope are used.
        """
        rounds = len(self._losses)
        if rounds >= round_ or self._target <= 0:
            return rounds < round_  # no loss is below 0
        lines = [self._line_in_time(first, np.log) for first in (0, rounds // 2)]
        steepest = min((line[1] for line in lines if line), default=-math.inf)
        level = min((line[0] for line in lines if line), default=-math.inf)
        ahead = math.log(self._time_of(round_) / self._now)
        return level + _FAR * ahead * min(steepest, 0.0) > math.log(self._target)

    @np.errstate(divide="ignore", invalid="ignore")
    def _line_in_time(
        self, first: int | None = None, of: Callable[[Values], Values] = np.asarray
    ) -> tuple[float, float] | None:
        """The loss now, and how it changes with ln time, over the later half of the rounds.

        first : the rounds before it are left out, instead of the first half.
        of : applied to the losses first.
        """
        rounds = len(self._losses)
        first = rounds // 2 if first is None else first
        now = self._time_of(rounds)
        times = self._clock[first + 1 : rounds + 1]
        evenly = 1.0 / np.arange(first + 1, rounds + 1)  # in ln time
        return _line(np.log(times / now), of(np.array(self._losses[first:])), evenly)

    @property
    def _now(self) -> float:
        return self._time_of(len(self._losses))

    def _time_of(self, round_: int) -> float:
        """The sum of the rates up to this round."""
        last = min(round_, _FURTHEST)
        while self._clock.size <= last:
            first = self._clock.size
            rates = [self._rate(each) for each in range(first, min(2 * first, _FURTHEST) + 1)]
            self._clock = np.append(self._clock, self._clock[-1] + np.cumsum(rates))
        return float(self._clock[last])


def _line(x: Values, y: Values, weight: Values) -> tuple[float, float] | None:
    """Level at 0 and slope of the line through the finite values; None if they are too few."""
    known = np.isfinite(y)
    if known.sum() < _FEWEST:
        return None
    x, y, weight = x[known], y[known], weight[known] / weight[known].sum()
    x_mean, y_mean = weight @ x, weight @ y
    spread = weight @ (x - x_mean) ** 2
    if spread < _STANDSTILL**2:
        return float(y_mean), 0.0
    slope = float(weight @ ((x - x_mean) * (y - y_mean)) / spread)
    return float(y_mean - slope * x_mean), slope
