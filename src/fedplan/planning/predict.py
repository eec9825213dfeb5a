"""Predictions: what training with one setting is expected to take."""

from __future__ import annotations

from typing import Any

from fedplan.convergence.bound import Bound
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction, Setting
from fedplan.errors import refuse
from fedplan.participation import uniform
from fedplan.planning.rounds import Convergence, expected_rounds, predicted


def price_setting(problem: Problem, convergence: Convergence, setting: Setting) -> Prediction:
    """Rounds, seconds, joules and cost of training with any setting.

    >>> from fedplan.convergence.saturation import Saturation
    >>> problem = Problem(fleet=Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0))
    >>> known = Saturation(rounds=10.0, saturation=10.0)
    >>> price_setting(problem, known, uniform(2, 10)).time_s
    60.0
    """
    refuse(setting.problems(len(problem.fleet)))
    law, steps = setting.participation, setting.local_steps
    rounds = expected_rounds(convergence, problem, law, steps)
    cost = law.round_cost(problem, steps)
    return predicted(problem, cost, rounds, steps, setting.clients_per_round)


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
    if not exact_stragglers:  # a fleet of equal devices, which have the means of these
        means: dict[str, Any] = {name: fleet.mean(name) for name in QUANTITIES}
        fleet = Fleet(**means, count=len(fleet))
    problem = Problem(fleet=fleet, objective=objective)
    return price_setting(problem, bound.at_gap(target_gap), uniform(clients_per_round, local_steps))
