"""Descent under a harmonic rate: what sampling adds to the loss falls as the rate does.

    loss = quiet + (first - quiet) (1 - exp(-noise))
    noise = c / r * s(K)^q * exp(w / E)

The quiet loss is what training without noise comes to. Its time, the logarithm of the rounds, is
D + A / E^1.15 - H sqrt(s(K)): a part that no setting can save, a part that more local steps save,
both growing as the loss falls, as powers of it, and a head start of few clients. (An average over
the clients that were drawn counts large ones less than one over all; where that is no help, H is
about 0.) Drawing K clients keeps the loss near where it began until the rate has fallen far enough:
that noise is in proportion to the rate is what the theory of SGD says, and what long runs show. As
the rate falls, clients and steps come to count more (q and w grow).

So a short run with few clients, which is far from the target, says how far few clients come later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from fedplan.convergence.bound import sampling_variance
from fedplan.convergence.curves import Curve
from fedplan.convergence.prior import Prior, by_name
from fedplan.core.fleet import FloatArray
from fedplan.core.learning_rate import LearningRate

LUCK = 0.15  # of the loss, times the root of what noise makes up of it
FORGETTING = 0.85  # of that luck, for a time of 1: it passes as other clients are drawn
FORM_ERROR = 0.01  # of the loss: what the form does not explain, of a pilot and of a stretch each
STEPS_TREND = 3.0  # of the share that steps save, with the logarithm of the time
DIMINISHING = 1.15  # power of E with which the part that steps save falls
STRETCH, EARLIEST = 1.6, 6  # of a curve; the first rounds are of another kind, and losses jump
# Where the noise is measured: after some twenty rounds, with two clients, and at three times the E
# for which learning rate times E is 1.
_MIDDLE, _SAMPLING, _STEPS = 3.5, 0.5, 3.0
_SHORTEST = 0.75  # learning rate times E: with fewer steps noise is taken to be what it is there
_MEDIUM = 1.42  # logarithm of the time of a descent of medium length
_LONGEST = 20.0  # learning-rate time, of 300 million rounds: longer is never
_LOUDEST = 6.0  # logarithm of a noise that leaves nothing but the first loss
_HALVINGS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """A quiet descent, and noise that falls with the rate.

    first_ratio : the loss before training over the target.
    """

    num_clients: int
    rate: LearningRate
    first_ratio: float

    # Mean and standard deviation before any pilot: those that lead from pilots to the rounds of
    # whole grids (reproduction/prior.py).
    PRIOR: ClassVar[Prior] = {
        "time": (1.42, 0.2),  # the logarithm of D at the target
        "loss_power": (0.87, 0.2),
        "steps_share": (-1.16, 0.22),  # logarithm of A / E over D, at learning rate times E = 1
        "steps_power": (4.1, 1.0),
        "noise": (0.81, 0.27),
        "clients_power": (1.38, 0.12),
        "clients_growth": (0.21, 0.05),
        "steps_growth": (-0.17, 0.04),
        "curvature": (-2.6, 1.3),
        "head_start": (0.7, 0.4),
    }

    def time(
        self,
        parameters: FloatArray,
        clients_per_round: ArrayLike,
        local_steps: ArrayLike,
        loss_ratio: ArrayLike,
    ) -> FloatArray:
        """Learning-rate time until the loss is `loss_ratio` times the target; arrays broadcast."""
        k, e, ratio = np.broadcast_arrays(
            *(np.asarray(v, np.float64) for v in (clients_per_round, local_steps, loss_ratio))
        )
        values = by_name(self.PRIOR, parameters, k.ndim)
        size, fall = self._noise(values, k, e)
        ahead = self._head_start(values, k)
        shape = np.broadcast_shapes(size.shape, k.shape)
        low, high = np.zeros(shape), np.full(shape, _LONGEST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            # The quiet loss that is needed is lower, the more noise there is; too much, and none is
            # low enough.
            noise = np.exp(np.minimum(size - fall * middle, _LOUDEST))
            quiet = self.first_ratio - np.maximum(self.first_ratio - ratio, 0.0) * np.exp(noise)
            needed = self._quiet_time(values, np.log(np.maximum(quiet, 1e-3)), e)
            late = needed > middle + ahead
            low, high = np.where(late, middle, low), np.where(late, high, middle)
        return np.where(low > 0.99 * _LONGEST, np.inf, 0.5 * (low + high))

    def losses(
        self, parameters: FloatArray, clients: FloatArray, steps: FloatArray, times: FloatArray
    ) -> FloatArray:
        """Logarithms of the loss over the target at learning-rate times."""
        values = by_name(self.PRIOR, parameters, times.ndim)
        counted = times + self._head_start(values, clients)
        highest = max(4.0, math.log(self.first_ratio) + 1.0)
        low, high = np.full(times.shape, -4.0), np.full(times.shape, highest)
        for _ in range(2 * _HALVINGS):
            middle = 0.5 * (low + high)
            above = self._quiet_time(values, middle, steps) > counted
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        quiet = np.exp(0.5 * (low + high))
        share = self._noise_share(values, clients, steps, times)
        return np.asarray(np.log(quiet * (1.0 - share) + self.first_ratio * share))

    def fit(
        self, curves: Sequence[Curve], target_loss: float, prior: Prior
    ) -> tuple[FloatArray, FloatArray]:
        """The likeliest parameters and their covariance.

        Pilots with the same K and seed drew the same cohorts, and their luck is the same, at the
        same time.
        """
        stretches = [curve.stretches(STRETCH, EARLIEST) for curve in curves]
        sizes = [ends.size for ends, _ in stretches]

        def of_curves(values: Sequence[float]) -> FloatArray:
            return np.repeat(np.array(values, dtype=np.float64), sizes)

        clients = of_curves([curve.clients_per_round for curve in curves])
        steps = of_curves([curve.local_steps for curve in curves])
        seeds = of_curves([curve.seed for curve in curves])
        pilots = of_curves(range(len(curves)))
        times = self.rate.time(np.concatenate([ends for ends, _ in stretches]))
        losses = np.log(np.concatenate([lowest for _, lowest in stretches]) / target_loss)

        means, spreads = (np.array(column) for column in zip(*prior.values(), strict=True))
        share = self._noise_share(by_name(self.PRIOR, means, 1), clients, steps, times)
        luck = LUCK * np.sqrt(share)
        same_cohorts = (_same(clients) & _same(seeds)) * np.exp(
            -FORGETTING * np.abs(times[:, np.newaxis] - times)
        )
        covariance = same_cohorts * luck * luck[:, np.newaxis]
        covariance += FORM_ERROR**2 * (_same(pilots) + np.eye(times.size))
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))

        def residuals(values: FloatArray) -> FloatArray:
            expected = self.losses(values, clients, steps, times)
            return np.concatenate([(values - means) / spreads, whiten @ (losses - expected)])

        found = least_squares(residuals, means, x_scale=spreads, diff_step=1e-4)
        return found.x, np.linalg.inv(found.jac.T @ found.jac)

    def _quiet_time(
        self, values: Mapping[str, FloatArray], log_ratio: FloatArray, steps: FloatArray
    ) -> FloatArray:
        """Learning-rate time without noise until the loss is this, as a logarithm over the target.

        Losses level off early, so curvature counts above the target alone.
        """
        above = np.maximum(log_ratio, 0.0)
        inherent = np.exp(
            -values["loss_power"] * log_ratio + 0.5 * values["curvature"] * above * above
        )
        share = values["steps_share"] + STEPS_TREND * (values["time"] - _MEDIUM)
        saved = np.exp(share - values["steps_power"] * log_ratio)
        saved = saved / (self.rate.initial * steps) ** DIMINISHING
        return np.asarray(np.exp(values["time"]) * (inherent + saved))

    def _head_start(self, values: Mapping[str, FloatArray], clients: FloatArray) -> FloatArray:
        return np.asarray(values["head_start"] * np.sqrt(self._variance(clients)))

    def _variance(self, clients: FloatArray) -> FloatArray:
        return np.maximum(sampling_variance(clients, self.num_clients), 1e-12)

    def _noise(
        self, values: Mapping[str, FloatArray], clients: FloatArray, steps: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Size and fall of the noise: its logarithm is size - fall * time."""
        spread = np.log(self._variance(clients) / _SAMPLING)
        longer = 1.0 - _STEPS / np.maximum(self.rate.initial * steps, _SHORTEST)
        fall = 1.0 - values["clients_growth"] * spread - values["steps_growth"] * longer
        fall = np.maximum(fall, 0.1)
        size = values["noise"] + np.maximum(values["clients_power"], 0.0) * spread + fall * _MIDDLE
        return np.asarray(size), np.asarray(fall)

    def _noise_share(
        self,
        values: Mapping[str, FloatArray],
        clients: FloatArray,
        steps: FloatArray,
        times: FloatArray,
    ) -> FloatArray:
        """What noise makes up of the way from the quiet loss to the first."""
        size, fall = self._noise(values, clients, steps)
        return np.asarray(-np.expm1(-np.exp(np.minimum(size - fall * times, _LOUDEST))))


def _same(values: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(values[:, np.newaxis] == values)
