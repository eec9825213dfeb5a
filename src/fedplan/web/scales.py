"""The values of each slider of the page: in ratio, and the same while limits move."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.participation import uniform
from fedplan.planning.predict import price_setting
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import cost_surface, lattice
from fedplan.web.question import Question

_VALUES = 64  # of a slider
_STEPS = 8  # numbers of local steps that are priced


def scales_of(question: Question) -> dict[str, list[float]]:
    """The values by the name of what the slider sets; those of totals by the least of a few."""
    known, fleet, gap = question.knowledge, question.fleet, question.convergence.target_gap
    clients, objective = [1, math.isqrt(len(fleet)), len(fleet)], Objective.weighted(0.0)
    if isinstance(known, Saturation):
        balance = known.best_steps(fleet.mean("step_time_s"), fleet.mean("comm_time_s"))
        steps, problem = max(1, round(balance)), Problem(fleet=fleet, objective=objective)
        some = [price_setting(problem, known, uniform(k, steps)) for k in clients]
        most_steps, times = 20 * steps, np.array([one.time_s for one in some])
        energies = np.array([one.energy_j for one in some])
    else:
        bound, _, reach = what_is_known(known, None)
        high = steps_range(reach, bound)[1]
        es = lattice(1, high, _STEPS)
        surface = cost_surface(fleet, bound, objective, clients, es, target_gap=gap)
        most_steps, times, energies = 2 * high, surface.time_s, surface.energy_j
    scales = {
        "deadline_s": _around(float(times.min())),
        "clients_per_round": lattice(1, len(fleet), _VALUES).tolist(),
        "local_steps": lattice(1, most_steps, _VALUES).tolist(),
    }
    if energies.any():
        scales["energy_budget_j"] = _around(float(energies[energies > 0].min()))
    return scales | _bound_scales(question)


def _around(least: float) -> list[float]:
    return _ladder(0.5 * least, 20.0 * least)


def _bound_scales(question: Question) -> dict[str, list[float]]:
    known = question.reference
    intervals = known.intervals if isinstance(known, Estimate) else {}
    reference = known.bound if isinstance(known, Estimate) else known
    scales = {}
    for name in ("a0", "b0", "c0"):
        value = getattr(reference, name)
        low, high = value / 10, value * 10
        if name in intervals:
            interval = intervals[name]
            low, high = max(interval[0], value / 1000), min(interval[1], value * 1000)
        if value > 0 and low < high:
            scales[name] = _ladder(low, high)
    return scales


@lru_cache(maxsize=256)
def _ladder(low: float, high: float) -> list[float]:
    values = np.geomspace(low, high, _VALUES)
    return sorted({float(f"{value:.3g}") for value in values.tolist()})
