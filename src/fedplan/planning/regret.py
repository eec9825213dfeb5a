"""Regret over a lattice of (K, E): exactly, and by a sketch that bounds it from below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedplan.convergence.bound import Bound, drift
from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.problem import Problem
from fedplan.participation.rankings import round_times_s, step_and_comm_s
from fedplan.participation.uniform_sampling import round_energy_j


def upper_quantile(values: FloatArray, quantile: float) -> FloatArray:
    """The smallest value that at least a share `quantile` of the first axis does not exceed."""
    rank = max(int(np.ceil(quantile * values.shape[0] - 1e-9)) - 1, 0)
    return np.asarray(np.partition(values, rank, axis=0)[rank])


@dataclass(frozen=True, slots=True)
class Case:
    """What regret is asked for: over these bounds, of which a share `quantile` counts."""

    problem: Problem
    bounds: Sequence[Bound]
    quantile: float

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
        """The lowest cost under each bound, infinite where nothing meets the limits."""
        return np.asarray(self.costs.min(axis=(1, 2)))

    def regrets(self, optima: FloatArray) -> FloatArray:
        """The quantile over the bounds of each (K, E)'s regret; K x E."""
        return upper_quantile(self.costs / optima[:, None, None] - 1.0, self._quantile)


class Sketch:
    """What rounds take at least at any (K, E), from who is slowest on a lattice.

    The time of a round is convex in E, so it lies above the lines of the E next to it that were
    looked at, and concave in K, so these lines may be taken from chords. On the
    lattice it is exact.
    """

    def __init__(self, case: Case, ks: IntArray, es: IntArray) -> None:
        self.case, self.ks, self.es = case, ks, es
        # Seconds of a step and of communication of the slowest; 2 x E x K.
        fleet = case.problem.fleet
        self.lines = np.stack([step_and_comm_s(fleet, ks, e) for e in es.tolist()], axis=1)

    def table(self, ks: IntArray, es: IntArray) -> Table:
        """Costs of another lattice, none too high."""
        return Table(self.case, ks, es, self.seconds_at_least(ks, es))

    def seconds_at_least(self, ks: IntArray, es: IntArray) -> FloatArray:
        """K x E."""
        chords = np.array([[np.interp(ks, self.ks, at) for at in line] for line in self.lines])
        above = np.minimum(np.searchsorted(self.es, es), self.es.size - 1)
        step_s, comm_s = chords[:, [above, np.maximum(above - 1, 0)]]
        return np.asarray((step_s * es[:, np.newaxis] + comm_s).max(axis=0).T)

    def regret_at_least(self, ks: IntArray, es: IntArray, optima: FloatArray) -> float:
        """A regret no integer (K, E) beats, from the first to the last K and E.

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
