"""Saturation: how rounds fall with local steps, known only roughly.

With every client's data in turn, R(E) = rounds (1 + saturation / E): local steps save rounds until
about `saturation` of them, where half of what steps can save is saved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import FloatArray
from fedplan.core.learning_rate import LearningRate
from fedplan.errors import LARGEST, amount_problems, refuse

# The rounds that drawing one client at random adds, as a multiple of the rounds of all clients, if
# not measured: about the upper quartile of `reproduction/participation.py`, whose median is 0.9. It
# rises with local steps, and too few clients never reach the target.
SAMPLING = 2.0
# The saturations of most of these tasks; their geometric middle is the safest guess. And the rounds
# of a training of usual length, on which only the groups depend.
RANGE = (8.0, 256.0)
ROUNDS = 50.0
_STEPS = np.geomspace(1.0, 10_000.0, 161)  # local steps that are looked at; costs are flat between
_AHEAD = 5000  # rounds that a falling rate is followed for


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """How many rounds training takes, given a scale, a saturation and sampling noise.

    rounds : rounds with all clients and unlimited steps; with `saturation` steps twice as many.
    saturation : local steps at which half of what steps can save has been saved.
    interval : where the saturation may lie; None if it is known.
    sampling : what sampling a single client would add, as a multiple of all clients' rounds.

    >>> known = Saturation(rounds=50.0, saturation=60.0)
    >>> float(known.full_rounds(60)), float(known.full_rounds(20))
    (100.0, 200.0)
    """

    rounds: float = ROUNDS
    saturation: float = math.sqrt(RANGE[0] * RANGE[1])
    interval: tuple[float, float] | None = None
    sampling: float = SAMPLING

    def __post_init__(self) -> None:
        problems = amount_problems(rounds=self.rounds) + amount_problems(
            saturation=self.saturation, sampling=self.sampling, or_zero=True
        )
        if self.interval is not None and not 0 <= self.interval[0] <= self.interval[1] <= LARGEST:
            problems = [f"`0 <= low <= high` must hold for the saturation, got {self.interval}."]
        refuse(problems)

    @classmethod
    def within(cls, low: float, high: float, *, rounds: float = ROUNDS) -> Saturation:
        """A saturation somewhere in this range; plans use its geometric middle.

        >>> Saturation.within(10.0, 1000.0).saturation
        100.0
        """
        middle = math.sqrt(low * high) if low >= 0 <= high else math.nan
        return cls(rounds=rounds, saturation=middle, interval=(low, high))

    def at_gap(self, target_gap: float) -> Saturation:
        """The same for another gap: rounds are inversely proportional to it."""
        return replace(self, rounds=self.rounds / target_gap)

    def full_rounds(self, local_steps: ArrayLike) -> FloatArray:
        """Rounds if all clients train, or every client's data is used in every cycle."""
        return np.asarray(self.rounds * (1.0 + self.saturation / np.asarray(local_steps)))

    def sampling_rounds(self, local_steps: ArrayLike) -> FloatArray:
        """Rounds that the noise of drawing a single client adds."""
        return np.asarray(self.sampling * self.full_rounds(local_steps))

    def best_steps(self, per_step: float, per_round: float) -> float:
        """E where (per_step E + per_round) R(E) is least: sqrt(saturation per_round / per_step).

        >>> Saturation(rounds=50.0, saturation=80.0).best_steps(per_step=0.1, per_round=2.0)
        40.0
        """
        if not per_step:
            return math.inf if per_round else 1.0
        return math.sqrt(self.saturation * per_round / per_step)


def usual_rate(rate: LearningRate | None) -> float:
    """The mean rate over a training of typical length, to which saturations refer.

    Half the rate makes steps half as long, and so doubles the saturation.

    >>> usual_rate(LearningRate(initial=0.1)), usual_rate(None)
    (0.1, 1.0)
    """
    if rate is None:
        return 1.0
    return math.fsum(map(rate.at, range(round(ROUNDS)))) / round(ROUNDS)


def best_constant_steps(
    saturation: float, rate: LearningRate | None, per_step: float, per_round: float
) -> float:
    """The E that costs least from the first round to the last, where the rate may fall.

    saturation : at the usual rate. At another rate, E steps count as E * rate / usual rate; so
        where rates die out, few steps take far more rounds than 1 + saturation / E says.

    >>> round(best_constant_steps(80.0, None, per_step=0.1, per_round=2.0), -1)
    40.0
    >>> falling = LearningRate(initial=0.1, schedule="exponential", decay=0.99)
    >>> best_constant_steps(80.0, falling, per_step=0.1, per_round=2.0) > 60
    True
    """
    if not per_step:
        return math.inf if per_round else 1.0
    cost = (per_step * _STEPS + per_round) * _rounds_by_steps(saturation, rate)
    return float(_STEPS[cost.argmin()])


@lru_cache(maxsize=16)
def _rounds_by_steps(saturation: float, rate: LearningRate | None) -> FloatArray:
    """Rounds of a training of usual length with each of `_STEPS`."""
    rates = np.ones(1) if rate is None else np.array([rate.at(r) for r in range(_AHEAD)])
    slower = np.divide(usual_rate(rate), rates, out=np.full(rates.size, np.inf), where=rates > 0)
    pace = 1.0 / (1.0 + saturation * slower / _STEPS[:, None])
    gone = np.cumsum(pace, axis=1)
    ended = (gone < ROUNDS).sum(axis=1).astype(np.float64)
    left = np.maximum(ROUNDS - gone[:, -1], 0.0)
    later = np.divide(left, pace[:, -1], out=np.full(left.size, np.inf), where=pace[:, -1] > 0)
    rounds: FloatArray = ended + np.where(left > 0, later, 0.0)
    return rounds
