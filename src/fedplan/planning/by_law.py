"""Plans by any law: groups that take turns, or the cheapest (K, E) of a lattice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fedplan.core.fleet import IntArray
from fedplan.core.plan import GroupCost, LazyLaw
from fedplan.core.prediction import Prediction
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Setting
from fedplan.errors import InputError
from fedplan.participation import LAWS, Turns
from fedplan.planning.rounds import Convergence, expected_rounds
from fedplan.planning.surface import between_neighbours, lattice
from fedplan.planning.turns import likely_turns, plan_turns, turns_steps_range

# A client's update counts at most so many times a whole round of everyone: a larger step is
# unstable where steps of the usual size are not far from it.
_LOUDEST = 2.0
_WORK = 4e5  # devices times settings looked at
_FEWEST, _MOST = 3, 24  # values of K, and of E, at a time
_FURTHEST = 100  # times the E at which computing takes as long as sending: past it, no optimum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawChoice:
    """A law, and what training by it is expected to take; `groups` where they take turns."""

    law: Participation | LazyLaw
    prediction: Prediction
    groups: tuple[GroupCost, ...] = ()


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
    if found := setting.problems(len(problem.fleet)):
        raise InputError(found)
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
    law: str,
    *,
    target_gap: float = 1.0,
) -> LawChoice | None:
    """The cheapest setting of a law that meets the limits; None where none does."""
    if law != Turns.law:
        return _plan_on_lattice(problem, convergence, LAWS[law], target_gap)
    found = plan_turns(problem, convergence, target_gap=target_gap)
    if found is None:
        return None
    return LawChoice(law=found.grouping, groups=found.grouping.rows, prediction=found.prediction)


def least_by_law(
    problem: Problem, convergence: Convergence, law: str, *, target_gap: float = 1.0
) -> dict[str, Prediction]:
    """The least of each limited total that the law can reach."""
    if law == Turns.law:
        found = likely_turns(problem, convergence, target_gap=target_gap)
    else:
        free = replace(problem, limits=problem.limits.ranges_only())
        ks, es = _lattices(free, convergence)
        priced = _priced(free, convergence, LAWS[law], ks, es, target_gap)
        found = [prediction for _, prediction in priced]
    totals = {
        "deadline_s": lambda one: one.time_s,
        "energy_budget_j": lambda one: one.energy_j,
        "max_rounds": lambda one: one.expected_rounds,
    }
    return {
        name: min(found, key=total)
        for name, total in totals.items()
        if found and getattr(problem.limits, name) is not None
    }


def _plan_on_lattice(
    problem: Problem, convergence: Convergence, law: type[Participation], target_gap: float
) -> LawChoice | None:
    """Two passes: a lattice of K and E in ratio, then a finer one around its best."""
    ks, es = _lattices(problem, convergence)
    best = None
    for _ in range(2):
        priced = _priced(problem, convergence, law, ks, es, target_gap)
        best = min(priced, key=lambda one: one[1].cost, default=best)
        if best is None:
            return None
        k, e = best[0].pair
        size = _lattice_size(problem)
        ks = between_neighbours(ks, int(np.searchsorted(ks, k)), size)
        es = between_neighbours(es, int(np.searchsorted(es, e)), size)
    return LawChoice(law=best[0].participation, prediction=best[1]) if best else None


def _lattice_size(problem: Problem) -> int:
    return int(np.clip(np.sqrt(_WORK / problem.fleet.count.size), _FEWEST, _MOST))


def _lattices(problem: Problem, convergence: Convergence) -> tuple[IntArray, IntArray]:
    """The values of K and of E to look at first."""
    low_k, high_k = problem.limits.clients_range(len(problem.fleet))
    low_e, high_e = turns_steps_range(problem.limits, convergence)
    balance = problem.fleet.mean("comm_time_s") / problem.fleet.mean("step_time_s")
    furthest = int(np.clip(_FURTHEST * max(balance, 1.0), low_e, high_e))
    size = _lattice_size(problem)
    return lattice(low_k, high_k, size), lattice(low_e, furthest, size)


def _priced(
    problem: Problem,
    convergence: Convergence,
    law: type[Participation],
    ks: IntArray,
    es: IntArray,
    target_gap: float,
) -> Iterator[tuple[Setting, Prediction]]:
    """The settings that meet the limits and are stable, and what each takes."""
    for e in es.tolist():
        for k in ks.tolist():
            setting = Setting(participation=law.of(problem, e, k), local_steps=e)
            prediction = price_setting(problem, convergence, setting, target_gap=target_gap)
            is_stable = setting.participation.largest_share(problem) <= _LOUDEST
            if is_stable and problem.limits.are_met_by(prediction):
                yield setting, prediction
