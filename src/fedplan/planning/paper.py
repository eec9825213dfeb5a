"""The paper's Algorithm 2: alternate convex search on P3, then four roundings.

P3 replaces the straggler by the mean time and takes c0 = b0. It is kept exactly as a method of its
own, so that the paper can be reproduced and compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fedplan.convergence.bound import Bound, drift
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.planning.predict import predict
from fedplan.planning.steps import cost_line, optimal_steps

_TOLERANCE = 1e-9  # the paper's epsilon_0, on (K, E)
_MAX_SWEEPS = 10_000


def closed_form_clients(
    fleet: Fleet, bound: Bound, objective: Objective, local_steps: float
) -> float:
    """The real K > 0 that minimises P3 at a fixed E, Eq. 21; infinite where K costs nothing.

    >>> fleet = Fleet(step_time_s=[0.1] * 100, comm_time_s=2.0, step_energy_j=1e-3,
    ...     comm_energy_j=2e-2)
    >>> k = closed_form_clients(fleet, Bound(a0=3750.0, b0=1.0), Objective.weighted(0.45), 28.6)
    >>> round(k, 2)
    4.71
    """
    n = len(fleet)
    shared = objective.per_second * (
        fleet.mean("step_time_s") * local_steps + fleet.mean("comm_time_s")
    )
    per_client = objective.per_client_round + objective.per_joule * (
        fleet.mean("step_energy_j") * local_steps + fleet.mean("comm_energy_j")
    )
    if n == 1:
        return 1.0
    squared_steps = local_steps**2
    gain = bound.b0 * n * squared_steps * shared
    price = per_client * (bound.b0 * (n - 2) * squared_steps + bound.a0 * (n - 1))
    if price == 0:  # more clients never cost more
        return math.inf
    return math.sqrt(gain / price)


def closed_form_steps(
    fleet: Fleet, bound: Bound, objective: Objective, clients_per_round: float
) -> float:
    """The real E that minimises P3 at a fixed K: the corrected Eq. 22, by Cardano's formula."""
    problem = Problem(fleet=fleet, objective=objective)
    means = fleet.mean("step_time_s"), fleet.mean("comm_time_s")
    line = cost_line(problem, clients_per_round, *means)
    spread = float(drift(bound.as_in_paper, clients_per_round, len(fleet)))
    return float(optimal_steps(*line, bound.a0, spread))


def solve_paper(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    *,
    clients_range: tuple[int, int],
    steps_range: tuple[int, int],
) -> tuple[int, int]:
    """(K, E) by Algorithm 2, lines 5-13, within the given ranges.

    P3 is a sum of products of powers of K and E (for N > 1), so it is convex in (log K, log E) and
    the search ends in its global minimum wherever it starts. Beside the paper's four roundings, E
    is solved again at each rounded K: rounding K from 1.4 to 2 can leave E half a percent off.
    """
    paper_bound = bound.as_in_paper

    def steps_at(clients: float) -> float:
        return _project(closed_form_steps(fleet, paper_bound, objective, clients), steps_range)

    def clients_at(steps: float) -> float:
        return _project(closed_form_clients(fleet, paper_bound, objective, steps), clients_range)

    candidates: set[tuple[int, int]] = set()
    real_k, real_e = _alternate(clients_at, steps_at, float(clients_range[1]))
    for k in (math.floor(real_k), math.ceil(real_k)):
        for e in (real_e, steps_at(k)):
            candidates |= {(k, math.floor(e)), (k, math.ceil(e))}

    def p3(setting: tuple[int, int]) -> tuple[float, int, int]:
        priced = predict(fleet, paper_bound, objective, *setting, exact_stragglers=False)
        return priced.cost, *setting

    return min(candidates, key=p3)


def _alternate(
    clients_at: Callable[[float], float], steps_at: Callable[[float], float], k: float
) -> tuple[float, float]:
    """Alternate convex search from K until neither K nor E moves."""
    e = steps_at(k)
    for _ in range(_MAX_SWEEPS):
        next_k = clients_at(e)
        next_e = steps_at(next_k)
        moved = math.hypot(next_k - k, next_e - e)
        k, e = next_k, next_e
        if moved <= _TOLERANCE:
            break
    return k, e


def _project(value: float, limits: tuple[int, int]) -> float:
    return min(max(value, limits[0]), limits[1])
