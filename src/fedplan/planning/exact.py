"""The certified integer optimum of the expected cost with exact stragglers.

Outer approximation. At a fixed E the devices are ranked once (an *anchor*), and the expected
slowest client is known exactly at some K (*knots*). Two facts turn that into a lower bound of the
cost at every (K, E), in closed form:

- the round time is convex in E, so the anchor's line step_s * E + comm_s lies below it at all E;
- the round time is concave in K, so the chord between two knots lies below it at all K between.

Stretches of K are bounded at once, by the time at their low end and the drift at their high end:
time rises with K and drift falls. The smallest lower bound says what to look at next: its stretch
is cut, its E becomes an anchor, or its K a knot. When every other bound exceeds the cost of a point
known exactly, that point is the optimum and nothing is left to prove. Limits on time, energy and
rounds are functions of the same shape, so the same bounds rule out what cannot meet them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from fedplan.convergence.bound import Bound, drift
from fedplan.core.constraints import LIMIT_SLACK
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.problem import Problem
from fedplan.participation.rankings import step_and_comm_s, with_cache
from fedplan.planning.steps import (
    best_integer_steps,
    cost_line,
    optimal_steps,
    steps_range,
    steps_within,
    training_cost,
)
from fedplan.planning.surface import STEPS_PER_DECADE, ladder

PRECISION = 1e-12  # relative; costs closer than this are equal in floating point
_KNOT_WORK = 1 << 18  # devices weighed to know every K exactly; above it knots are spaced out
# Their spacing then is by 15%: chords are within about 0.2% of the time.
_KNOTS_PER_DECADE = 1.0 / math.log10(1.15)
_KNOTS_PER_REFINEMENT = 5
_FIRST_STRETCHES = 512
_PIECES = 4  # into which a stretch is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The (K, E) of the least `value`, and its proof: no setting is below `lower_bound`."""

    setting: tuple[int, int]
    value: float
    lower_bound: float


def minimise(problem: Problem, bound: Bound) -> Optimum | None:
    """The cheapest integer (K, E); None if none meets the constraints.

    Ranking the devices at the E that are looked at is most of the work: with a cache of
    it (`rankings.with_cache`) the next problem is solved sooner.

    >>> problem = Problem(fleet=Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0))
    >>> best = minimise(problem, Bound(a0=1000.0, b0=1.0))
    >>> best.setting, best.value == best.lower_bound
    ((1, 12), True)
    """
    search = _Search(problem, bound)
    found = search.run()
    if found is None:
        return None
    cost, k, e = found
    proved = cost if search.discarded >= cost * (1 - PRECISION) else search.discarded
    return Optimum(setting=(k, e), value=cost, lower_bound=proved)


@dataclass(slots=True)
class _Anchor:
    """One E with the devices ranked at it: exact at its knots, a lower bound everywhere else."""

    fleet: Fleet
    local_steps: int
    knots: IntArray
    lines: FloatArray = field(init=False)  # seconds of a step, and of communication, at the knots

    def __post_init__(self) -> None:
        self.lines = step_and_comm_s(self.fleet, self.knots, self.local_steps)

    def add_knots(self, ks: IntArray) -> None:
        self.knots = np.union1d(self.knots, ks)
        self.lines = step_and_comm_s(self.fleet, self.knots, self.local_steps)


class _Search:
    """The search."""

    def __init__(self, problem: Problem, bound: Bound) -> None:
        fleet, constraints = with_cache(problem.fleet), problem.limits
        self.problem, self.fleet, self.bound = problem, fleet, bound
        self.steps_range = steps_range(constraints, bound)
        # Stretches of K still in play, by rising K: low[i] to high[i].
        lowest, highest = constraints.clients_range(len(fleet))
        self.low, self.high = _cut(np.array([lowest]), np.array([highest]), _FIRST_STRETCHES)
        self.drift = drift(bound, self.high, len(fleet))
        self.ladder = ladder(lowest, highest, _KNOTS_PER_DECADE)
        self.anchors: list[_Anchor] = []  # by rising E
        # One row per anchor, one column per stretch: lower bound of the cost, and the E it is at.
        self.bounds = np.empty((0, self.low.size))
        self.steps = np.empty((0, self.low.size), dtype=np.int64)
        self.best: tuple[float, int, int] | None = None
        self.discarded = math.inf  # the least lower bound of what was left out

    def run(self) -> tuple[float, int, int] | None:
        """Cost, K and E of the optimum."""
        self._add_anchor(self._first_guess())
        while True:
            self._prune()
            if not self.low.size:
                break
            row, column = np.unravel_index(np.argmin(self.bounds), self.bounds.shape)
            # What keeps this stretch in play: its width, or what is not known at its low end?
            low = int(self.low[column])
            end = drift(self.bound, self.low[[column]], len(self.fleet))
            (cost,), (steps,) = self._bounds_of(int(row), self.low[[column]], end)
            if cost >= self._ceiling():
                self._cut_stretches()
            elif steps != self.anchors[row].local_steps:
                self._add_anchor(int(steps))
            else:
                self._add_knots(int(row), low, int(self.high[column]))
        return self.best

    def _first_guess(self) -> int:
        """The best E for the mean device at a middling K."""
        k = float(np.sqrt(float(self.low[0]) * float(self.high[-1])))
        means = self.fleet.mean("step_time_s"), self.fleet.mean("comm_time_s")
        line = cost_line(self.problem, k, *means)
        guess = optimal_steps(*line, self.bound.a0, self.drift[self.drift.size // 2])
        # At an E where other searches begin, too, the devices may be ranked already.
        known = ladder(*self.steps_range, STEPS_PER_DECADE)
        return int(known[np.argmin(np.abs(np.log(known / np.clip(guess, *self.steps_range))))])

    def _add_anchor(self, local_steps: int) -> None:
        knots = self._knots()
        anchor = _Anchor(self.fleet, local_steps, knots)
        row = sum(other.local_steps < local_steps for other in self.anchors)
        self.anchors.insert(row, anchor)
        self.bounds = np.insert(self.bounds, row, 0, axis=0)  # filled in below
        self.steps = np.insert(self.steps, row, 0, axis=0)
        self._record_exact(anchor, knots)
        # The neighbours' stretch of E has shrunk too.
        for changed in range(max(row - 1, 0), min(row + 2, len(self.anchors))):
            self._bound(changed)

    def _knots(self) -> IntArray:
        single = np.array_equal(self.low, self.high)
        if single and self.low.size * self.fleet.count.size <= _KNOT_WORK:
            return self.low
        first = np.searchsorted(self.ladder, self.low[0], "right") - 1
        last = np.searchsorted(self.ladder, self.high[-1], "left")
        return self.ladder[first : last + 1]

    def _cut_stretches(self) -> None:
        """Cut the stretches that hold the better half of what could still be gained."""
        bounds = self.bounds.min(axis=0)
        ceiling = bounds.min() * 1.01 if self.best is None else self.best[0]
        chosen = bounds <= (bounds.min() + ceiling) / 2
        pieces = _cut(self.low[chosen], self.high[chosen], _PIECES)
        self.low = np.concatenate([self.low[~chosen], pieces[0]])
        self.high = np.concatenate([self.high[~chosen], pieces[1]])
        rising = np.argsort(self.low)
        self.low, self.high = self.low[rising], self.high[rising]
        self.drift = drift(self.bound, self.high, len(self.fleet))
        self.bounds = np.empty((len(self.anchors), self.low.size))
        self.steps = np.empty(self.bounds.shape, dtype=np.int64)
        for row in range(len(self.anchors)):
            self._bound(row)

    def _add_knots(self, row: int, *ks: int) -> None:
        anchor = self.anchors[row]
        spread = np.linspace(0, self.low.size - 1, _KNOTS_PER_REFINEMENT).astype(np.int64)
        knots = np.union1d(self.low[spread], ks)
        anchor.add_knots(knots)
        self._record_exact(anchor, knots)
        self._bound(row)

    def _limited_lines(
        self, ks: IntArray, step_s: FloatArray, comm_s: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray, float]]:
        """Each limited total: its amount per step and per round, and its limit."""
        limits, scale = self.problem.limits, 1 + LIMIT_SLACK
        if limits.deadline_s is not None:
            yield step_s, comm_s, limits.deadline_s * scale
        if limits.energy_budget_j is not None:
            clients, mean = ks.astype(np.float64), self.fleet.mean
            joules = clients * mean("step_energy_j"), clients * mean("comm_energy_j")
            yield *joules, limits.energy_budget_j * scale
        if limits.max_rounds is not None:
            yield np.zeros(ks.size), np.ones(ks.size), limits.max_rounds * scale

    def _bound(self, row: int) -> None:
        """Lower bound of the cost of every stretch of K over this anchor's stretch of E."""
        self.bounds[row], self.steps[row] = self._bounds_of(row, self.low, self.drift)

    def _bounds_of(self, row: int, ks: IntArray, drifts: FloatArray) -> tuple[FloatArray, IntArray]:
        """The same with the times of these K and these drifts, and the E it is at."""
        a0, anchor = self.bound.a0, self.anchors[row]
        first, last = self._stretch(row)
        low, high = np.full(ks.size, first), np.full(ks.size, last)
        step_s, comm_s = (np.interp(ks, anchor.knots, line) for line in anchor.lines)
        per_step, per_round = cost_line(self.problem, ks, step_s, comm_s)
        for step, round_, limit in self._limited_lines(ks, step_s, comm_s):
            fit_low, fit_high = steps_within(step, round_, a0, drifts, limit, first, last)
            low, high = np.maximum(low, fit_low), np.minimum(high, fit_high)
        possible = low <= high
        low, high = np.where(possible, low, first), np.where(possible, high, first)
        steps = best_integer_steps(per_step, per_round, a0, drifts, low, high)
        cost = training_cost(per_step, per_round, a0, drifts, steps)
        return np.where(possible, cost, np.inf), steps

    def _stretch(self, row: int) -> tuple[int, int]:
        """The integers E nearest to this anchor, in ratio."""

        def between(left: int) -> int:
            lower, upper = self.anchors[left].local_steps, self.anchors[left + 1].local_steps
            return int(np.sqrt(lower * upper))

        lowest, highest = self.steps_range
        first = lowest if row == 0 else between(row - 1) + 1
        last = highest if row == len(self.anchors) - 1 else between(row)
        return first, last

    def _record_exact(self, anchor: _Anchor, ks: IntArray) -> None:
        """Keep the cheapest point known exactly that meets every limit."""
        a0, n = self.bound.a0, len(self.fleet)
        where = np.searchsorted(anchor.knots, ks)
        spread = drift(self.bound, ks, n)
        known = ks, *anchor.lines[:, where]
        cost = training_cost(*cost_line(self.problem, *known), a0, spread, anchor.local_steps)
        for per_step, per_round, limit in self._limited_lines(*known):
            total = training_cost(per_step, per_round, a0, spread, anchor.local_steps)
            cost = np.where(total <= limit, cost, np.inf)
        position = int(np.argmin(cost))
        found = (float(cost[position]), int(ks[position]), anchor.local_steps)
        if np.isfinite(found[0]) and (self.best is None or found < self.best):
            self.best = found

    def _ceiling(self) -> float:
        """The cost below which a point is of interest."""
        return np.inf if self.best is None else self.best[0] * (1 - PRECISION)

    def _prune(self) -> None:
        """Drop every stretch of K that cannot beat the best known point."""
        least = self.bounds.min(axis=0)
        keep = least < self._ceiling()
        if not keep.all():
            self.discarded = min(self.discarded, float(least[~keep].min()))
            self.low, self.high, self.drift = self.low[keep], self.high[keep], self.drift[keep]
            self.bounds, self.steps = self.bounds[:, keep], self.steps[:, keep]


def _cut(low: IntArray, high: IntArray, pieces: int) -> tuple[IntArray, IntArray]:
    """Cut each stretch of integers into at most `pieces`, in ratio; single integers stay whole."""
    share = np.arange(pieces + 1) / pieces
    start, end = low[:, np.newaxis].astype(np.float64), (high[:, np.newaxis] + 1).astype(np.float64)
    edges = np.rint(start * (end / start) ** share).astype(np.int64)
    whole = edges[:, 1:] > edges[:, :-1]
    return edges[:, :-1][whole], edges[:, 1:][whole] - 1
