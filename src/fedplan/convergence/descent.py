"""Descent: how long a (K, E) trains until the loss is down to F, learnt from whole loss curves.

The paper's bound counts rounds and holds for one learning rate. What pilots show is simpler in
*learning-rate time* (a round at a tenth of the first rate counts a tenth), and follows one of two
laws: `noise_law` where the rate is harmonic, `sum_law` where it is constant or exponential.

What a few short pilots leave open is narrowed by what holds across tasks, the law's prior, and what
is left after that comes out as the estimate's spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fedplan.convergence.curves import Curve
from fedplan.convergence.noise_law import NoiseLaw
from fedplan.convergence.prior import Prior
from fedplan.convergence.sum_law import SumLaw
from fedplan.core.fleet import FloatArray
from fedplan.core.learning_rate import LearningRate
from fedplan.errors import InputError

EXTRAPOLATION = 0.1  # of the time, for every factor of e from the lowest loss seen to the target
CONFIDENCE = 0.9


class Law(Protocol):
    """What a descent follows; the first of its parameters is the logarithm of a time."""

    @property
    def PRIOR(self) -> Prior:  # noqa: N802  (a constant of the law)
        """Mean and standard deviation of every parameter before any pilot."""

    def time(
        self,
        parameters: FloatArray,
        clients_per_round: ArrayLike,
        local_steps: ArrayLike,
        loss_ratio: ArrayLike,
    ) -> FloatArray:
        """Learning-rate time until the loss is `loss_ratio` times the target; arrays broadcast."""

    def fit(
        self, curves: Sequence[Curve], target_loss: float, prior: Prior
    ) -> tuple[FloatArray, FloatArray]:
        """The likeliest parameters given the curves and the prior, and their covariance."""


def law_of(rate: LearningRate, num_clients: int, first_ratio: float) -> Law:
    """The law of descents with this learning rate.

    first_ratio : the loss before training over the target.
    """
    if rate.schedule == "harmonic":
        return NoiseLaw(num_clients=num_clients, rate=rate, first_ratio=first_ratio)
    return SumLaw(num_clients=num_clients, rate=rate, first_ratio=first_ratio)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descent:
    """A fitted descent: the likeliest parameters, how uncertain they are, and the pilots' reach.

    reach : the smallest and largest K, and the smallest and largest E, that the pilots say
        something of.
    """

    num_clients: int
    first_loss: float
    target_loss: float
    rate: LearningRate
    parameters: FloatArray
    covariance: FloatArray
    reach: tuple[int, int, int, int]

    def draws(self, count: int) -> FloatArray:
        """Parameters that the pilots leave possible, one row each; always the same ones."""
        size = self.parameters.size
        normal = np.random.default_rng(0).standard_normal((count, size))
        spread = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(size))
        return np.asarray(self.parameters + normal @ spread.T)

    def rounds(
        self,
        clients_per_round: ArrayLike,
        local_steps: ArrayLike,
        loss: ArrayLike | None = None,
        *,
        parameters: FloatArray | None = None,
    ) -> FloatArray:
        """Rounds until the loss (the target, if none is given) is reached; infinite where never.

        With several rows of parameters the result has one more axis, the first.
        """
        ratio = 1.0 if loss is None else np.asarray(loss, dtype=np.float64) / self.target_loss
        chosen = self.parameters if parameters is None else parameters
        law = law_of(self.rate, self.num_clients, self.first_loss / self.target_loss)
        return self.rate.rounds(law.time(chosen, clients_per_round, local_steps, ratio))


def fit_descent(
    curves: Sequence[Curve],
    num_clients: int,
    target_loss: float,
    rate: LearningRate,
    *,
    prior: Prior | None = None,
) -> Descent:
    """The likeliest descent given the pilots' curves and the prior, and its covariance.

    prior : mean and standard deviation of every parameter, in order; without it the law's.
    """
    if not target_loss > 0:
        raise InputError(f"`target_loss > 0` must hold, but got target_loss={target_loss}.")
    falling = [c for c in curves if c.falls and (c.first_loss or 0.0) > target_loss]
    if not falling:
        raise InputError(
            "no pilot's loss fell, so nothing can be learnt from them. Give the pilots more "
            "rounds, or lower the learning rate."
        )
    first_loss = max(c.first_loss or 0.0 for c in falling)
    law = law_of(rate, num_clients, first_loss / target_loss)
    parameters, covariance = law.fit(falling, target_loss, prior or law.PRIOR)
    lowest = min(loss for curve in falling for loss in curve.losses if loss is not None)
    unseen = max(0.0, math.log(lowest / target_loss))
    covariance[0, 0] += (EXTRAPOLATION * unseen) ** 2
    return Descent(
        num_clients=num_clients,
        first_loss=first_loss,
        target_loss=target_loss,
        rate=rate,
        parameters=parameters,
        covariance=covariance,
        reach=_reach(curves),
    )


def _reach(curves: Sequence[Curve]) -> tuple[int, int, int, int]:
    """Half to twice what was piloted, but no fewer clients.

    Their noise may end the descent above the target, or hold it up for longer than pilots with more
    of them show. A pilot whose loss did not fall says little, but that much.
    """
    steps = [curve.local_steps for curve in curves]
    clients = [curve.clients_per_round for curve in curves]
    return min(clients), 2 * max(clients), max(1, math.ceil(min(steps) / 2)), 2 * max(steps)
