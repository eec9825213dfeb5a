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

from fedplan.theory.constraints import TOTALS, Constraints
from fedplan.theory.convergence import Bound, drift
from fedplan.theory.cost import Objective, round_energy_j
from fedplan.theory.exact import minimise
from fedplan.theory.fleet import Fleet, FloatArray, IntArray
from fedplan.theory.grid import (
    affordable_lattice,
    between_neighbours,
    fits_whole,
    lattice,
    upper_quantile,
)
from fedplan.theory.memory import round_times_s

_CHUNK = 1 << 22


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
    low_k, high_k = constraints.clients_range(len(fleet))
    low_e, high_e = constraints.steps_range(*bounds)
    complete = fits_whole(fleet, (low_k, high_k), (low_e, high_e))
    coarse = affordable_lattice(fleet.count.size)
    size = max(high_k, high_e) if complete else coarse
    ks, es = lattice(low_k, high_k, size), lattice(low_e, high_e, size)
    if constraints.limits_totals and not complete:
        # What meets narrow limits may lie between lattice points: add where it is best.
        for bound in (*bounds, _hardest(bounds)):
            own = minimise(fleet, bound, objective, constraints, target_gap=target_gap)
            if own is not None:
                ks, es = np.union1d(ks, own.clients_per_round), np.union1d(es, own.local_steps)
    table = _Table(fleet, bounds, objective, constraints, target_gap, ks, es)
    optima = table.optima(quantile)
    if optima is None:
        return None
    if not (complete or constraints.limits_totals):
        optima = _exact_optima(fleet, bounds, objective, constraints) / target_gap
    lower_bound = table.regret_lower_bound(optima, quantile)
    while True:
        regret = table.regrets(optima, quantile)
        row, column = np.unravel_index(np.argmin(regret), regret.shape)
        finer_k = between_neighbours(table.ks, int(row), coarse)
        finer_e = between_neighbours(table.es, int(column), coarse)
        if finer_k.size <= 3 and finer_e.size <= 3:
            break
        table = _Table(fleet, bounds, objective, constraints, target_gap, finer_k, finer_e)
        if (found := table.optima(quantile)) is not None:
            optima = np.minimum(optima, found)
    best = float(regret[row, column])
    return RobustOptimum(
        clients_per_round=int(table.ks[row]),
        local_steps=int(table.es[column]),
        regret=best,
        lower_bound=min(best, lower_bound),
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

    One entry a total: the bound that is the worst of that share there, K and E. Looked for on a
    lattice where the fleet is large, so a little less may be attainable there.
    """
    low_k, high_k = constraints.clients_range(len(fleet))
    low_e, high_e = constraints.steps_range(*bounds)
    size = affordable_lattice(fleet.count.size) * 4
    ks, es = lattice(low_k, high_k, size), lattice(low_e, high_e, size)
    ranges, time = constraints.ranges_only(), Objective.weighted(0.0)
    table = _Table(fleet, bounds, time, ranges, target_gap, ks, es)
    rounds = table.rounds(slice(None))
    needed = upper_quantile(rounds, quantile)
    least = {}
    totals = (table.seconds * needed, table.joules * needed, needed)
    for name, total in zip(TOTALS, totals, strict=True):
        if getattr(constraints, name) is not None:
            row, column = np.unravel_index(np.argmin(total), total.shape)
            worst = int(np.argmin(np.abs(rounds[:, row, column] - needed[row, column])))
            least[name] = (bounds[worst], int(ks[row]), int(es[column]))
    return least


def _hardest(bounds: Sequence[Bound]) -> Bound:
    """A bound that needs at least as many rounds as any of these: what it allows, all allow."""
    return Bound(
        a0=max(bound.a0 for bound in bounds),
        b0=max(bound.b0 for bound in bounds),
        c0=max(bound.c0 for bound in bounds),
    )


def _exact_optima(
    fleet: Fleet, bounds: Sequence[Bound], objective: Objective, constraints: Constraints
) -> FloatArray:
    """The lowest cost under each bound on its own; a lattice would overstate it a little."""
    solved = [minimise(fleet, bound, objective, constraints) for bound in bounds]
    return np.array([optimum.cost for optimum in solved if optimum is not None])


class _Table:
    """Costs of a lattice of (K, E) under every bound: a0 * x + drift(K) * y with two tables."""

    def __init__(
        self,
        fleet: Fleet,
        bounds: Sequence[Bound],
        objective: Objective,
        constraints: Constraints,
        target_gap: float,
        ks: IntArray,
        es: IntArray,
    ) -> None:
        self.ks, self.es, self.constraints, self.gap = ks, es, constraints, target_gap
        k, self.steps = ks[:, np.newaxis], es[np.newaxis, :].astype(np.float64)
        self.seconds, self.joules = round_times_s(fleet, ks, es), round_energy_j(fleet, k, es)
        self.per_round = objective.of_round(self.seconds, self.joules, k)
        self.a0 = np.array([bound.a0 for bound in bounds])
        self.drift = np.stack([drift(bound, ks, len(fleet)) for bound in bounds])

    def rounds(self, rows: slice) -> FloatArray:
        """Rounds needed; bound x K x E."""
        a0 = self.a0[:, np.newaxis, np.newaxis]
        return (a0 / self.steps + self.drift[:, rows, np.newaxis] * self.steps) / self.gap

    def _row_chunks(self) -> list[slice]:
        rows = max(1, _CHUNK // (self.a0.size * self.es.size))
        return [slice(start, start + rows) for start in range(0, self.ks.size, rows)]

    def _costs(self, rows: slice, quantile: float) -> FloatArray:
        """Cost under every bound, infinite where the limits fail too often; bound x K x E."""
        rounds = self.rounds(rows)
        costs = self.per_round[rows] * rounds
        if self.constraints.limits_totals:
            met = self.constraints.met(
                self.seconds[rows] * rounds, self.joules[rows] * rounds, rounds
            )
            costs[:, met.mean(axis=0) < quantile - 1e-12] = np.inf
        return costs

    def optima(self, quantile: float) -> FloatArray | None:
        """The lowest cost under each bound; None where nothing meets the limits."""
        lowest = np.min(
            [self._costs(rows, quantile).min(axis=(1, 2)) for rows in self._row_chunks()], axis=0
        )
        return lowest if np.isfinite(lowest).all() else None

    def regrets(self, optima: FloatArray, quantile: float) -> FloatArray:
        """The quantile over the bounds of each (K, E)'s regret; K x E."""
        return np.concatenate(
            [
                upper_quantile(self._costs(rows, quantile) / optima[:, None, None] - 1.0, quantile)
                for rows in self._row_chunks()
            ]
        )

    def regret_lower_bound(self, optima: FloatArray, quantile: float) -> float:
        """A regret no integer (K, E) of the whole range beats, lattice points and cells alike.

        In the cell from (K1, E1) to (K2, E2) a round costs least at K1, cost / E falls with E,
        cost * E rises with E, and drift falls with K: four corner values bound both terms.
        """
        lowest = float(self.regrets(optima, quantile).min())
        if (np.diff(self.ks) <= 1).all() and (np.diff(self.es) <= 1).all():
            return lowest
        k_next = np.minimum(np.arange(self.ks.size) + 1, self.ks.size - 1)
        e_next = np.minimum(np.arange(self.es.size) + 1, self.es.size - 1)
        falling = (self.per_round / self.steps)[:, e_next] / self.gap
        rising = self.per_round * self.steps / self.gap
        cells = [
            (a0 * falling + spread[k_next, np.newaxis] * rising) / optimum - 1.0
            for a0, spread, optimum in zip(self.a0, self.drift, optima, strict=True)
        ]
        return max(0.0, min(lowest, float(upper_quantile(np.stack(cells), quantile).min())))
