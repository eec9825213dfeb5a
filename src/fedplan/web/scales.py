"""Scales: the values of each slider: by ratio, round numbers, the same while limits move."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import Saturation
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.participation import uniform
from fedplan.planning.predict import price_setting
from fedplan.planning.surface import Surface, lattice
from fedplan.web.question import Question

_LADDER = 64  # values of a slider


def scales_of(question: Question, surface: Surface | None) -> dict[str, list[float]]:
    """The values by name of a scale.

    surface : of all (K, E) of uniform sampling; None where no bound is known.
    """
    if surface is not None:
        times, energies = surface.time_s, surface.energy_j
        most_steps = 2 * int(surface.local_steps[-1])
    else:
        times, energies, most_steps = _some_totals(question)
    scales = {
        "deadline_s": _ladder(0.5 * float(times.min()), 20.0 * float(times.min())),
        "clients_per_round": lattice(1, len(question.fleet), _LADDER).tolist(),
        "local_steps": lattice(1, most_steps, _LADDER).tolist(),
    }
    if energies.any():
        least = float(energies[energies > 0].min())
        scales["energy_budget_j"] = _ladder(0.5 * least, 20.0 * least)
    return scales | _bound_scales(question)


def _some_totals(question: Question) -> tuple[np.ndarray, np.ndarray, int]:
    """Seconds and joules of a few settings, and local steps beyond which nobody looks."""
    known, fleet = question.knowledge, question.fleet
    if not isinstance(known, Saturation):
        raise TypeError("without a bound, a saturation is assumed")
    balance = known.best_steps(fleet.mean("step_time_s"), fleet.mean("comm_time_s"))
    steps = max(1, round(balance))
    problem = Problem(fleet=fleet, objective=Objective.weighted(0.0))
    found = [
        price_setting(problem, known, uniform(clients, steps))
        for clients in (1, math.isqrt(len(fleet)), len(fleet))
    ]
    totals = np.array([(one.time_s, one.energy_j) for one in found])
    return totals[:, 0], totals[:, 1], 20 * steps


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
    values = np.geomspace(low, high, _LADDER)
    return sorted({float(f"{value:.3g}") for value in values.tolist()})
