"""Grids: the (K, E) that the figures look at, and the values of each slider.

The ladders of a grid depend on the fleet and on how far E goes, not on prices, limits or the plan,
so moving a slider finds every round time in the fleet's memory; only the plan's own row and column
are new.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.participation import uniform
from fedplan.participation.rankings import round_times_s
from fedplan.planning.predict import price_setting
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import STEPS_A_DECADE, Surface, cost_surface, ladder, lattice
from fedplan.web.question import Question

_SMALL = 2_000  # entries; a larger fleet has a coarser ladder, for each E is a sort of it
_CLIENTS, _FEWER_CLIENTS = 128, 40
_ALL_STEPS = 64  # up to here every E is looked at
_A_DECADE = 24  # of E beyond, for a small fleet
_SLIDER = 64  # values of a slider


class Grid:
    """Round times of a fleet over (K, E): the ladders, and the settings that must be on them."""

    def __init__(
        self, fleet: Fleet, bound: Bound, ranges: Constraints, settings: list[tuple[int, int]]
    ) -> None:
        self.fleet, self.bound, self._ranges = fleet, bound, ranges
        small = fleet.count.size <= _SMALL
        steps = steps_range(Constraints(max_local_steps=ranges.max_local_steps), bound)[1]
        ks = lattice(1, len(fleet), _CLIENTS if small else _FEWER_CLIENTS)
        es = np.union1d(_steps(steps, small=small), [e for _, e in settings])
        extra = np.setdiff1d([k for k, _ in settings], ks).astype(np.int64)
        seconds = round_times_s(fleet, ks, es)
        for k in extra.tolist():
            seconds = np.concatenate([seconds, round_times_s(fleet, np.array([k]), es)])
        order = np.argsort(np.concatenate([ks, extra]))
        self.clients_per_round: IntArray = np.concatenate([ks, extra])[order]
        self.local_steps: IntArray = es.astype(np.int64)
        self.seconds: FloatArray = seconds[order]

    def surface(
        self, objective: Objective, target_gap: float, *, bound: Bound | None = None
    ) -> Surface:
        """Rounds, seconds, joules and cost over the whole grid, by this bound or another."""
        return cost_surface(
            self.fleet,
            bound or self.bound,
            objective,
            self.clients_per_round,
            self.local_steps,
            target_gap=target_gap,
            seconds=self.seconds,
        )

    def allowed(self, surface: Surface, settings: list[tuple[int, int]]) -> Surface:
        """The part of a surface within the ranges of K and E, and around these settings."""
        low_k, high_k = self._ranges.clients_range(len(self.fleet))
        low_e, high_e = steps_range(self._ranges, self.bound)
        for k, e in settings:
            low_k, high_k = min(low_k, k), max(high_k, k)
            low_e, high_e = min(low_e, e), max(high_e, e)
        rows = _within(surface.clients_per_round, low_k, high_k)
        columns = _within(surface.local_steps, low_e, high_e)
        return Surface(
            clients_per_round=surface.clients_per_round[rows],
            local_steps=surface.local_steps[columns],
            expected_rounds=surface.expected_rounds[rows, columns],
            time_s=surface.time_s[rows, columns],
            energy_j=surface.energy_j[rows, columns],
            cost=surface.cost[rows, columns],
        )


def _within(values: IntArray, low: int, high: int) -> slice:
    start = int(np.searchsorted(values, low, "left"))
    end = int(np.searchsorted(values, high, "right"))
    if start == end:  # between two points of the ladder: the next one stands for it
        start = min(start, values.size - 1)
        end = start + 1
    return slice(start, end)


def _steps(high: int, *, small: bool) -> IntArray:
    if small and high <= _ALL_STEPS:
        return np.arange(1, high + 1)
    return ladder(1, high, _A_DECADE if small else STEPS_A_DECADE)


def scales_of(question: Question, surface: Surface | None) -> dict[str, list[float]]:
    """The values of each slider by name: by ratio, round, the same while limits move.

    surface : of all (K, E) of uniform sampling; None where no bound is known.
    """
    if surface is not None:
        times, energies = surface.time_s, surface.energy_j
        most_steps = 2 * int(surface.local_steps[-1])
    else:
        times, energies, most_steps = _some_totals(question)
    scales = {
        "deadline_s": _ladder(0.5 * float(times.min()), 20.0 * float(times.min())),
        "clients_per_round": lattice(1, len(question.fleet), _SLIDER).tolist(),
        "local_steps": lattice(1, most_steps, _SLIDER).tolist(),
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
    values = np.geomspace(low, high, _SLIDER)
    return sorted({float(f"{value:.3g}") for value in values.tolist()})
