"""Predictions: what training with one setting takes, by what is known of convergence."""

from __future__ import annotations

from dataclasses import dataclass

from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction, RoundCost, Setting
from fedplan.errors import InputError
from fedplan.participation.uniform import Uniform, mean_round_time_s, round_energy_j
from fedplan.planning.rounds import Convergence, expected_rounds, predicted


def price_setting(
    problem: Problem, convergence: Convergence, setting: Setting, *, target_gap: float = 1.0
) -> Prediction:
    """Rounds, seconds, joules and cost of training with any setting.

    >>> from fedplan.convergence.saturation import Saturation
    >>> from fedplan.participation import uniform
    >>> problem = Problem(fleet=Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0))
    >>> known = Saturation(rounds=10.0, saturation=10.0)
    >>> price_setting(problem, known, uniform(2, 10)).time_s
    60.0
    """
    if found := setting.problems(len(problem.fleet)) + target_gap_problems(target_gap):
        raise InputError(found)
    law, steps = setting.participation, setting.local_steps
    rounds = expected_rounds(convergence, problem, law, steps, target_gap=target_gap)
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
    law = Uniform if exact_stragglers else _WithoutStragglers
    return price_setting(
        Problem(fleet=fleet, objective=objective),
        bound,
        Setting(participation=law(clients_per_round=clients_per_round), local_steps=local_steps),
        target_gap=target_gap,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithoutStragglers(Uniform):
    """Uniform sampling as the paper's P3 prices it: every round at the mean device's speed."""

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        fleet, clients = problem.fleet, self.clients_per_round
        return RoundCost(
            time_s=mean_round_time_s(fleet, local_steps),
            energy_j=float(round_energy_j(fleet, clients, local_steps)),
            clients=clients,
        )
