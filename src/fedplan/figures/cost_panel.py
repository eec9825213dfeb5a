"""The cost panel's data: what every other (K, E) costs above the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.units import NO_UNIT, Axis, count_axis, fit_axis
from fedplan.theory.cost import Objective, Prediction
from fedplan.theory.descent_plan import settings_within_reach
from fedplan.theory.descent_surface import descent_surface
from fedplan.theory.grid import Surface, cost_surface, lattice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fedplan.figures.frontier import Mark
    from fedplan.theory.constraints import Constraints
    from fedplan.theory.convergence import Bound
    from fedplan.theory.descent import Descent
    from fedplan.theory.fleet import Fleet, FloatArray, IntArray

# Contours of extra cost. Negative ones show only where the plan is not the cheapest setting:
# the robust choice gives up a little, the paper's more.
LEVELS = (-0.5, -0.2, -0.05, -0.01, 0.01, 0.05, 0.2, 1.0)
# Contours of cost above the lowest, where that is what others are compared with.
LEVELS_ABOVE_LOWEST = (0.05, 0.1, 0.25, 0.5, 1.0)
_BELOW, _ABOVE = -0.8, 4.0  # what the next levels would be
_FAR = 50.0  # times the lowest cost; what costs more, or never gets there, is drawn as this

# Most values of (K, E) looked at; fewer in a large fleet, where each E costs a sort of it all.
_GRID, _LARGE_GRID, _LARGE_FLEET = (60, 60), (24, 16), 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostCurve:
    """Cost over the plan's along K or E alone; `places` are those of the panel's marks."""

    x: Axis
    y: Axis
    values: IntArray
    ratio: FloatArray
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostPanel:
    """Extra cost over (K, E), ready to be drawn.

    extra_cost : cost / planned (or lowest) cost - 1, one row a K and one column an E.
    allowed : where the limits on time, energy and rounds hold, of the same shape.
    scale, levels : the contours there may be, and of them those that the costs cross.
    marks : the plan and other settings; `has` says whether one is within the grid.
    """

    title: str
    quantity: str
    clients: Axis
    steps: Axis
    clients_per_round: IntArray
    local_steps: IntArray
    extra_cost: FloatArray
    allowed: NDArray[np.bool_]
    levels: tuple[float, ...]
    marks: tuple[Mark, ...]
    scale: tuple[float, ...] = LEVELS
    reference: str = "the plan's"  # whose cost is 1

    @property
    def is_map(self) -> bool:
        """Whether both K and E have more than one value; else there is only a curve to draw."""
        return self.clients_per_round.size > 1 and self.local_steps.size > 1

    def has(self, mark: Mark) -> bool:
        """Whether a mark's K and E are within the grid."""
        return self.clients.has(mark.clients_per_round) and self.steps.has(mark.local_steps)

    def explained(self, mark: Mark) -> str:
        """What a legend of this panel alone calls a mark; all pilots are called the same."""
        return "pilots" if mark.role == "pilot" else mark.legend

    def curve(self) -> CostCurve:
        """The panel as a curve, where K or E has a single value."""
        over_steps = self.extra_cost.shape[0] == 1
        values = self.local_steps if over_steps else self.clients_per_round
        ratio = self.extra_cost.ravel() + 1.0
        positions = [m.local_steps if over_steps else m.clients_per_round for m in self.marks]
        return CostCurve(
            x=self.steps if over_steps else self.clients,
            y=fit_axis(
                f"{self.quantity.removeprefix('extra ')} / {self.reference}",
                NO_UNIT,
                ratio.tolist(),
            ),
            values=values,
            ratio=ratio,
            places=tuple((at, float(np.interp(at, values, ratio))) for at in positions),
        )

    def bands(self, extra_cost: FloatArray) -> FloatArray:
        """Extra cost on a scale where `levels[i]` is i, from -1 to len(levels).

        Its contours are evenly spaced, the only ones plotly draws. It has neither kinks nor steep
        parts, which would show as ragged contours.
        """
        from scipy.interpolate import PchipInterpolator

        if not self.levels:
            return np.full(extra_cost.shape, -0.5)
        around = (_BELOW, *self.scale, _ABOVE)
        first, last = around.index(self.levels[0]), around.index(self.levels[-1])
        low = min(around[first - 1], float(extra_cost.min()))
        high = max(around[last + 1], float(extra_cost.max()))
        knots = np.log1p([low, *self.levels, high])
        scale = PchipInterpolator(knots, np.arange(knots.size) - 1.0)
        return np.asarray(scale(np.log1p(extra_cost)))

    def smooth(self, points: int = 200) -> tuple[FloatArray, FloatArray, FloatArray]:
        """K, E and extra cost on a fine grid, by splines: round contours from a coarse grid.

        The inverse of cost is smooth over the logarithms of K and E, even where cost rises without
        an end, and the splines go through every point.
        """
        from scipy.interpolate import RectBivariateSpline

        ks, es = np.log(self.clients_per_round), np.log(self.local_steps)
        spline = RectBivariateSpline(
            ks, es, 1.0 / (1.0 + self.extra_cost), kx=min(3, ks.size - 1), ky=min(3, es.size - 1)
        )
        fine_k, fine_e = (np.linspace(axis[0], axis[-1], points) for axis in (ks, es))
        inverse = np.maximum(spline(fine_k, fine_e), 0.5 / (1.0 + self.extra_cost.max()))
        return np.exp(fine_k), np.exp(fine_e), 1.0 / inverse - 1.0


def cost_panel(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    marks: Sequence[Mark],
    *,
    target_gap: float,
    constraints: Constraints,
    basis: str,
) -> CostPanel:
    """Extra cost over a grid of every (K, E) the constraints allow, the chosen mark among them.

    basis : what cost is made of, for the title.
    """
    chosen = next(mark for mark in marks if mark.role == "chosen")
    most = _LARGE_GRID if fleet.count.size > _LARGE_FLEET else _GRID
    ks = _values(constraints.clients_range(len(fleet)), most[0], chosen.clients_per_round)
    es = _values(constraints.steps_range(bound), most[1], chosen.local_steps)
    surface = cost_surface(fleet, bound, objective, ks, es, target_gap=target_gap)
    return surface_panel(surface, marks, constraints, basis=basis)


def surface_panel(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, *, basis: str
) -> CostPanel:
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
    return _panel(
        surface,
        extra_cost,
        marks,
        constraints,
        title=title,
        quantity=name,
        scale=scale,
        log=None,
        **words,
    )


def descent_cost_panel(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    marks: Sequence[Mark],
    lowest: Prediction,
    *,
    constraints: Constraints,
    basis: str,
) -> CostPanel:
    """Cost above the lowest by the likeliest descent, where pilots and marks are and between.

    lowest : what the cheapest setting takes; the first of the marks is on the grid.
    """
    most = _LARGE_GRID if fleet.count.size > _LARGE_FLEET else _GRID
    clients, steps = settings_within_reach(fleet, descent, constraints)
    clients = _around(clients, [mark.clients_per_round for mark in marks])
    steps = _around(steps, [mark.local_steps for mark in marks])
    ks = _values(clients, most[0], marks[0].clients_per_round)
    es = _values(steps, most[1], marks[0].local_steps)
    surface = descent_surface(fleet, descent, objective, ks, es)
    return _panel(
        surface,
        np.minimum(surface.cost / lowest.cost, _FAR) - 1.0,
        marks,
        constraints,
        title=f"Cost above the lowest, as fitted ({basis})",
        quantity="extra cost",
        scale=LEVELS_ABOVE_LOWEST,
        log=True,
        reference="the lowest",
    )


def _panel(
    surface: Surface,
    extra_cost: FloatArray,
    marks: Sequence[Mark],
    constraints: Constraints,
    *,
    scale: tuple[float, ...],
    log: bool | None,
    **words: str,
) -> CostPanel:
    ks, es = surface.clients_per_round, surface.local_steps
    return CostPanel(
        clients=count_axis("clients per round K", int(ks[0]), int(ks[-1]), log=log),
        steps=count_axis("local steps E", int(es[0]), int(es[-1]), log=log),
        clients_per_round=ks,
        local_steps=es,
        extra_cost=extra_cost,
        allowed=constraints.met(surface.time_s, surface.energy_j, surface.expected_rounds),
        scale=scale,
        levels=tuple(v for v in scale if extra_cost.min() < v < extra_cost.max()),
        marks=tuple(marks),
        **words,
    )


def _around(ends: tuple[int, int], values: Sequence[int]) -> tuple[int, int]:
    return min(ends[0], *values), max(ends[1], *values)


def _values(ends: tuple[int, int], most: int, chosen: int) -> IntArray:
    # A robust choice may be past the steps worth taking by the bound that predicts.
    low, high = min(ends[0], chosen), max(ends[1], chosen)
    if high - low < most:
        return lattice(low, high, most)
    # The plan must be on the grid: the smallest contours are around it.
    return np.union1d(lattice(low, high, most - 1), [chosen])
