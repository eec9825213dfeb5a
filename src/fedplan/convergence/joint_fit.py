"""The joint fit: non-negative least squares over all pilots, and its profile likelihood."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy  # its parts load when they are used

from fedplan.convergence.bound import sampling_variance
from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import FloatArray

Interval = tuple[float, float]

CONFIDENCE = 0.9
# The relative error of a one-seed pilot, assumed with the weight of two pilots.
PRIOR_ERROR, PRIOR_WEIGHT = 0.1, 2.0
_SINGULAR = 1e8  # condition number past which columns are the same to rounding
_OPEN_ENDED = 1e12  # a coefficient still plausible this far above its estimate has no upper end


class JointFit:
    """a0, b0 and c0 by least squares on relative errors, none of them negative.

    Where the pilots cannot support three coefficients (`full_rank` is false) the paper's tie
    c0 = b0 is used for the estimate itself; intervals still allow c0 its freedom.
    """

    def __init__(self, pilots: Sequence[Pilot], num_clients: int) -> None:
        steps = np.array([p.local_steps for p in pilots], dtype=np.float64)
        clients = np.array([p.clients_per_round for p in pilots])
        spread = sampling_variance(clients, num_clients)
        self.design = np.stack([np.ones(steps.size), steps**2, steps**2 * spread], axis=1)
        self.iterations = np.array([p.iterations for p in pilots], dtype=np.float64)
        self._weigh(self.iterations)
        for _ in range(5):  # errors relative to the fit, not to the noisy pilot
            fitted = self.design @ self._solve()
            if not (fitted > 0).all():
                break
            self._weigh(fitted)
        self.coefficients = self._solve()
        self._free, self.misfit = _nnls(self.columns, self.goal)
        parameters = 3 if self.full_rank else 2
        freedom = PRIOR_WEIGHT + max(0, len(pilots) - parameters)
        variance = (PRIOR_WEIGHT * PRIOR_ERROR**2 + self.misfit) / freedom
        self.relative_error = math.sqrt(variance)
        quantile = float(scipy.special.fdtri(1, freedom, CONFIDENCE))
        self._threshold = self.misfit + variance * quantile

    def _weigh(self, scale: FloatArray) -> None:
        self.columns, self.goal = self.design / scale[:, np.newaxis], self.iterations / scale

    def _tied(self) -> FloatArray:
        return np.stack([self.columns[:, 0], self.columns[:, 1] + self.columns[:, 2]], axis=1)

    def _solve(self) -> FloatArray:
        if self.full_rank:
            free = _nnls(self.columns, self.goal)[0]
            if free[:2].any():  # a bound without a0 and b0 would need no round at K = N
                return free
        return _nnls(self._tied(), self.goal)[0][[0, 1, 1]]

    @property
    def condition(self) -> float:
        """Condition number of the design with its columns scaled alike."""
        return _condition(self.columns)

    @property
    def full_rank(self) -> bool:
        """Whether the pilots support a0, b0 and c0 at all."""
        return self.condition < _SINGULAR

    @property
    def identified(self) -> bool:
        """Whether the pilots support at least a0 and b0."""
        return self.full_rank or _condition(self._tied()) < _SINGULAR

    def interval(self, which: int) -> tuple[Interval, list[FloatArray]]:
        """Range of one coefficient at the confidence level, and the fits at its ends."""
        column, others = self.columns[:, which], np.delete(self.columns, which, axis=1)

        def profile(value: float) -> tuple[FloatArray, float]:
            rest, misfit = _nnls(others, self.goal - value * column)
            return np.insert(rest, which, value), misfit

        size = float(np.linalg.norm(column))
        return self._ends(profile, float(self._free[which]), unit=1.0 / size if size else 1.0)

    def ratio_interval(self) -> tuple[Interval, list[FloatArray]]:
        """Range of a0 / b0 at the confidence level, and the fits at its ends."""

        def profile(ratio: float) -> tuple[FloatArray, float]:
            both = ratio * self.columns[:, 0] + self.columns[:, 1]
            (b0, c0), misfit = _nnls(np.stack([both, self.columns[:, 2]], axis=1), self.goal)
            return np.array([ratio * b0, b0, c0]), misfit

        a0, b0, _ = self._free
        unit = float(np.mean(self.design[:, 1]))
        return self._ends(profile, a0 / b0 if b0 else _OPEN_ENDED * unit, unit)

    def _ends(
        self, profile: Callable[[float], tuple[FloatArray, float]], centre: float, unit: float
    ) -> tuple[Interval, list[FloatArray]]:
        def excess(value: float) -> float:
            return profile(value)[1] - self._threshold

        low = 0.0 if excess(0.0) <= 0 else float(scipy.optimize.brentq(excess, 0.0, centre))
        beyond = max(centre, unit)
        while excess(beyond) <= 0:
            beyond *= 4.0
            if beyond > _OPEN_ENDED * max(centre, unit):
                return (low, math.inf), [profile(low)[0]]
        high = float(scipy.optimize.brentq(excess, centre, beyond))
        return (low, high), [profile(low)[0], profile(high)[0]]


def suggest_pilot(pilots: Sequence[Pilot], num_clients: int) -> tuple[int, int]:
    """The (K, E) that best tells a0, b0 and c0 apart together with the pilots there are.

    It is the candidate with the largest determinant of the information matrix (D-optimal), K from
    2 to N and E within what was piloted already, or half and twice that where E was never varied.
    """
    steps = np.array([p.local_steps for p in pilots], dtype=np.float64)
    k_grid = np.unique(np.rint(np.geomspace(min(2, num_clients), num_clients, 12)))
    widen = 1.0 if np.ptp(steps) else 2.0
    first, last = max(1.0, steps.min() / widen), steps.max() * widen
    e_grid = np.unique(np.rint(np.geomspace(first, last, 12)))
    fit = JointFit(pilots, num_clients)
    if fit.identified:
        reference = fit.coefficients
    else:
        reference = np.array(
            [float(fit.iterations.mean()), fit.iterations.mean() / np.mean(steps**2), 0]
        )
    k, e = (axis.ravel() for axis in np.meshgrid(k_grid, e_grid, indexing="ij"))
    rows = np.stack([np.ones(e.size), e**2, e**2 * sampling_variance(k, num_clients)], axis=1)
    rows /= np.maximum(rows @ reference, 1e-300)[:, np.newaxis]
    information = fit.columns.T @ fit.columns
    information += 1e-9 * np.diag(np.diag(information) + 1e-300)
    _, gained = np.linalg.slogdet(information + rows[:, :, np.newaxis] * rows[:, np.newaxis, :])
    best = int(np.argmax(gained))
    return int(k[best]), int(e[best])


def _condition(columns: FloatArray) -> float:
    norms = np.linalg.norm(columns, axis=0)
    if columns.shape[0] < columns.shape[1] or not norms.all():
        return math.inf
    return float(np.linalg.cond(columns / norms))


def _nnls(columns: FloatArray, goal: FloatArray) -> tuple[FloatArray, float]:
    """Non-negative least squares, columns scaled alike; solution and squared misfit."""
    norms = np.linalg.norm(columns, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    solution, misfit = scipy.optimize.nnls(columns / norms, goal)
    return solution / norms, float(misfit) ** 2
