"""Descent: how long a (K, E) trains until the loss is down to F, learnt from whole loss curves.

The paper's bound counts rounds and holds for one learning rate. What pilots show, whatever the
schedule, is simpler in *learning-rate time* (a round at a tenth of the first rate counts a tenth):

    time(K, E, F) = D(F) + A(F) / E + C(F) s(K)^q E^w

a part that no setting can save, a part that more local steps save, and a part that more clients
save. D, A and C grow as the loss falls, each as a power of the loss of its own; a common curvature
allows for losses that level off. With a constant rate, D = 0 and w = 1 this is the paper's bound.

What a few short pilots leave open is narrowed by what holds across tasks (`PRIOR`), and what is
left after that comes out as the estimate's spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from fedplan.errors import InputError
from fedplan.theory.convergence import sampling_variance
from fedplan.theory.fleet import FloatArray
from fedplan.theory.learning_rate import LearningRate

# Of each parameter, its mean and standard deviation before any pilot. Shares are logarithms of what
# A / E and C are of D at the target, at the E where learning rate times E is 1 and at K = 1.
PARAMETERS = (
    "time",
    "loss_power",
    "steps_share",
    "steps_power",
    "sampling_share",
    "sampling_power",
    "sampling_steps_power",
    "clients_power",
    "curvature",
)
PRIOR = {
    "time": (0.0, 10.0),
    "loss_power": (2.2, 1.2),
    "steps_share": (-0.5, 1.0),
    "steps_power": (2.2, 1.5),
    "sampling_share": (-0.65, 0.5),
    "sampling_power": (0.5, 0.7),
    "sampling_steps_power": (0.1, 0.3),  # w
    "clients_power": (1.0, 0.2),  # q
    "curvature": (0.5, 1.0),
}
# With a harmonic schedule time is the logarithm of the rounds, and grows more evenly.
HARMONIC_PRIOR = PRIOR | {
    "loss_power": (0.65, 0.15),
    "steps_share": (-1.0, 0.5),
    "steps_power": (4.0, 0.6),
    "sampling_share": (0.15, 0.4),
    "sampling_power": (-0.3, 0.7),
    "sampling_steps_power": (-0.1, 0.12),
    "clients_power": (1.4, 0.05),
    "curvature": (-1.0, 0.4),
}
COHORT_NOISE = 0.45  # of the rounds, at K = 1; the same for pilots that drew the same cohorts
PILOT_NOISE = 0.05  # of the rounds, of every pilot by itself: what the form does not explain
LEVEL_NOISE = 0.02  # of the rounds, from level to level of one pilot
ROUND_NOISE = 0.4  # rounds: a loss is only known once a round
EXTRAPOLATION = 0.1  # of the time, for every factor of e from the lowest loss seen to the target
LEVELS = 8
CONFIDENCE = 0.9
_MOST = 50.0  # of an exponent: keeps absurd draws finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The losses of one pilot: before training, then after every round (None: not evaluated)."""

    clients_per_round: int
    local_steps: int
    seed: int
    losses: tuple[float | None, ...]

    def levels(self, upper: float, count: int) -> tuple[FloatArray, FloatArray]:
        """Losses from `upper` down to the lowest, and the rounds each was first reached after."""
        known = [(r, loss) for r, loss in enumerate(self.losses) if loss is not None]
        rounds = np.array([r for r, _ in known], dtype=np.float64)
        lowest = np.minimum.accumulate([loss for _, loss in known])
        falls = np.concatenate([[True], np.diff(lowest) < 0])
        rounds, lowest = rounds[falls], lowest[falls]
        upper = min(upper, float(lowest[0]))
        if lowest.size < 2 or lowest[-1] >= upper:
            return np.empty(0), np.empty(0)
        losses = np.geomspace(upper, lowest[-1], count)
        return losses, np.interp(-losses, -lowest, rounds)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descent:
    """A fitted descent: the likeliest parameters, how uncertain they are, and the pilots' reach.

    reach : the smallest K and the smallest and largest E that the pilots say something of.
    """

    num_clients: int
    target_loss: float
    rate: LearningRate
    parameters: FloatArray
    covariance: FloatArray
    reach: tuple[int, int, int]

    def draws(self, count: int) -> FloatArray:
        """Parameters that the pilots leave possible, one row each; always the same ones."""
        normal = np.random.default_rng(0).standard_normal((count, len(PARAMETERS)))
        spread = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(PARAMETERS)))
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
        times = learning_time(
            chosen, clients_per_round, local_steps, ratio, self.num_clients, 1 / self.rate.initial
        )
        return self.rate.rounds(times)


def learning_time(
    parameters: FloatArray,
    clients_per_round: ArrayLike,
    local_steps: ArrayLike,
    loss_ratio: ArrayLike,
    num_clients: int,
    unit_steps: float,
) -> FloatArray:
    """Learning-rate time until the loss is `loss_ratio` times the target; all arrays broadcast.

    >>> likeliest = np.array([math.log(8), 2, math.log(0.5), 3, math.log(0.25), 0, 0.25, 1, 0])
    >>> learning_time(likeliest, [1, 10], 10, 1.0, num_clients=10, unit_steps=10).round(3).tolist()
    [14.0, 12.0]
    """
    k, e, ratio = np.broadcast_arrays(
        *(np.asarray(v, np.float64) for v in (clients_per_round, local_steps, loss_ratio))
    )
    time, loss_power, steps, steps_power, sampling, sampling_power, w, q, curvature = (
        np.moveaxis(parameters, -1, 0)[(...,) + (np.newaxis,) * k.ndim]
        if parameters.ndim > 1
        else parameters
    )
    x = np.log(ratio)
    noise = sampling_variance(k, num_clients) ** np.maximum(q, 0.0)

    def power(share: FloatArray, exponent: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.clip(share - exponent * x, -_MOST, _MOST)))

    inherent = power(np.zeros_like(steps), loss_power)
    saved_by_steps = power(steps, steps_power) * unit_steps / e
    saved_by_clients = power(sampling, sampling_power) * noise * (e / unit_steps) ** w
    scale = np.exp(np.clip(time + 0.5 * curvature * x**2, -_MOST, _MOST))
    return np.asarray(scale * (inherent + saved_by_steps + saved_by_clients))


def fit_descent(
    curves: Sequence[Curve],
    num_clients: int,
    target_loss: float,
    rate: LearningRate,
    *,
    prior: Mapping[str, tuple[float, float]] | None = None,
) -> Descent:
    """The likeliest descent given the pilots' curves and the prior, and its covariance.

    prior : mean and standard deviation of every parameter, in order; without it `prior_of` the
        learning rate.

    Pilots with the same K and seed drew the same cohorts, so what is random in them is shared and
    says nothing against the difference between them.
    """
    if not target_loss > 0:
        raise InputError(f"`target_loss > 0` must hold, but got target_loss={target_loss}.")
    measured = [m for curve in curves if (m := _measure(curve, target_loss, rate)) is not None]
    if not measured:
        raise InputError(
            "no pilot's loss fell, so nothing can be learnt from them. Give the pilots more "
            "rounds, or lower the learning rate."
        )
    cohorts = sorted({(m.curve.clients_per_round, m.curve.seed) for m in measured})
    own = len(PARAMETERS)
    shared = {cohort: own + position for position, cohort in enumerate(cohorts)}
    alone = own + len(cohorts)
    prior = prior or prior_of(rate)
    means = np.array([mean for mean, _ in prior.values()] + [0.0] * (len(cohorts) + len(measured)))
    spreads = np.array(
        [spread for _, spread in prior.values()]
        + [_cohort_noise(clients, num_clients) for clients, _ in cohorts]
        + [PILOT_NOISE] * len(measured)
    )

    def residuals(values: FloatArray) -> FloatArray:
        parts = [(values - means) / spreads]
        for position, m in enumerate(measured):
            predicted = learning_time(
                values[:own],
                m.curve.clients_per_round,
                m.curve.local_steps,
                m.loss_ratio,
                num_clients,
                1 / rate.initial,
            )
            shift = values[shared[m.curve.clients_per_round, m.curve.seed]]
            shift = (shift + values[alone + position]) * m.time_per_share
            parts.append((m.time - predicted - shift) / m.error)
        return np.concatenate(parts)

    start = means.copy()
    start[0] = math.log(max(float(m.time[-1]) for m in measured))
    fit = least_squares(residuals, start, x_scale=spreads)
    covariance = np.linalg.inv(fit.jac.T @ fit.jac)[:own, :own]
    unseen = max(0.0, math.log(min(float(m.loss_ratio[-1]) for m in measured)))
    covariance[0, 0] += (EXTRAPOLATION * unseen) ** 2
    return Descent(
        num_clients=num_clients,
        target_loss=target_loss,
        rate=rate,
        parameters=fit.x[:own],
        covariance=covariance,
        reach=_reach([m.curve for m in measured], rate),
    )


def _reach(curves: Sequence[Curve], rate: LearningRate) -> tuple[int, int, int]:
    steps = [curve.local_steps for curve in curves]
    fewest = min(curve.clients_per_round for curve in curves)
    if rate.schedule != "constant":
        # At a rate that never falls, the noise of fewer clients may end the descent above the
        # target, which pilots with more of them do not show.
        fewest = max(1, math.ceil(fewest / 2))
    return fewest, min(steps), 2 * max(steps)


def prior_of(rate: LearningRate) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of every parameter before any pilot."""
    return HARMONIC_PRIOR if rate.schedule == "harmonic" else PRIOR


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
    first = next((loss for loss in curve.losses if loss is not None), None)
    if first is None or first <= target_loss:
        return None
    # The first rounds are of another kind: losses jump while the rate is high.
    upper = min(1.1 * math.sqrt(first * target_loss), 0.93 * first)
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
