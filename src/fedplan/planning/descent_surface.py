"""The likeliest descent over (K, E): what every setting costs by it, and which costs least."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedplan.convergence.descent import Descent
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, FloatArray
from fedplan.core.objective import Objective
from fedplan.core.prediction import Prediction
from fedplan.participation.rankings import round_times_s
from fedplan.participation.uniform import round_energy_j
from fedplan.planning.descent_plan import settings_within_reach
from fedplan.planning.surface import (
    Surface,
    affordable_lattice,
    between_neighbours,
    lattice,
)


def descent_surface(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    clients_per_round: ArrayLike,
    local_steps: ArrayLike,
) -> Surface:
    """Rounds, seconds, joules and cost until the target; infinite where it is never reached."""
    ks = np.atleast_1d(np.asarray(clients_per_round, dtype=np.int64))
    es = np.atleast_1d(np.asarray(local_steps, dtype=np.int64))
    k, e = ks[:, np.newaxis], es[np.newaxis, :]
    rounds = descent.rounds(k, e)
    seconds, joules = round_times_s(fleet, ks, es), round_energy_j(fleet, k, e)
    per_round = objective.of_round(seconds, joules, k)

    def total(rate: ArrayLike) -> FloatArray:
        # What costs nothing a round costs nothing for ever.
        return np.multiply(rate, rounds, out=np.zeros(rounds.shape), where=np.asarray(rate) > 0)

    return Surface(
        clients_per_round=ks,
        local_steps=es,
        expected_rounds=rounds,
        time_s=total(seconds),
        energy_j=total(joules),
        cost=total(per_round),
    )


def predict_descent(
    fleet: Fleet, descent: Descent, objective: Objective, clients_per_round: int, local_steps: int
) -> Prediction:
    """What training with one (K, E) takes by the likeliest descent."""
    surface = descent_surface(fleet, descent, objective, clients_per_round, local_steps)
    return _prediction(surface, 0, 0)


def cheapest_setting(
    fleet: Fleet, descent: Descent, objective: Objective, constraints: Constraints | None = None
) -> Prediction | None:
    """The (K, E) of lowest cost by the likeliest descent; None where nothing meets the limits.

    A plan need not be it: it also has to be good where the descent is another.
    """
    limits = constraints or Constraints()
    clients, steps = settings_within_reach(fleet, descent, limits)
    size = affordable_lattice(fleet.count.size)
    ks, es = lattice(*clients, size), lattice(*steps, size)
    while True:
        surface = descent_surface(fleet, descent, objective, ks, es)
        met = limits.met(surface.time_s, surface.energy_j, surface.expected_rounds)
        costs = np.where(met, surface.cost, np.inf)
        row, column = (int(at) for at in np.unravel_index(np.argmin(costs), costs.shape))
        if not np.isfinite(costs[row, column]):
            return None
        ks_next, es_next = (
            between_neighbours(axis, at, size) for axis, at in ((ks, row), (es, column))
        )
        if ks_next.size <= 3 and es_next.size <= 3:
            return _prediction(surface, row, column)
        ks, es = ks_next, es_next


def _prediction(surface: Surface, row: int, column: int) -> Prediction:
    return Prediction(
        clients_per_round=int(surface.clients_per_round[row]),
        local_steps=int(surface.local_steps[column]),
        expected_rounds=float(surface.expected_rounds[row, column]),
        time_s=float(surface.time_s[row, column]),
        energy_j=float(surface.energy_j[row, column]),
        cost=float(surface.cost[row, column]),
    )
