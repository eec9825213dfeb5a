"""Robust choice: the (K, E) with the smallest regret over a set of plausible bounds.

The regret of (K, E) under one bound is what it costs, relatively, above the best under that bound
among the settings that meet the limits (under the share of bounds asked for). Cost is linear in
(a0, b0, c0) and the optimum is concave in it, so regret is quasi-convex: its worst case over the
convex hull of the given bounds is its worst case over the bounds themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedplan.convergence.bound import Bound, drift
from fedplan.core.constraints import TOTALS
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.participation import uniform
from fedplan.participation.rankings import round_times_s, step_and_comm_s, with_cache
from fedplan.participation.uniform_sampling import round_energy_j
from fedplan.planning.exact import Optimum, minimise
from fedplan.planning.predict import price_setting
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import (
    STEPS_PER_DECADE,
    affordable_lattice,
    between_neighbours,
    fits_whole,
    ladder,
    lattice,
)

_FINER_STEPS = 8  # of E between two neighbours: each ranks the fleet
_SKETCHED = 128  # of K and of E, where times are not exact but bounded from below


def upper_quantile(values: FloatArray, quantile: float) -> FloatArray:
    """The smallest value that at least a share `quantile` of the first axis does not exceed."""
    rank = max(int(np.ceil(quantile * values.shape[0] - 1e-9)) - 1, 0)
    return np.asarray(np.partition(values, rank, axis=0)[rank])


@dataclass(frozen=True, slots=True)
class Case:
    """A problem with the bounds to be robust over, of which a share `quantile` counts."""

    problem: Problem
    bounds: Sequence[Bound]
    quantile: float
    ranges: tuple[tuple[int, int], tuple[int, int]]  # of K, and of E

    @classmethod
    def of(cls, problem: Problem, bounds: Sequence[Bound], quantile: float) -> Case:
        """The case, with a fleet that is ranked once at each E."""
        fleet, limits = with_cache(problem.fleet), problem.limits
        ranges = limits.clients_range(len(fleet)), steps_range(limits, *bounds)
        return cls(replace(problem, fleet=fleet), bounds, quantile, ranges)

    def rounds(self, ks: IntArray, es: IntArray) -> FloatArray:
        """Rounds needed; bound x K x E."""
        a0 = np.array([bound.a0 for bound in self.bounds])[:, np.newaxis, np.newaxis]
        num_clients = len(self.problem.fleet)
        drifts = np.stack([drift(bound, ks, num_clients) for bound in self.bounds])
        return np.asarray(a0 / es + drifts[:, :, np.newaxis] * es)

    def cost_of_round(self, ks: IntArray, es: IntArray, seconds: FloatArray) -> FloatArray:
        """What a round of this many seconds costs; K x E."""
        k = ks[:, np.newaxis]
        joules = round_energy_j(self.problem.fleet, k, es)
        return self.problem.objective.of_round(seconds, joules, k)

    def table(self, ks: IntArray, es: IntArray) -> Table:
        """Exact costs of a lattice."""
        return Table(self, ks, es, round_times_s(self.problem.fleet, ks, es))


class Table:
    """Costs of a lattice of (K, E) under every bound, by the seconds of its rounds."""

    def __init__(self, case: Case, ks: IntArray, es: IntArray, seconds: FloatArray) -> None:
        self.ks, self.es, self._quantile = ks, es, case.quantile
        rounds = case.rounds(ks, es)
        # Infinite where the limits fail too often; bound x K x E.
        self.costs = case.cost_of_round(ks, es, seconds) * rounds
        limits = case.problem.limits
        if limits.limits_totals:
            joules = round_energy_j(case.problem.fleet, ks[:, np.newaxis], es)
            met = limits.met(seconds * rounds, joules * rounds, rounds)
            self.costs[:, met.mean(axis=0) < case.quantile - 1e-12] = np.inf

    def lowest_costs(self) -> FloatArray:
        """The lowest cost under each bound, infinite if nothing meets the limits."""
        return np.asarray(self.costs.min(axis=(1, 2)))

    def regrets(self, optima: FloatArray) -> FloatArray:
        """The quantile over the bounds of each (K, E)'s regret; K x E."""
        return upper_quantile(self.costs / optima[:, None, None] - 1.0, self._quantile)


class Sketch:
    """Lower bounds of round times at any (K, E), from the slowest clients on a lattice.

    The time of a round is convex in E, so it lies above the lines of the lattice's E next to it,
    and concave in K, so these lines may be taken from chords. On the lattice it is exact.
    """

    def __init__(self, case: Case, ks: IntArray, es: IntArray) -> None:
        self.case, self.ks, self.es = case, ks, es
        # Seconds of a step and of communication of the slowest; 2 x E x K.
        fleet = case.problem.fleet
        self.lines = np.stack([step_and_comm_s(fleet, ks, e) for e in es.tolist()], axis=1)

    def table(self, ks: IntArray, es: IntArray) -> Table:
        """Lower bounds of the costs of another lattice."""
        return Table(self.case, ks, es, self.seconds_at_least(ks, es))

    def seconds_at_least(self, ks: IntArray, es: IntArray) -> FloatArray:
        """K x E."""
        chords = np.array([[np.interp(ks, self.ks, at) for at in line] for line in self.lines])
        above = np.minimum(np.searchsorted(self.es, es), self.es.size - 1)
        step_s, comm_s = chords[:, [above, np.maximum(above - 1, 0)]]
        return np.asarray((step_s * es[:, np.newaxis] + comm_s).max(axis=0).T)

    def regret_at_least(self, ks: IntArray, es: IntArray, optima: FloatArray) -> float:
        """A lower bound of the regret of every (K, E) from the first to the last K and E.

        Cells cover all of them. From (K1, E1) to (K2, E2) a round costs least at K1, cost / E
        falls with E, cost * E rises with E, and drift falls with K: that bounds both terms.
        """
        case = self.case
        last_k, last_e = (np.append(first[1:] - 1, first[-1]) for first in (ks, es))
        falling = case.cost_of_round(ks, last_e, self.seconds_at_least(ks, last_e)) / last_e
        rising = case.cost_of_round(ks, es, self.seconds_at_least(ks, es)) * es
        drifts = [drift(bound, last_k, len(case.problem.fleet)) for bound in case.bounds]
        costs = [
            bound.a0 * falling + spread[:, np.newaxis] * rising
            for bound, spread in zip(case.bounds, drifts, strict=True)
        ]
        ratios = np.stack(costs) / optima[:, None, None]
        return max(0.0, float(upper_quantile(ratios, case.quantile).min()) - 1.0)


def minimise_regret(
    problem: Problem, bounds: Sequence[Bound], *, quantile: float = 1.0
) -> Optimum | None:
    """The (K, E) whose `quantile` of regrets over `bounds` is smallest; 1 is the worst case.

    Limits must hold under at least that share of the bounds; None if no (K, E) does that.
    Up to some thousand devices every (K, E) is looked at; above, lattices that close in on the
    best, and `lower_bound` says how much they can have missed.
    """
    case = Case.of(problem, bounds, quantile)
    if not fits_whole(case.problem.fleet, *case.ranges):
        return _minimise_on_lattices(case)
    ks, es = (np.arange(low, high + 1) for low, high in case.ranges)
    table = case.table(ks, es)
    optima = table.lowest_costs()
    if not np.isfinite(optima).all():
        return None
    regret, setting = _smallest(ks, es, table.regrets(optima))
    return Optimum(setting=setting, value=regret, lower_bound=regret)


def _minimise_on_lattices(case: Case) -> Optimum | None:
    k_range, e_range = case.ranges
    fleet, limited = case.problem.fleet, case.problem.limits.limits_totals
    # The optimum under each bound on its own, and what every bound allows.
    likely = (*case.bounds, _hardest(case.bounds)) if limited else case.bounds
    solved = [minimise(case.problem, bound) for bound in likely]
    size = affordable_lattice(fleet.count.size)
    ks, es = lattice(*k_range, size), ladder(*e_range, STEPS_PER_DECADE)
    if limited:
        # What meets narrow limits may lie between lattice points: add where it is best.
        own = [optimum.setting for optimum in solved if optimum is not None]
        ks = np.union1d(ks, [k for k, _ in own]).astype(np.int64)
        es = np.union1d(es, [e for _, e in own]).astype(np.int64)
    sketch = Sketch(case, ks, es)
    optima = sketch.table(ks, es).lowest_costs()
    if not np.isfinite(optima).all():
        return None
    cells = lattice(*k_range, _SKETCHED), lattice(*e_range, _SKETCHED)
    found = []
    if limited:
        near = _near_optima(sketch, *cells)
        optima = np.minimum(optima, near.lowest_costs())
        found.append(_smallest(near.ks, near.es, near.regrets(optima)))
    else:  # a lattice would overstate them a little
        optima = np.array([optimum.value for optimum in solved if optimum is not None])
    lower_bound = sketch.regret_at_least(*cells, optima)
    _, best = _close_in(*cells, _SKETCHED, lambda k, e: sketch.table(k, e).regrets(optima))
    ks, es = (
        between_neighbours(np.union1d(points, at), int(np.searchsorted(points, at)), number)
        for points, at, number in zip(cells, best, (size, _FINER_STEPS), strict=True)
    )
    found.append(_close_in(ks, es, size, lambda k, e: case.table(k, e).regrets(optima)))
    regret, setting = min(found)
    return Optimum(setting=setting, value=regret, lower_bound=min(regret, lower_bound))


def _near_optima(sketch: Sketch, ks: IntArray, es: IntArray) -> Table:
    """Exact costs near where each bound has its lowest within the limits, by the sketch.

    A sketch takes rounds to be a little too short, so K on either side are added.
    """
    found_k, found_e = [], []
    for bound in range(len(sketch.case.bounds)):

        def costs(ks: IntArray, es: IntArray, bound: int = bound) -> FloatArray:
            return np.asarray(sketch.table(ks, es).costs[bound])

        _, (k, e) = _close_in(ks, es, _SKETCHED, costs)
        found_k += [k - k // 100 - 1, k, k + k // 100 + 1]
        found_e.append(e)
    return sketch.case.table(np.unique(np.clip(found_k, ks[0], ks[-1])), np.unique(found_e))


def least_totals(
    problem: Problem, bounds: Sequence[Bound], *, quantile: float = 1.0
) -> dict[str, Prediction]:
    """Where each limited total is least, by the worst of this share of the bounds.

    For a large fleet it is searched for on lattices, so a little less may be attainable.
    """
    case = Case.of(problem, bounds, quantile)
    problem, (k_range, e_range) = case.problem, case.ranges
    whole = fits_whole(problem.fleet, *case.ranges)
    size = affordable_lattice(problem.fleet.count.size) * (4 if whole else 1)
    first_es = lattice(*e_range, size) if whole else ladder(*e_range, STEPS_PER_DECADE)
    least = {}
    for name in TOTALS:
        if getattr(problem.limits, name) is None:
            continue

        def total(ks: IntArray, es: IntArray, name: str = name) -> FloatArray:
            needed = upper_quantile(case.rounds(ks, es), quantile)
            return needed * _of_round(name, problem.fleet, ks, es)

        _, (k, e) = _close_in(lattice(*k_range, size), first_es, size, total)
        rounds = case.rounds(np.array([k]), np.array([e]))
        worst = bounds[int(np.argmin(np.abs(rounds - upper_quantile(rounds, quantile))))]
        least[name] = price_setting(problem, worst, uniform(k, e))
    return least


def _close_in(
    ks: IntArray, es: IntArray, size: int, values: Callable[[IntArray, IntArray], FloatArray]
) -> tuple[float, tuple[int, int]]:
    """The smallest of `values`, K x E, and its (K, E), on lattices ever finer around the best."""
    while True:
        least, (k, e) = _smallest(ks, es, values(ks, es))
        if ks.size <= 3 and es.size <= 3:
            return least, (k, e)
        ks = between_neighbours(ks, int(np.searchsorted(ks, k)), size)
        es = between_neighbours(es, int(np.searchsorted(es, e)), _FINER_STEPS)


def _smallest(ks: IntArray, es: IntArray, values: FloatArray) -> tuple[float, tuple[int, int]]:
    """The smallest of these values, K x E, and its (K, E)."""
    row, column = np.unravel_index(np.argmin(values), values.shape)
    return float(values[row, column]), (int(ks[row]), int(es[column]))


def _of_round(total: str, fleet: Fleet, ks: IntArray, es: IntArray) -> FloatArray | float:
    """What a round adds to a limited total; K x E."""
    if total == "deadline_s":
        return round_times_s(fleet, ks, es)
    return round_energy_j(fleet, ks[:, np.newaxis], es) if total == "energy_budget_j" else 1.0


def _hardest(bounds: Sequence[Bound]) -> Bound:
    """A bound that needs at least as many rounds as any of these: what it allows, all allow."""
    return Bound(
        a0=max(bound.a0 for bound in bounds),
        b0=max(bound.b0 for bound in bounds),
        c0=max(bound.c0 for bound in bounds),
    )
