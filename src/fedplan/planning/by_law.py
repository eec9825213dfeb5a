"""Plans by any law with a number of clients per round: the cheapest (K, E) of a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedplan.core.prediction import Prediction
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Setting
from fedplan.participation.grouping import LOUDEST
from fedplan.planning.rounds import Convergence, expected_rounds
from fedplan.planning.surface import between_neighbours, lattice
from fedplan.planning.turns import limited_totals, turns_steps_range

_WORK = 4e5  # devices times settings looked at
_FEWEST, _MOST = 3, 24  # values of K, and of E, at a time
_FURTHEST = 100  # times the E at which computing takes as long as sending: past it, no optimum


@dataclass(frozen=True, slots=True, kw_only=True)
class LawChoice:
    """A setting and what training with it is expected to take."""

    setting: Setting
    prediction: Prediction


def price_setting(
    problem: Problem, convergence: Convergence, setting: Setting, *, target_gap: float = 1.0
) -> Prediction:
    """Rounds, seconds, joules and cost of training with any setting.

    >>> from fedplan.convergence.saturation import Saturation
    >>> from fedplan.core.fleet import Fleet
    >>> from fedplan.participation import uniform
    >>> problem = Problem(fleet=Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0))
    >>> known = Saturation(rounds=10.0, saturation=10.0)
    >>> price_setting(problem, known, uniform(2, 10)).time_s
    60.0
    """
    law, steps = setting.participation, setting.local_steps
    rounds = expected_rounds(convergence, problem, law, steps, target_gap=target_gap)
    cost = law.round_cost(problem, steps)
    paid = problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients)
    return Prediction(
        clients_per_round=setting.clients_per_round,
        local_steps=steps,
        expected_rounds=rounds,
        time_s=cost.time_s * rounds,
        energy_j=cost.energy_j * rounds,
        cost=float(paid) * rounds,
    )


def plan_by_law(
    problem: Problem,
    convergence: Convergence,
    law: type[Participation],
    *,
    target_gap: float = 1.0,
) -> LawChoice | None:
    """The cheapest setting of a law that meets the limits; None where none does."""
    meets = problem.limits.are_met_by
    return _search(problem, convergence, law, target_gap, lambda one: one.cost, meets)


def least_by_law(
    problem: Problem,
    convergence: Convergence,
    law: type[Participation],
    *,
    target_gap: float = 1.0,
) -> dict[str, Prediction]:
    """The least of each limited total that a law can reach."""
    found = {
        name: _search(problem, convergence, law, target_gap, total, lambda _: True)
        for name, total in limited_totals(problem.limits)
    }
    return {name: best.prediction for name, best in found.items() if best is not None}


def _search(
    problem: Problem,
    convergence: Convergence,
    law: type[Participation],
    target_gap: float,
    total: Callable[[Prediction], float],
    meets: Callable[[Prediction], bool],
) -> LawChoice | None:
    """The setting with the least total: a lattice of K and E in ratio, then a finer one around."""
    size = int(np.clip(np.sqrt(_WORK / problem.fleet.count.size), _FEWEST, _MOST))
    low_k, high_k = problem.limits.clients_range(len(problem.fleet))
    low_e, high_e = turns_steps_range(problem.limits, convergence)
    balance = problem.fleet.mean("comm_time_s") / problem.fleet.mean("step_time_s")
    furthest = int(np.clip(_FURTHEST * max(balance, 1.0), low_e, high_e))
    ks, es = lattice(low_k, high_k, size), lattice(low_e, furthest, size)
    best = None
    for _ in range(2):
        choices = _priced(problem, convergence, law, ks.tolist(), es.tolist(), target_gap)
        allowed = [
            choice
            for choice in choices
            if meets(choice.prediction)
            and choice.setting.participation.largest_share(problem) <= LOUDEST
        ]
        if not allowed:
            break
        best = min(allowed, key=lambda choice: total(choice.prediction))
        k, e = best.setting.pair
        ks = between_neighbours(ks, int(np.searchsorted(ks, k)), size)
        es = between_neighbours(es, int(np.searchsorted(es, e)), size)
    return best


def _priced(
    problem: Problem,
    convergence: Convergence,
    law: type[Participation],
    ks: list[int],
    es: list[int],
    target_gap: float,
) -> Iterator[LawChoice]:
    for e in es:
        for k in ks:
            setting = Setting(participation=law.of(problem, e, k), local_steps=e)
            prediction = price_setting(problem, convergence, setting, target_gap=target_gap)
            yield LawChoice(setting=setting, prediction=prediction)
