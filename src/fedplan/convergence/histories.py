"""Histories: what the losses of earlier runs say about local steps.

With E local steps and K of N clients, a training takes about
W (1 + saturation / E + sampling (1 / K - 1 / N)) rounds to a loss. W, the way to that loss, is the
same for all trainings of one task, and each round goes the inverse of the bracket of it, however
local steps, clients and learning rates change from round to round. (At half the rate, a step counts
as half a step.) The saturation is the one at which the ways to common losses agree best.

How well they agree says how sure that is. Trainings that all took equally many steps tell nothing,
and the usual range is left.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used

from fedplan.convergence.saturation import RANGE
from fedplan.core.fleet import FloatArray

# What is assumed before any training is looked at: saturations are log-normal with nine in ten
# within `RANGE`, and samplings are about evenly around those of `convergence.saturation`.
_MIDDLE, _SPREAD = math.log(RANGE[0] * RANGE[1]) / 2, math.log(RANGE[1] / RANGE[0]) / 2 / 1.6449
_SATURATIONS = np.geomspace(0.25, 8192.0, 121)
_SAMPLINGS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
_ENDS = (0.05, 0.5, 0.95)  # of the interval, and its middle
# Ways differ by this ratio, through random seeds and what the law above leaves out. It is a first
# guess, which counts as much as `_GUESSES` trainings.
_SCATTER, _GUESSES = 0.15, 4.0
# Log of the ratio by which a saturation measured in training is off, besides its own scatter.
_MEASURED = math.log(2.0)
_LEVELS = 12  # losses at which trainings are compared
_LATE = 0.3  # from this share of its rounds on, a training names losses to compare at
_FEWEST = 3  # rounds: what comes sooner is not told to a fraction of a round


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """One training: one row per round, or per several rounds with the same setting.

    rounds : number of each row's last round, rising from 1 on.
    clients, local_steps : how many trained in a round, and for how long.
    losses : after each row; NaN if it was not evaluated.
    rates : learning rates, as multiples of the one that the saturation is for.
    measured : saturations that were estimated during the training, in order.
    """

    rounds: FloatArray
    clients: FloatArray
    local_steps: FloatArray
    losses: FloatArray
    rates: FloatArray
    measured: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What histories tell.

    saturation, interval : local steps at which half of what steps can save is saved, and the 90%
        interval of them.
    loss : the lowest that most trainings have reached; None if there is none.
    rounds : of all clients to that loss, with endless local steps; NaN if it is None.
    compared : how many trainings were compared.
    """

    saturation: float
    interval: tuple[float, float]
    loss: float | None = None
    rounds: float = math.nan
    compared: int = 0

    def rounds_at(self, local_steps: float) -> float:
        """Rounds of all clients to `loss`, with so many local steps."""
        return self.rounds * (1.0 + self.saturation / local_steps)


def learn_saturation(histories: Sequence[History], num_clients: int | None = None) -> Learnt:
    """The saturation on which these trainings of one task agree; the default without any.

    num_clients : N; if unknown, the most that ever trained at once.

    >>> def history(steps, rounds):
    ...     rows = np.arange(1.0, rounds + 1)
    ...     return History(rounds=rows, clients=np.full(rounds, 10.0),
    ...         local_steps=np.full(rounds, steps), losses=2.0 - rows / rounds,
    ...         rates=np.ones(rounds))
    >>> learnt = learn_saturation([history(10.0, 500), history(40.0, 200), history(160.0, 125)])
    >>> round(learnt.saturation, -1), round(learnt.rounds_at(40.0), -1), learnt.loss
    (40.0, 200.0, 1.0)
    >>> [round(end) for end in learn_saturation([]).interval]
    [8, 256]
    """
    curves = [curve for one in histories if (curve := _Curve(one)).losses.size]
    believed = -0.5 * ((np.log(_SATURATIONS) - _MIDDLE) / _SPREAD) ** 2
    measured = [np.log(one.measured[len(one.measured) // 2 :]) for one in histories if one.measured]
    if measured:
        # The errors of one task's trainings are alike, so more trainings add little.
        middle = statistics.median(float(np.median(logs)) for logs in measured)
        scatter = statistics.median(float(logs.std()) for logs in measured)
        off = math.hypot(_MEASURED, scatter)
        believed = believed - 0.5 * ((np.log(_SATURATIONS) - middle) / off) ** 2
    levels = _common_levels(curves)
    for curve in curves:
        curve.find(levels)
    most = max([num_clients or 1, *(float(curve.history.clients.max()) for curve in curves)])

    def ways(saturation: float) -> FloatArray:
        """Logarithm of the way, indexed by sampling, training and loss."""
        found = [curve.ways(saturation, most) for curve in curves]
        return np.array(found).reshape(len(curves), _SAMPLINGS.size, levels.size).swapaxes(0, 1)

    told = [_agreement(ways(saturation)) for saturation in _SATURATIONS.tolist()]
    likely = believed[:, None] + np.array(told)
    weights = np.exp(likely - likely.max())
    each = weights.sum(axis=1) / weights.sum()
    share = np.cumsum(each) - each / 2
    low, middle, high = np.exp(np.interp(_ENDS, share, np.log(_SATURATIONS))).tolist()
    known = np.isfinite(gone := ways(middle)[weights.sum(axis=0).argmax()])
    if not known.any():
        return Learnt(saturation=middle, interval=(low, high))
    lowest = int(known.sum(axis=0).argmax())
    return Learnt(
        saturation=middle,
        interval=(low, high),
        loss=float(levels[lowest]),
        rounds=float(np.exp(np.median(gone[known[:, lowest], lowest]))),
        compared=int(known.any(axis=1).sum()),
    )


def _common_levels(curves: Sequence[_Curve]) -> FloatArray:
    """Losses, the lowest first, that come late in some training and that two have reached.

    With a single training, its own late losses.
    """
    named = np.concatenate([np.empty(0), *(curve.late_losses() for curve in curves)])
    lows = sorted(float(curve.losses[-1]) for curve in curves)
    common = named[named >= lows[min(1, len(lows) - 1)]] if lows else named
    return (
        common
        if not common.size
        else np.unique(np.quantile(common, np.linspace(0.0, 1.0, _LEVELS)))
    )


def _agreement(ways: FloatArray) -> FloatArray:
    """The log likelihood of ways that differ like this, for each sampling.

    The losses of one training are correlated, so all count as one. The scatter of trainings is not
    known; integrating over it gives Student's t distribution.
    """
    known = np.isfinite(ways[0])
    number = known.sum(axis=0)
    if not (number > 1).any():
        return np.zeros(_SAMPLINGS.size)
    means = np.where(known, ways, 0.0).sum(axis=1) / np.maximum(number, 1)
    squares = np.where(known, (ways - means[:, None]) ** 2, 0.0).sum(axis=1)
    freedom = _GUESSES + number - 1
    terms = -freedom / 2 * np.log1p(squares / (_GUESSES * _SCATTER**2))
    mean: FloatArray = terms[:, number > 1].mean(axis=1)
    return mean


class _Curve:
    """A history and its closest non-increasing losses, at the rows that were evaluated."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.rows = np.flatnonzero(np.isfinite(history.losses))
        self.losses = np.empty(0)
        if self.rows.size:
            fitted = scipy.optimize.isotonic_regression(history.losses[self.rows], increasing=False)
            self.losses = np.asarray(fitted.x, dtype=np.float64)
        self._at, self._before = np.empty(0, dtype=np.intp), np.empty(0)

    def late_losses(self) -> FloatArray:
        """Losses at late rounds, which are evenly spaced on a log scale."""
        rounds = self.history.rounds[self.rows]
        if rounds[-1] < _FEWEST:
            return np.empty(0)
        moments = np.geomspace(max(_FEWEST, _LATE * rounds[-1]), rounds[-1], _LEVELS)
        return np.interp(moments, rounds, self.losses)

    def find(self, levels: FloatArray) -> None:
        """Find the first evaluation at or below each loss, and how far before it that loss was.

        NaN stands for losses that were not reached, or reached too soon.
        """
        at = np.searchsorted(-self.losses, -levels)
        inside = (at > 0) & (at < self.losses.size)
        at = np.where(inside, at, 0)
        inside &= self.history.rounds[self.rows[at]] >= _FEWEST
        drop = np.where(inside, self.losses[at - 1] - self.losses[at], np.nan)
        self._at, self._before = at, (levels - self.losses[at]) / drop

    def ways(self, saturation: float, num_clients: float) -> FloatArray:
        """Log of the way to each loss, in rounds of all clients and endless steps, by sampling."""
        one, at = self.history, self._at
        noise = _SAMPLINGS[:, None] * (1.0 / one.clients - 1.0 / num_clients)
        slower = 1.0 + saturation / (one.rates * one.local_steps) + noise
        gone = np.cumsum(np.diff(one.rounds, prepend=0.0) / slower, axis=1)[:, self.rows]
        way: FloatArray = np.log(gone[:, at] - self._before * (gone[:, at] - gone[:, at - 1]))
        return way
