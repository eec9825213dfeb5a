"""Predictions: the rounds that training takes, from a model of convergence, and what they cost."""

from functools import lru_cache
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.saturation import Saturation
from fedplan.core.fleet import QUANTITIES, Fleet, FloatArray
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Prediction, RoundCost, Setting
from fedplan.errors import refuse
from fedplan.participation import uniform

Convergence = Bound | Saturation

# Chosen on all tasks of `reproduction/participation.py`, which says what either half alone gives.
# Each group begins where the one before ended, which saves `HEAD_START` of the way in learning-rate
# time. A repeated order has an error of second order, and is late by at most `TURNS_COST` of its
# groups.
HEAD_START = 0.05
TURNS_COST = 0.5
_FOREVER, _POINTS = 10**5, 2000  # rounds that a rate is followed for, and where it is looked at


def rounds_of_turns(full_rounds: float, num_groups: int, rate: LearningRate | None = None) -> float:
    """Rounds if this many groups take turns, from those that all clients at once would need.

    Where the rate falls, a little less way to go saves many rounds.

    >>> rounds_of_turns(100.0, 1), round(rounds_of_turns(100.0, 10), 1)
    (100.0, 95.9)
    >>> round(rounds_of_turns(100.0, 10, LearningRate(initial=0.1, schedule="harmonic")), 1)
    79.5
    >>> round(rounds_of_turns(10.0, 50), 1)
    34.0
    """
    share = 1.0 - HEAD_START * (1.0 - 1.0 / num_groups)
    return _rounds_for(share, full_rounds, rate) + late_rounds(full_rounds, num_groups)


def late_rounds(full_rounds: float, num_groups: int) -> float:
    """Rounds that are added if so many groups take turns.

    >>> late_rounds(100.0, 11), late_rounds(10.0, 51)
    (0.5, 25.0)
    """
    others = num_groups - 1
    return TURNS_COST * others * min(others / full_rounds, 1.0)


def _rounds_for(share: float, rounds: float, rate: LearningRate | None) -> float:
    """Rounds for this share of the way of so many rounds, the way being the sum of rates."""
    if rate is None or not 1.0 <= rounds <= _FOREVER:
        return share * rounds
    ends, done = clock(rate)
    return float(np.interp(share * np.interp(rounds, ends, done), done, ends))


@lru_cache(maxsize=64)
def clock(rate: LearningRate) -> tuple[FloatArray, FloatArray]:
    """Rounds, closely at first and then in equal ratios, and the sum of the rates up to each."""
    ends = np.unique(np.geomspace(1, _FOREVER, _POINTS).astype(int))
    parts = np.diff(ends, prepend=0) * [rate.at(int(end) - 1) for end in ends]
    return ends.astype(np.float64), np.cumsum(parts)


def expected_rounds(
    convergence: Convergence, problem: Problem, participation: Participation, local_steps: int
) -> float:
    """Rounds to the target by any law: those of all clients, the law's noise, and its cycle."""
    full = float(convergence.full_rounds(local_steps))
    if participation.averaged > 1:
        return rounds_of_turns(full, participation.averaged, problem.learning_rate)
    noise = float(convergence.sampling_rounds(local_steps))
    return full + noise * participation.sampling_variance(problem)


def predicted(
    problem: Problem, cost: RoundCost, rounds: float, local_steps: int, clients: int | None
) -> Prediction:
    """What so many rounds of this cost add up to."""
    paid = problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients)
    return Prediction(
        clients_per_round=clients,
        local_steps=local_steps,
        expected_rounds=rounds,
        time_s=cost.time_s * rounds,
        energy_j=cost.energy_j * rounds,
        cost=float(paid) * rounds,
    )


def price_setting(problem: Problem, convergence: Convergence, setting: Setting) -> Prediction:
    """Rounds, seconds, joules and cost of training with any setting.

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
