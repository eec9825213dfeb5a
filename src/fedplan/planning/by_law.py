"""The cheapest setting for any law: certified, by turns, or on a lattice of K and E."""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import TOTALS
from fedplan.core.fleet import IntArray
from fedplan.core.plan import LazyLaw
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Prediction, Setting
from fedplan.participation import LAWS, Turns, Uniform, uniform
from fedplan.planning.exact import minimise
from fedplan.planning.predict import Convergence, price_setting
from fedplan.planning.surface import between_neighbours, lattice
from fedplan.planning.turns import Choice, likely_turns, plan_turns, turns_steps_range

AnyChoice = Choice[Participation | LazyLaw]
# The most that a client's update may weigh, relative to a round of all clients: larger steps are
# unstable if the usual ones are nearly so.
_LOUDEST = 2.0
_WORK = 4e5  # devices times settings looked at
_FEWEST, _MOST = 3, 24  # values of K, and of E, at a time
_FURTHEST = 100  # times the E at which computing takes as long as sending: past it, no optimum


def plan_by_law(problem: Problem, convergence: Convergence, law: str) -> AnyChoice | None:
    """The cheapest setting of a law that meets the limits; None if there is none.

    For uniform sampling with a bound it is the certified optimum.
    """
    if law == Turns.law:
        return plan_turns(problem, convergence)
    if law != Uniform.law or not isinstance(convergence, Bound):
        return _plan_on_lattice(problem, convergence, LAWS[law])
    best = minimise(problem, convergence)
    if best is None:
        return None
    setting = uniform(*best.setting)
    prediction = price_setting(problem, convergence, setting)
    # Priced anew the same setting may differ in the last digit.
    lower_bound = min(best.lower_bound, prediction.cost)
    return Choice(law=setting.participation, prediction=prediction, lower_bound=lower_bound)


def least_by_law(problem: Problem, convergence: Convergence, law: str) -> dict[str, Prediction]:
    """The least of each limited total that the law can reach."""
    if law == Turns.law:
        found = [choice.prediction for choice in likely_turns(problem, convergence)]
    else:
        free = replace(problem, limits=problem.limits.ranges_only())
        ks, es = _lattices(free, convergence)
        priced = _priced(free, convergence, LAWS[law], ks, es)
        found = [prediction for _, prediction in priced]
    return {
        name: min(found, key=attrgetter(total))
        for name, total in TOTALS.items()
        if found and getattr(problem.limits, name) is not None
    }


def _plan_on_lattice(
    problem: Problem, convergence: Convergence, law: type[Participation]
) -> AnyChoice | None:
    """Two passes: a lattice of K and E in ratio, then a finer one around its best."""
    ks, es = _lattices(problem, convergence)
    best = None
    for _ in range(2):
        priced = _priced(problem, convergence, law, ks, es)
        best = min(priced, key=lambda one: one[1].cost, default=best)
        if best is None:
            return None
        k, e = best[0].pair
        size = _lattice_size(problem)
        ks = between_neighbours(ks, int(np.searchsorted(ks, k)), size)
        es = between_neighbours(es, int(np.searchsorted(es, e)), size)
    return Choice(law=best[0].participation, prediction=best[1]) if best else None


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
    problem: Problem, convergence: Convergence, law: type[Participation], ks: IntArray, es: IntArray
) -> Iterator[tuple[Setting, Prediction]]:
    """The settings that meet the limits and are stable, and what each takes."""
    for e in es.tolist():
        for k in ks.tolist():
            setting = Setting(participation=law.of(problem, e, k), local_steps=e)
            prediction = price_setting(problem, convergence, setting)
            is_stable = setting.participation.largest_share(problem) <= _LOUDEST
            if is_stable and problem.limits.are_met_by(prediction):
                yield setting, prediction
