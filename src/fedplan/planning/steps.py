"""Local steps: at a fixed K, the cost is a function of E, minimised in closed form.

A round costs `per_step * E + per_round`, be it seconds, joules, money or simply one round, and
a0 / E + E drift rounds are needed, so training costs

    f(E) = (per_step * E + per_round) * (a0 / E + drift * E),

convex in E. It is minimised where 2 (per_step / per_round) E^3 + E^2 = a0 / drift: the paper's
Eq. 22 with the coefficient its own derivative gives (the printed one is wrong).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import MAX_STEPS, Constraints
from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.problem import Problem
from fedplan.errors import InputError


def cost_line(
    problem: Problem, clients: ArrayLike, step_s: ArrayLike, comm_s: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """What a local step and a round of K clients cost, given the slowest client's seconds.

    >>> from fedplan import Fleet, Objective
    >>> fleet = Fleet(step_time_s=1.0, comm_time_s=2.0, step_energy_j=0.5, comm_energy_j=0.1)
    >>> problem = Problem(fleet=fleet, objective=Objective(per_second=1.0, per_joule=10.0))
    >>> [float(each) for each in cost_line(problem, 2, 1.0, 2.0)]
    [11.0, 4.0]
    """
    fleet, rates = problem.fleet, problem.objective
    k = np.asarray(clients)
    of_step = rates.per_joule * fleet.mean("step_energy_j")
    of_round = rates.per_joule * fleet.mean("comm_energy_j") + rates.per_client_round
    per_step = rates.per_second * np.asarray(step_s) + k * of_step
    return per_step, rates.per_second * np.asarray(comm_s) + k * of_round


def training_cost(
    per_step: ArrayLike, per_round: ArrayLike, a0: float, drift: ArrayLike, local_steps: ArrayLike
) -> FloatArray:
    """f(E), in the unit of `per_round`, for a gap of 1.

    >>> float(training_cost(0.1, 1.0, 100.0, 1.0, 10))
    40.0
    """
    steps = np.asarray(local_steps, dtype=np.float64)
    return np.asarray(
        (np.asarray(per_step, dtype=np.float64) * steps + np.asarray(per_round, dtype=np.float64))
        * (a0 / steps + np.asarray(drift, dtype=np.float64) * steps)
    )


def optimal_steps(
    per_step: ArrayLike, per_round: ArrayLike, a0: float, drift: ArrayLike
) -> FloatArray:
    """The real E > 0 that minimises f, by Cardano's formula; arrays broadcast.

    With E = sqrt(a0 / drift) / z the cubic becomes z^3 - z = kappa, which loses no digits
    however unequal the costs are. Limits: 0 where a round itself is free or a0 = 0, infinity
    where drift = 0, and the E of fewest rounds where only rounds cost.

    >>> optimal_steps(0.1, 2.0, 3140.0, 1.0).round(1).tolist()
    28.5
    """
    p, q, b = (np.asarray(v, dtype=np.float64) for v in (per_step, per_round, drift))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = np.sqrt(a0 / b)  # E of fewest rounds
        kappa = np.where(p == 0, 0.0, 2.0 * p * reach / q)
        half = kappa / 2.0
        low = half * np.sqrt(27.0) <= 1.0
        angle = np.arccos(np.where(low, half * np.sqrt(27.0), 1.0))
        c = np.cbrt(half + np.sqrt(np.maximum(half * half - 1.0 / 27.0, 0.0)))
        z = np.where(low, 2.0 / np.sqrt(3.0) * np.cos(angle / 3.0), c + 1.0 / (3.0 * c))
        best = reach / z
    # sqrt(a0/0): drift alone would stop E from growing, and there is none.
    best = np.where((b == 0) & (a0 > 0), np.where(q > 0, np.inf, 0.0), best)
    return np.asarray(np.where((a0 == 0) | ((q == 0) & (p > 0)), 0.0, best))


def best_integer_steps(
    per_step: ArrayLike,
    per_round: ArrayLike,
    a0: float,
    drift: ArrayLike,
    lowest: IntArray | int,
    highest: IntArray | int,
) -> IntArray:
    """The integer E in [lowest, highest] with the smallest f; by convexity next to the real one."""
    real = optimal_steps(per_step, per_round, a0, drift)
    below = np.clip(np.floor(real), lowest, highest).astype(np.int64)
    above = np.minimum(below + 1, highest)
    better_above = training_cost(per_step, per_round, a0, drift, above) < training_cost(
        per_step, per_round, a0, drift, below
    )
    return np.where(better_above, above, below)


def steps_within(
    per_step: ArrayLike,
    per_round: ArrayLike,
    a0: float,
    drift: ArrayLike,
    limit: float,
    lowest: int,
    highest: int,
) -> tuple[IntArray, IntArray]:
    """First and last integer E in [lowest, highest] with f(E) <= limit; first > last where none.

    f is convex, so the integers below a limit are consecutive and bisection finds both ends.
    """

    def fits(steps: IntArray) -> NDArray[np.bool_]:
        return training_cost(per_step, per_round, a0, drift, steps) <= limit

    middle = best_integer_steps(per_step, per_round, a0, drift, lowest, highest)

    def furthest(end: int) -> IntArray:
        inside = np.where(fits(np.full_like(middle, end)), end, middle)
        outside = np.full_like(middle, end)
        while np.any(np.abs(outside - inside) > 1):
            probe = (inside + outside) // 2
            good = fits(probe)
            inside, outside = np.where(good, probe, inside), np.where(good, outside, probe)
        return inside

    reachable = fits(middle)
    return np.where(reachable, furthest(lowest), 1), np.where(reachable, furthest(highest), 0)


def steps_range(constraints: Constraints, *bounds: Bound) -> tuple[int, int]:
    """Smallest and largest E worth looking at.

    Past sqrt(a0 / b0) rounds, seconds and joules all grow with E at every K, so no optimum and no
    point that meets a limit is lost by stopping there.
    """
    furthest = max(bound.fewest_rounds_steps() for bound in bounds)
    if constraints.max_local_steps is None and furthest > MAX_STEPS:
        raise InputError(
            f"with b0={min(b.b0 for b in bounds):.3g} beside "
            f"a0={max(b.a0 for b in bounds):.3g} more local steps help without a useful end. "
            "Give max_local_steps."
        )
    useful = math.ceil(furthest) if furthest <= MAX_STEPS else MAX_STEPS
    highest = min(constraints.max_local_steps or MAX_STEPS, useful)
    lowest = constraints.min_local_steps or 1
    return lowest, max(lowest, highest)
