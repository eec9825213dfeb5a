"""Descent under a constant or an exponential rate: learning-rate time is a sum of three parts.

    time(K, E, F) = D(F) + A(F) / E + C(F) s(K)^q E^w

a part that no setting can save, a part that more local steps save, and a part that more clients
save. D, A and C grow as the loss falls, each as a power of its own of the loss; a common curvature
allows for losses that level off. Powers are of the whole way from the first loss to the target: in
those units tasks have much in common, whether training ends at a fifth of the first loss or at a
fortieth. With a constant rate, D = 0 and w = 1 this is the paper's bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from fedplan.convergence.bound import sampling_variance
from fedplan.convergence.curves import Curve
from fedplan.convergence.prior import Prior, by_name
from fedplan.core.fleet import FloatArray
from fedplan.core.learning_rate import LearningRate

COHORT_NOISE = 0.3  # of the rounds, at K = 1; the same for pilots that drew the same cohorts
PILOT_NOISE = 0.05  # of the rounds, of every pilot by itself: what the form does not explain
LEVEL_NOISE = 0.02  # of the rounds, from level to level of one pilot
ROUND_NOISE = 0.4  # rounds: a loss is only known once a round
LEVELS = 8
UPPER = 0.75  # of the way from the target to the first loss, by ratio: the highest of the levels
_MOST = 50.0  # of an exponent: keeps absurd draws finite


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLaw:
    """A sum of three parts, each a power of the loss.

    first_ratio : the loss before training over the target.
    """

    num_clients: int
    rate: LearningRate
    first_ratio: float

    # Of each parameter, its mean and standard deviation before any pilot. Shares are logarithms of
    # what A / E and C are of D at the target, at the E where learning rate times E is 1 and K = 1;
    # powers are logarithms of how far D and C grow from the first loss to the target.
    PRIOR: ClassVar[Prior] = {
        "time": (0.0, 10.0),
        "loss_power": (4.0, 0.5),
        "steps_share": (-0.5, 1.0),
        "steps_excess": (-0.2, 0.7),  # of the power of A over that of D
        "sampling_share": (0.0, 0.35),
        "sampling_power": (2.0, 1.0),
        "sampling_steps_power": (0.1, 0.3),  # w
        "clients_power": (1.0, 0.2),  # q
        "curvature": (0.5, 2.0),
    }

    def time(
        self,
        parameters: FloatArray,
        clients_per_round: ArrayLike,
        local_steps: ArrayLike,
        loss_ratio: ArrayLike,
    ) -> FloatArray:
        """Learning-rate time until the loss is `loss_ratio` times the target; arrays broadcast.

        >>> law = SumLaw(num_clients=10, rate=LearningRate(initial=0.1), first_ratio=20)
        >>> likeliest = [math.log(8), 2, math.log(0.5), 1, math.log(0.25), 0, 0.25, 1, 0]
        >>> law.time(np.array(likeliest), [1, 10], 10, 1.0).round(3).tolist()
        [14.0, 12.0]
        """
        k, e, ratio = np.broadcast_arrays(
            *(np.asarray(v, np.float64) for v in (clients_per_round, local_steps, loss_ratio))
        )
        of = by_name(self.PRIOR, parameters, k.ndim)
        x = np.log(ratio) / math.log(self.first_ratio)
        spread = sampling_variance(k, self.num_clients) ** np.maximum(of["clients_power"], 0.0)
        steps = e * self.rate.initial

        def power(share: ArrayLike, exponent: FloatArray) -> FloatArray:
            return np.asarray(np.exp(np.clip(share - exponent * x, -_MOST, _MOST)))

        inherent = power(0.0, of["loss_power"])
        steps_power = of["loss_power"] + of["steps_excess"]
        saved_by_steps = power(of["steps_share"], steps_power) / steps
        saved_by_clients = power(of["sampling_share"], of["sampling_power"]) * spread
        saved_by_clients = saved_by_clients * steps ** of["sampling_steps_power"]
        bend = 0.5 * of["curvature"] * x * (x - 1.0)
        scale = np.exp(np.clip(of["time"] + bend, -_MOST, _MOST))
        return np.asarray(scale * (inherent + saved_by_steps + saved_by_clients))

    def fit(
        self, curves: Sequence[Curve], target_loss: float, prior: Prior
    ) -> tuple[FloatArray, FloatArray]:
        """The likeliest parameters and their covariance.

        Pilots with the same K and seed drew the same cohorts, so what is random in them is shared
        and says nothing against the difference between them.
        """
        measured = [m for c in curves if (m := _measure(c, target_loss, self.rate)) is not None]
        cohorts = sorted({(m.curve.clients_per_round, m.curve.seed) for m in measured})
        own = len(self.PRIOR)
        shared = {cohort: own + position for position, cohort in enumerate(cohorts)}
        alone = own + len(cohorts)
        means = np.array([m for m, _ in prior.values()] + [0.0] * (len(cohorts) + len(measured)))
        spreads = np.array(
            [spread for _, spread in prior.values()]
            + [_cohort_noise(clients, self.num_clients) for clients, _ in cohorts]
            + [PILOT_NOISE] * len(measured)
        )

        def residuals(values: FloatArray) -> FloatArray:
            parts = [(values - means) / spreads]
            for position, m in enumerate(measured):
                setting = m.curve.clients_per_round, m.curve.local_steps
                predicted = self.time(values[:own], *setting, m.loss_ratio)
                shift = values[shared[m.curve.clients_per_round, m.curve.seed]]
                shift = (shift + values[alone + position]) * m.time_per_share
                parts.append((m.time - predicted - shift) / m.error)
            return np.concatenate(parts)

        start = means.copy()
        start[0] = math.log(max((float(m.time[-1]) for m in measured), default=1.0))
        found = least_squares(residuals, start, x_scale=spreads)
        return found.x[:own], np.linalg.inv(found.jac.T @ found.jac)[:own, :own]


def _cohort_noise(clients_per_round: int, num_clients: int) -> float:
    variance = float(sampling_variance(clients_per_round, num_clients))
    return COHORT_NOISE * math.sqrt(variance) + 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """A curve in learning-rate time; `time_per_share` is what a share of the rounds is in it."""

    curve: Curve
    loss_ratio: FloatArray
    time: FloatArray
    time_per_share: FloatArray
    error: FloatArray


def _measure(curve: Curve, target_loss: float, rate: LearningRate) -> _Measured | None:
    first = curve.first_loss
    if first is None or first <= target_loss:
        return None
    # The first rounds are of another kind: losses jump while the rate is high.
    upper = target_loss * (first / target_loss) ** UPPER
    evaluated = [loss for loss in curve.losses if loss is not None]
    lowest = min(evaluated)
    if lowest >= 0.98 * upper:
        upper = 1.03 * lowest
    losses, rounds = curve.levels(upper, LEVELS)
    if not losses.size:
        return None
    rounds = np.maximum(rounds, 0.5)
    per_share = rounds * rate.slope(rounds)
    # Levels of one curve repeat each other: together they weigh as much as two.
    error = np.hypot(LEVEL_NOISE, ROUND_NOISE / rounds) * per_share * math.sqrt(LEVELS / 2)
    return _Measured(
        curve=curve,
        loss_ratio=losses / target_loss,
        time=rate.time(rounds),
        time_per_share=per_share,
        error=error,
    )
