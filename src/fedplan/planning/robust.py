"""Robust choice: the (K, E) with the smallest regret over a set of plausible bounds.

The regret of (K, E) under one bound is what it costs, relatively, above the best under that bound
among the settings that meet the limits (under the share of bounds asked for). Cost is linear in
(a0, b0, c0) and the optimum is concave in it, so regret is quasi-convex: its worst case over the
convex hull of the given bounds is its worst case over the bounds themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import TOTALS, Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.participation.rankings import remembering, round_times_s
from fedplan.participation.uniform import round_energy_j
from fedplan.planning.regret import Case, Sketch, Table, rounds_needed
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import (
    STEPS_A_DECADE,
    affordable_lattice,
    between_neighbours,
    fits_whole,
    lattice,
    steps_ladder,
    upper_quantile,
)

_FINER_STEPS = 8  # of E between two neighbours: each ranks the fleet
_SKETCHED = 128  # of K and of E, where times are not exact but bounded from below
_SKETCHES = 3  # each closer to the best
_NEAR = 0.1  # of the least regret above it


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustOptimum:
    """The choice, its regret, and a regret that no integer (K, E) can go below."""

    clients_per_round: int
    local_steps: int
    regret: float
    lower_bound: float
    quantile: float

    @property
    def setting(self) -> tuple[int, int]:
        """(K, E)."""
        return self.clients_per_round, self.local_steps


def minimise_regret(
    fleet: Fleet,
    bounds: Sequence[Bound],
    objective: Objective,
    constraints: Constraints,
    *,
    target_gap: float = 1.0,
    quantile: float = 1.0,
) -> RobustOptimum | None:
    """The (K, E) whose `quantile` of regrets over `bounds` is smallest; 1 is the worst case.

    Limits must hold under at least that share of the bounds; None where no (K, E) does that.
    Up to some thousand devices every (K, E) is looked at; above, lattices that close in on the
    best, and `lower_bound` says how much they can have missed.
    """
    if fleet.memory is None:
        fleet = remembering(fleet)
    case = Case(fleet, bounds, objective, constraints, target_gap, quantile)
    k_range, e_range = constraints.clients_range(len(fleet)), steps_range(constraints, *bounds)
    if fits_whole(fleet, k_range, e_range):
        ks, es = np.arange(k_range[0], k_range[1] + 1), np.arange(e_range[0], e_range[1] + 1)
        table = Table(case, ks, es, round_times_s(fleet, ks, es))
        optima = table.optima()
        if optima is None:
            return None
        regret, setting = table.least_regret(optima)
        return _optimum(regret, setting, regret, quantile)
    return _minimise_on_lattices(case, k_range, e_range)


def _minimise_on_lattices(
    case: Case, k_range: tuple[int, int], e_range: tuple[int, int]
) -> RobustOptimum | None:
    fleet, bounds, quantile = case.fleet, case.bounds, case.quantile
    size = affordable_lattice(fleet.count.size)
    ks, es = lattice(*k_range, size), steps_ladder(*e_range, STEPS_A_DECADE)
    if case.constraints.limits_totals:
        # What meets narrow limits may lie between lattice points: add where it is best.
        for bound in (*bounds, _hardest(bounds)):
            if (own := case.solve(bound)) is not None:
                ks, es = np.union1d(ks, own.clients_per_round), np.union1d(es, own.local_steps)
    sketch = Sketch(case, ks, es)
    tables = [Table(case, ks, es, sketch.seconds_at_least(ks, es))]
    optima = tables[0].optima()
    if optima is None:
        return None
    if not case.constraints.limits_totals:
        # The lowest cost under each bound on its own; a lattice would overstate it a little.
        solved = [case.solve(bound) for bound in bounds]
        optima = np.array([optimum.cost for optimum in solved if optimum is not None])
    else:
        ks, es = _around_optima(sketch, k_range, e_range)
        tables.append(Table(case, ks, es, round_times_s(fleet, ks, es)))
        optima = np.minimum(optima, tables[-1].lowest_costs())
    ks, es = lattice(*k_range, _SKETCHED), lattice(*e_range, _SKETCHED)
    lower_bound = sketch.regret_at_least(ks, es, optima)
    for _ in range(_SKETCHES):
        table = Table(case, ks, es, sketch.seconds_at_least(ks, es))
        regrets = table.regrets(optima)
        ks, es = _near_best(ks, regrets.min(axis=1)), _near_best(es, regrets.min(axis=0))
    while True:
        regrets = table.regrets(optima)
        row, column = np.unravel_index(np.argmin(regrets), regrets.shape)
        ks = between_neighbours(table.ks, int(row), size)
        es = between_neighbours(table.es, int(column), _FINER_STEPS)
        if table is tables[-1] and ks.size <= 3 and es.size <= 3:
            break
        table = Table(case, ks, es, round_times_s(fleet, ks, es))
        tables.append(table)
        optima = np.minimum(optima, table.lowest_costs())
    regret, setting = min(table.least_regret(optima) for table in tables)
    return _optimum(regret, setting, min(regret, lower_bound), quantile)


def _around_optima(
    sketch: Sketch, k_range: tuple[int, int], e_range: tuple[int, int]
) -> tuple[IntArray, IntArray]:
    """K and E where each bound has its lowest cost within the limits, as far as a sketch can say.

    A sketch takes rounds for a little shorter than they are, so beside each K there are others.
    """
    case = sketch.case
    ks, es = lattice(*k_range, _SKETCHED), lattice(*e_range, _SKETCHED)
    whole = Table(case, ks, es, sketch.seconds_at_least(ks, es)).cheapest()
    found_k, found_e = [], []
    for bound, (row, column) in enumerate(whole):
        near_k = between_neighbours(ks, row, _SKETCHED)
        near_e = between_neighbours(es, column, _FINER_STEPS)
        near = Table(case, near_k, near_e, sketch.seconds_at_least(near_k, near_e))
        row, column = near.cheapest()[bound]
        k = near_k[row]
        found_k += [k - k // 100 - 1, k, k + k // 100 + 1]
        found_e.append(near_e[column])
    return np.unique(np.clip(found_k, *k_range)), np.unique(found_e)


def _near_best(points: IntArray, regrets: FloatArray) -> IntArray:
    """A finer lattice over all points whose regret is about the least."""
    least = regrets.min()  # of a sketch, so it may be a little below 0
    near = np.flatnonzero(regrets <= least + _NEAR * abs(least))
    first, last = max(near[0] - 1, 0), min(near[-1] + 1, points.size - 1)
    return lattice(int(points[first]), int(points[last]), _SKETCHED)


def _optimum(
    regret: float, setting: tuple[int, int], lower_bound: float, quantile: float
) -> RobustOptimum:
    return RobustOptimum(
        clients_per_round=setting[0],
        local_steps=setting[1],
        regret=regret,
        lower_bound=lower_bound,
        quantile=quantile,
    )


def least_totals(
    fleet: Fleet,
    bounds: Sequence[Bound],
    constraints: Constraints,
    *,
    target_gap: float = 1.0,
    quantile: float = 1.0,
) -> dict[str, tuple[Bound, int, int]]:
    """Where each limited total is least under this share of the bounds.

    One entry a total: the bound that is the worst of that share there, K and E. Looked for on
    lattices that close in on it where the fleet is large: a little less may be attainable there.
    """
    if fleet.memory is None:
        fleet = remembering(fleet)
    k_range, e_range = constraints.clients_range(len(fleet)), steps_range(constraints, *bounds)
    whole = fits_whole(fleet, k_range, e_range)
    size = affordable_lattice(fleet.count.size) * (4 if whole else 1)
    first_es = lattice(*e_range, size) if whole else steps_ladder(*e_range, STEPS_A_DECADE)
    least = {}
    for name in TOTALS:
        ks, es = lattice(*k_range, size), first_es
        while getattr(constraints, name) is not None:
            rounds = rounds_needed(bounds, ks, es, len(fleet)) / target_gap
            needed = upper_quantile(rounds, quantile)
            total = needed * _of_round(name, fleet, ks, es)
            row, column = np.unravel_index(np.argmin(total), total.shape)
            worst = int(np.argmin(np.abs(rounds[:, row, column] - needed[row, column])))
            least[name] = (bounds[worst], int(ks[row]), int(es[column]))
            ks = between_neighbours(ks, int(row), size)
            es = between_neighbours(es, int(column), _FINER_STEPS)
            if ks.size <= 3 and es.size <= 3:
                break
    return least


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
