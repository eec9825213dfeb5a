"""The map of cost: what every other (K, E) costs above the plan, or above the lowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedplan.core.objective import Objective
from fedplan.figures.cost_view import CostView
from fedplan.figures.style import LEVELS, LEVELS_ABOVE_LOWEST
from fedplan.figures.units import count_axis
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import Surface, cost_surface, lattice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.convergence.bound import Bound
    from fedplan.core.constraints import Constraints
    from fedplan.core.fleet import Fleet, FloatArray, IntArray
    from fedplan.figures.frontier import Mark

_FAR = 50.0  # times the lowest cost; what costs more, or never gets there, is drawn as this

# Most values of (K, E) looked at; fewer in a large fleet, where each E costs a sort of it all.
_GRID, _LARGE_GRID, _LARGE_FLEET = (60, 60), (24, 16), 20_000


def cost_view(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    marks: Sequence[Mark],
    *,
    target_gap: float,
    constraints: Constraints,
    basis: str,
) -> CostView:
    """Extra cost over a grid of every (K, E) the constraints allow, the chosen mark among them.

    basis : what cost is made of, for the title.
    """
    chosen = next(mark for mark in marks if mark.role == "chosen")
    most = _LARGE_GRID if fleet.count.size > _LARGE_FLEET else _GRID
    ks = _values(constraints.clients_range(len(fleet)), most[0], chosen.clients_per_round)
    es = _values(steps_range(constraints, bound), most[1], chosen.local_steps)
    surface = cost_surface(fleet, bound, objective, ks, es, target_gap=target_gap)
    return surface_view(surface, marks, constraints, basis=basis)


def surface_view(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, *, basis: str
) -> CostView:
    """Extra cost over a surface that has the chosen mark's K and E.

    Where nothing is chosen, for nothing meets the limits, it is above the lowest cost.
    """
    chosen = next((mark for mark in marks if mark.role == "chosen"), None)
    scale: tuple[float, ...]
    words: dict[str, str]
    title, name = f"Extra cost of other settings ({basis})", "extra cost"
    cost = surface.cost
    if not cost.any():  # nothing costs anything, and the plan is the fastest
        title, name, cost = "Extra time of other settings (cost is 0)", "extra time", surface.time_s
    if chosen is None:
        extra_cost = np.minimum(cost / cost.min(), _FAR) - 1.0
        scale, words = LEVELS_ABOVE_LOWEST, {"reference": "the lowest"}
    else:
        row = surface.clients_per_round == chosen.clients_per_round
        extra_cost = cost / cost[row][:, surface.local_steps == chosen.local_steps] - 1.0
        scale, words = LEVELS, {}
    return _view(
        surface,
        extra_cost,
        marks,
        constraints,
        title=title,
        quantity=name,
        scale=scale,
        **words,
    )


def _view(
    surface: Surface,
    extra_cost: FloatArray,
    marks: Sequence[Mark],
    constraints: Constraints,
    *,
    scale: tuple[float, ...],
    **words: str,
) -> CostView:
    ks, es = surface.clients_per_round, surface.local_steps
    return CostView(
        clients=count_axis("clients per round K", int(ks[0]), int(ks[-1])),
        steps=count_axis("local steps E", int(es[0]), int(es[-1])),
        clients_per_round=ks,
        local_steps=es,
        extra_cost=extra_cost,
        allowed=constraints.met(surface.time_s, surface.energy_j, surface.expected_rounds),
        scale=scale,
        levels=tuple(v for v in scale if extra_cost.min() < v < extra_cost.max()),
        marks=tuple(marks),
        **words,
    )


def _values(ends: tuple[int, int], most: int, chosen: int) -> IntArray:
    # A robust choice may be past the steps worth taking by the bound that predicts.
    low, high = min(ends[0], chosen), max(ends[1], chosen)
    if high - low < most:
        return lattice(low, high, most)
    # The plan must be on the grid: the smallest contours are around it.
    return np.union1d(lattice(low, high, most - 1), [chosen])
