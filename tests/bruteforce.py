"""The formulas of the paper written out plainly: the reference every test compares fedplan with.

Nothing here calls the code under test; a Fleet or a Bound is only read, attribute by attribute.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

LIMITS = ("deadline_s", "energy_budget_j", "max_rounds")


def expand(fleet):
    """Step seconds, communication seconds, step joules, communication joules of every device."""
    return tuple(
        np.repeat(getattr(fleet, name), fleet.count)
        for name in ("step_time_s", "comm_time_s", "step_energy_j", "comm_energy_j")
    )


def mean_max_of_subsets(values, k):
    """E[max] over all subsets of size k, by listing them."""
    maxima = [max(subset) for subset in itertools.combinations(values, k)]
    return math.fsum(maxima) / len(maxima)


def mean_sum_of_subsets(values, k):
    """E[sum] over all subsets of size k, by listing them."""
    sums = [math.fsum(subset) for subset in itertools.combinations(values, k)]
    return math.fsum(sums) / len(sums)


@cache
def rank_weights(n):
    """C(i-1, K-1) / C(n, K) in exact integer arithmetic; row K-1, column i-1 (fastest first)."""
    weights = np.zeros((n, n))
    for k in range(1, n + 1):
        whole = math.comb(n, k)
        for i in range(k, n + 1):
            weights[k - 1, i - 1] = math.comb(i - 1, k - 1) / whole
    return weights


def sampling_term(k, n):
    """(N - K) / (K (N - 1)), 0 for a fleet of one."""
    return 0.0 * k if n == 1 else (n - k) / (k * (n - 1))


@dataclass
class Grid:
    """Totals until the target for every K (rows, from 1) and E (columns, from 1)."""

    rounds: np.ndarray
    time_s: np.ndarray
    energy_j: np.ndarray
    participations: np.ndarray  # clients times rounds, which per_client_round prices

    def cost(self, objective):
        return (
            objective.per_second * self.time_s
            + objective.per_joule * self.energy_j
            + objective.per_client_round * self.participations
        )

    def total(self, limit):
        return dict(zip(LIMITS, (self.time_s, self.energy_j, self.rounds), strict=True))[limit]

    def allowed(self, constraints, limits=LIMITS):
        """Where the ranges of K and E, and the limits named, are respected."""
        ks = np.arange(1, self.rounds.shape[0] + 1)[:, None]
        es = np.arange(1, self.rounds.shape[1] + 1)[None, :]
        ok = ks >= (constraints.min_clients_per_round or 1)
        ok = ok & (es >= (constraints.min_local_steps or 1))
        if constraints.max_clients_per_round is not None:
            ok &= ks <= constraints.max_clients_per_round
        if constraints.max_local_steps is not None:
            ok &= es <= constraints.max_local_steps
        for name in limits:
            if (limit := getattr(constraints, name)) is not None:
                ok &= self.total(name) <= limit
        return ok


def grid(fleet, bound, max_steps, *, gap=1.0, mean_times=False):
    """All (K, E) with E up to max_steps: exact stragglers, or the paper's P3 (c0 = b0 as well)."""
    step_s, comm_s, step_j, comm_j = expand(fleet)
    n = step_s.size
    k, e = np.arange(1.0, n + 1)[:, None], np.arange(1.0, max_steps + 1)[None, :]
    c0 = bound.b0 if mean_times else bound.c0
    rounds = (bound.a0 + e**2 * (bound.b0 + c0 * sampling_term(k, n))) / (e * gap)
    if mean_times:
        seconds = step_s.mean() * e + comm_s.mean() + 0.0 * k
    else:
        ranked = np.sort(step_s[:, None] * e + comm_s[:, None], axis=0)
        seconds = rank_weights(n) @ ranked
    joules = k * (step_j.mean() * e + comm_j.mean())
    return Grid(
        rounds=rounds, time_s=seconds * rounds, energy_j=joules * rounds, participations=k * rounds
    )


def steps_to_search(*bounds):
    """An E well past every optimum: twice the E of fewest rounds, and some."""
    return 2 * max(math.ceil(math.sqrt(bound.a0 / bound.b0)) for bound in bounds) + 5


def cheapest(cost, allowed):
    """(cost, K, E) of the cheapest allowed pair, or None."""
    masked = np.where(allowed, cost, np.inf)
    row, column = np.unravel_index(np.argmin(masked), masked.shape)
    if not np.isfinite(masked[row, column]):
        return None
    return float(masked[row, column]), int(row) + 1, int(column) + 1


def p3(fleet, bound, energy_weight, k, e):
    """The paper's Eq. 20 at real K and E, epsilon inside A0 and B0."""
    step_s, comm_s, step_j, comm_j = (values.mean() for values in expand(fleet))
    n = int(fleet.count.sum())
    g = energy_weight
    price = (1 - g) * (step_s * e + comm_s) + g * k * (step_j * e + comm_j)
    return price * (bound.a0 + bound.b0 * (1 + sampling_term(k, n)) * e**2) / e


def printed_steps(fleet, bound, energy_weight, k):
    """The root of the paper's Eq. 22 with its coefficient as printed, which is wrong."""
    step_s, comm_s, step_j, comm_j = (values.mean() for values in expand(fleet))
    g = energy_weight
    coefficient = (2 * (1 - g) * step_s + g * k * step_j) / (2 * (1 - g) * comm_s + g * k * comm_j)
    right = bound.a0 / (bound.b0 * (1 + sampling_term(k, int(fleet.count.sum()))))
    return brentq(lambda e: coefficient * e**3 + e**2 - right, 0.0, math.sqrt(right), xtol=1e-12)


def non_dominated(time_s, energy_j, allowed):
    """{(K, E)} that no allowed pair beats, being as good on both and better on one."""
    rows, columns = np.nonzero(allowed)
    t, j = time_s[rows, columns], energy_j[rows, columns]
    beaten = np.array(
        [
            bool(((t <= a) & (j <= b) & ((t < a) | (j < b))).any())
            for a, b in zip(t, j, strict=True)
        ],
        dtype=bool,
    )
    return {(int(r) + 1, int(c) + 1) for r, c in zip(rows[~beaten], columns[~beaten], strict=True)}
