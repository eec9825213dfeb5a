"""The time-energy frontier: every (K, E) that nothing else beats on both, and its energy weight."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from fedplan.convergence.bound import Bound, drift
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.notebook import Rows
from fedplan.planning.by_law import plan_by_law
from fedplan.planning.exact import minimise
from fedplan.planning.steps import optimal_steps, steps_range
from fedplan.planning.surface import Surface, affordable_lattice, cost_surface, fits_whole, lattice

_WEIGHTS = 24  # at which the cheapest setting of a law is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A non-dominated (K, E).

    `energy_weight_from` and `energy_weight_to` bound the gammas for which it is the cheapest; both
    are None if it is non-dominated but some other point is cheaper at every gamma.
    K is None if groups take turns; `groups` says how many.
    """

    clients_per_round: int | None
    local_steps: int
    time_s: float
    energy_j: float
    energy_weight_from: float | None
    energy_weight_to: float | None
    groups: int | None = None

    @property
    def pair(self) -> tuple[int, int]:
        """K, or the number of groups, and E."""
        return self.clients_per_round or self.groups or 0, self.local_steps


def compute_frontier(
    fleet: Fleet, bound: Bound, *, target_gap: float = 1.0, constraints: Constraints | None = None
) -> Rows[FrontierPoint]:
    """All non-dominated (K, E) by rising time, so falling energy; exact stragglers.

    Complete for up to a few thousand devices; above that, a lattice of (K, E) is searched.

    >>> fleet = Fleet(step_time_s=[0.1, 0.11, 0.12], comm_time_s=1.0, comm_energy_j=[2.0, 3.0, 1.0])
    >>> for point in compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)):
    ...     print(point.clients_per_round, point.local_steps, round(point.energy_weight_from, 2))
    3 6 0.0
    3 7 0.02
    3 8 0.18
    3 9 0.41
    3 10 0.76
    """
    limits, bound = constraints or Constraints(), bound.at_gap(target_gap)
    grid = _grid(fleet, bound, limits)
    if grid is None:
        return Rows((), FrontierPoint)
    ks, es = grid
    surface = cost_surface(fleet, bound, Objective.weighted(0.0), ks, es)
    return frontier_of(surface, limits)


def frontier_by_law(
    problem: Problem, known: Bound | Estimate | Saturation, law: str, *, target_gap: float = 1.0
) -> tuple[Rows[FrontierPoint], bool]:
    """The frontier of any law, and whether every setting was examined.

    For uniform sampling with a bound, `compute_frontier`; for others, the cheapest settings over
    energy weights from 0 to 1.
    """
    convergence, _, limits = what_is_known(known.at_gap(target_gap), problem.limits)
    if law == "uniform" and isinstance(convergence, Bound):
        fleet = problem.fleet
        points = compute_frontier(fleet, convergence, constraints=limits)
        return points, fits_whole(fleet, *_ranges(fleet, convergence, limits))
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for weight in _weights(problem):
        asked = replace(problem, objective=Objective.weighted(weight))
        best = plan_by_law(asked, convergence, law)
        if best is not None:
            one = best.prediction
            size = one.clients_per_round or len(best.groups)
            found[size, one.local_steps] = one.time_s, one.energy_j
    sizes, steps = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
    totals = np.array(list(found.values())).reshape(-1, 2).T
    return _non_dominated(sizes, steps, *totals, groups=law == "turns"), False


def _weights(problem: Problem) -> list[float]:
    """Energy weights from 0 to 1, close together where a second is worth about its joules."""
    fleet = problem.fleet
    joules = len(fleet) * (fleet.mean("step_energy_j") + fleet.mean("comm_energy_j"))
    if not joules:
        return [0.0]
    balance = (fleet.mean("step_time_s") + fleet.mean("comm_time_s")) / joules
    prices = balance * np.geomspace(1e-2, 1e2, _WEIGHTS - 2)
    return [0.0, *(prices / (1.0 + prices)).tolist(), 1.0]


def frontier_of(surface: Surface, limits: Constraints) -> Rows[FrontierPoint]:
    """The points of a surface that meet the limits and that no other such point beats on both."""
    places = np.nonzero(limits.met(surface.time_s, surface.energy_j, surface.expected_rounds))
    clients, steps = surface.clients_per_round[places[0]], surface.local_steps[places[1]]
    totals = surface.time_s[places], surface.energy_j[places]
    return _non_dominated(clients, steps, *totals, groups=False)


def _ranges(
    fleet: Fleet, bound: Bound, limits: Constraints
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The ranges of K and E that can hold non-dominated settings."""
    low_k, high_k = limits.clients_range(len(fleet))
    low_e, high_e = steps_range(limits, bound)
    if not limits.limits_totals:
        # Time and energy are convex in E, so at each K nothing outside their two minima is
        # non-dominated. The straggler's comm/step ratio lies between the devices' extremes.
        ratios = fleet.comm_time_s / fleet.step_time_s
        spread = drift(bound, np.array([low_k, high_k]), len(fleet))
        energy = optimal_steps(
            fleet.mean("step_energy_j"), fleet.mean("comm_energy_j"), bound.a0, spread
        )
        time = optimal_steps(1.0, np.array([[ratios.min()], [ratios.max()]]), bound.a0, spread)
        both = np.concatenate([energy.ravel(), time.ravel()])
        low_e, high_e = (
            int(np.clip(np.floor(both.min()), low_e, high_e)),
            int(np.clip(np.ceil(min(both.max(), high_e)), low_e, high_e)),
        )
    return (low_k, high_k), (low_e, high_e)


def _grid(fleet: Fleet, bound: Bound, limits: Constraints) -> tuple[IntArray, IntArray] | None:
    """The K and the E to look at; None if nothing meets the limits."""
    (low_k, high_k), (low_e, high_e) = ranges = _ranges(fleet, bound, limits)
    if fits_whole(fleet, *ranges):
        return np.arange(low_k, high_k + 1), np.arange(low_e, high_e + 1)
    size = affordable_lattice(fleet.count.size)
    ks, es = lattice(low_k, high_k, size), lattice(low_e, high_e, size // 2)
    # Both ends of the frontier, so that limits between two lattice points are not missed.
    for weight in (0.0, 1.0):
        asked = Problem(fleet=fleet, objective=Objective.weighted(weight), limits=limits)
        end = minimise(asked, bound)
        if end is None:
            return None
        ks, es = np.union1d(ks, end.setting[0]), np.union1d(es, end.setting[1])
    return ks, es


def _non_dominated(
    sizes: IntArray, steps: IntArray, time_s: FloatArray, energy_j: FloatArray, *, groups: bool
) -> Rows[FrontierPoint]:
    """The non-dominated of these settings by rising time; of equal ones the first.

    sizes : K of each, or its number of `groups`.
    """
    if not time_s.size:
        return Rows((), FrontierPoint)
    # Times that differ by rounding alone are equal, and the lower energy comes first.
    order = np.lexsort((energy_j, np.round(np.log(time_s), 12)))
    best_so_far = np.minimum.accumulate(np.concatenate([[np.inf], energy_j[order][:-1]]))
    kept = order[energy_j[order] < best_so_far * (1 - 1e-12)]
    weights = _energy_weights(time_s[kept], energy_j[kept])
    points = []
    for place, (start, end) in zip(kept.tolist(), weights, strict=True):
        size = int(sizes[place])
        points.append(
            FrontierPoint(
                clients_per_round=None if groups else size,
                local_steps=int(steps[place]),
                time_s=float(time_s[place]),
                energy_j=float(energy_j[place]),
                energy_weight_from=start,
                energy_weight_to=end,
                groups=size if groups else None,
            )
        )
    return Rows(points, FrontierPoint)


def _energy_weights(
    time_s: FloatArray, energy_j: FloatArray
) -> list[tuple[float, float] | tuple[None, None]]:
    """The gammas that select each point: the slopes of the lower convex hull on either side."""
    hull: list[int] = []
    for i in range(time_s.size):
        while len(hull) >= 2 and _turning_weight(time_s, energy_j, hull[-2], hull[-1]) >= (
            _turning_weight(time_s, energy_j, hull[-1], i)
        ):
            hull.pop()
        hull.append(i)
    turns = [_turning_weight(time_s, energy_j, left, right) for left, right in pairwise(hull)]
    ranges: list[tuple[float, float] | tuple[None, None]] = [(None, None)] * time_s.size
    for position, start, end in zip(hull, [0.0, *turns], [*turns, 1.0], strict=True):
        ranges[position] = (start, end)
    return ranges


def _turning_weight(time_s: FloatArray, energy_j: FloatArray, left: int, right: int) -> float:
    """The gamma at which two points cost the same: (1-g) dt = g (-de)."""
    longer, saved = time_s[right] - time_s[left], energy_j[left] - energy_j[right]
    return float(longer / (longer + saved))
