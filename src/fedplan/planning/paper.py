"""The paper's Algorithm 2: alternating convex search on P3, then four roundings.

P3 replaces the straggler by the mean time and takes c0 = b0. It is kept exactly as a method of its
own, so that the paper can be reproduced and compared with.
"""

import math

from fedplan.convergence.bound import Bound, drift
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.planning.predict import predict
from fedplan.planning.steps import cost_line, optimal_steps, steps_range

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


def solve_paper(problem: Problem, bound: Bound) -> tuple[int, int]:
    """(K, E) by Algorithm 2, lines 5-13, within the problem's ranges of K and E.

    P3 is a sum of products of powers of K and E (for N > 1), so it is convex in (log K, log E) and
    the search ends in its global minimum wherever it starts. Beside the paper's four roundings, E
    is solved again at each rounded K: rounding K from 1.4 to 2 can leave E half a percent off.
    """
    fleet, objective, bound = problem.fleet, problem.objective, bound.as_in_paper
    fewest, most = problem.limits.clients_range(len(fleet))
    shortest, longest = steps_range(problem.limits, bound)

    def steps_at(clients: float) -> float:
        real = closed_form_steps(fleet, bound, objective, clients)
        return min(max(real, shortest), longest)

    k, e = float(most), steps_at(most)
    for _ in range(_MAX_SWEEPS):  # until neither K nor E moves
        before = k, e
        k = min(max(closed_form_clients(fleet, bound, objective, e), fewest), most)
        e = steps_at(k)
        if math.dist(before, (k, e)) <= _TOLERANCE:
            break
    candidates = {
        (whole_k, whole_e)
        for whole_k in (math.floor(k), math.ceil(k))
        for real_e in (e, steps_at(whole_k))
        for whole_e in (math.floor(real_e), math.ceil(real_e))
    }

    def p3(setting: tuple[int, int]) -> tuple[float, int, int]:
        priced = predict(fleet, bound, objective, *setting, exact_stragglers=False)
        return priced.cost, *setting

    return min(candidates, key=p3)
