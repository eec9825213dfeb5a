"""Predictions: what training with one (K, E) takes, by the bound and the fleet."""

from __future__ import annotations

from fedplan.convergence.bound import Bound, rounds_for_gap
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.prediction import Prediction
from fedplan.participation.uniform import (
    check_setting,
    mean_round_time_s,
    round_energy_j,
    round_time_s,
)


def predict(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    clients_per_round: int,
    local_steps: int,
    *,
    target_gap: float = 1.0,
    exact_stragglers: bool = True,
) -> Prediction:
    """Rounds, seconds, joules and cost of training with (K, E) to the target gap (Eq. 14).

    `exact_stragglers=False` prices a round at the mean time, as the paper's P3 does.

    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0)
    >>> predict(fleet, Bound(a0=100.0, b0=1.0), Objective.weighted(0.0), 2, 10).time_s
    60.0
    """
    check_setting(fleet, clients_per_round, local_steps)
    rounds = float(rounds_for_gap(bound, clients_per_round, local_steps, len(fleet), target_gap))
    if exact_stragglers:
        seconds = round_time_s(fleet, clients_per_round, local_steps)
    else:
        seconds = mean_round_time_s(fleet, local_steps)
    joules = float(round_energy_j(fleet, clients_per_round, local_steps))
    cost = float(objective.of_round(seconds, joules, clients_per_round))
    return Prediction(
        clients_per_round=clients_per_round,
        local_steps=local_steps,
        expected_rounds=rounds,
        time_s=seconds * rounds,
        energy_j=joules * rounds,
        cost=cost * rounds,
    )
