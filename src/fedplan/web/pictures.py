"""Pictures: what the page draws, as compact arrays and axes ready for plotly; no drawing here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.figures.cost_map import surface_view
from fedplan.figures.cost_view import CostView
from fedplan.figures.for_screen import axis_layout
from fedplan.figures.frontier import FrontierView, Mark, frontier_view
from fedplan.figures.style import band_colours, level_label, looks
from fedplan.figures.units import (
    NO_UNIT,
    count_axis,
    energy_unit,
    fit_axis,
    quantity,
    time_unit,
)
from fedplan.planning.frontier import FrontierPoint, frontier_of
from fedplan.planning.surface import Surface
from fedplan.web.grids import Grid

_MAP_POINTS = 48  # an axis of the map: smooth, and little to send
_HIGHEST_RATIO = 3.0  # of cost curves; what is dearer is off the picture


def words_of(time_s: float, energy_j: float) -> tuple[str, str]:
    """Seconds and joules people can read."""
    return quantity(time_s, time_unit(time_s)), quantity(energy_j, energy_unit(energy_j))


def frontier_picture(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, note: str | bool
) -> dict[str, Any]:
    """The time-energy frontier within the ranges of K and E; limits on totals are lines."""
    points = frontier_of(surface, Constraints())
    data = frontier_view(points, marks, relative=note, constraints=constraints)
    met = constraints.met(
        [p.time_s for p in points],
        [p.energy_j for p in points],
        [_rounds_at(surface, p) for p in points] if constraints.max_rounds is not None else 0.0,
    )
    return {
        "x": [round_number(data.time.shown(p.time_s)) for p in points],
        "y": [round_number(data.energy.shown(p.energy_j)) for p in points],
        "setting": [[p.clients_per_round, p.local_steps] for p in points],
        "weights": [_weights(point) for point in points],
        "words": [", ".join(words_of(p.time_s, p.energy_j)) for p in points],
        "met": met.tolist(),
        "marks": [_frontier_mark(data, mark, look) for mark, look in _looked_at(marks)],
        "lines": [
            {"along": along, "at": round_number(at / axis.unit.size), "name": name}
            for along, at, name in data.limits()
            for axis in (data.time if along == "x" else data.energy,)
        ],
        "xaxis": axis_layout(data.time),
        "yaxis": axis_layout(data.energy),
        "note": data.note,
    }


def map_picture(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, basis: str
) -> dict[str, Any]:
    """Extra cost over (K, E): a map, or a curve where K or E has a single value."""
    panel = surface_view(surface, marks, constraints, basis=basis)
    picture: dict[str, Any] = {
        "title": panel.title,
        "quantity": panel.quantity,
        "marks": [
            {**_mark(mark, look), "x": mark.local_steps, "y": mark.clients_per_round}
            for mark, look in _looked_at(marks)
            if panel.has(mark)
        ],
        "xaxis": axis_layout(panel.steps),
        "yaxis": axis_layout(panel.clients),
        "is_map": panel.is_map,
    }
    return picture | (_contours(panel) if panel.is_map else {})


def curve_pictures(
    grid: Grid, objective: Objective, chosen: tuple[int, int], others: Sequence[Bound], gap: float
) -> dict[str, Any]:
    """Cost over the plan's along E and along K, and the band of it if the bound were another.

    A band is the lowest and the highest ratio over the other bounds, each to the plan's own cost
    under the same bound.
    """
    row = int(np.searchsorted(grid.clients_per_round, chosen[0]))
    column = int(np.searchsorted(grid.local_steps, chosen[1]))

    def ratios(bound: Bound | None) -> tuple[FloatArray, FloatArray]:
        surface = grid.surface(objective, gap, bound=bound)
        cost = surface.cost if surface.cost.any() else surface.time_s
        return cost[row] / cost[row, column], cost[:, column] / cost[row, column]

    by_steps, by_clients = ratios(None)
    moved = [ratios(bound) for bound in others]
    return {
        "steps": _curve(grid.local_steps, by_steps, [m[0] for m in moved], "local steps E"),
        "clients": _curve(
            grid.clients_per_round, by_clients, [m[1] for m in moved], "clients per round K"
        ),
    }


def _contours(panel: CostView) -> dict[str, Any]:
    clients, steps, extra_cost = panel.smooth(_MAP_POINTS)
    colours = band_colours(panel.levels, panel.scale)
    return {
        "x": rounded(steps),
        "y": rounded(clients),
        "bands": panel.bands(extra_cost).round(2).tolist(),
        "extra": extra_cost.round(3).tolist(),
        "colours": colours,
        "levels": [level_label(level) for level in panel.levels],
        "forbidden": None
        if panel.allowed.all()
        else {
            "x": panel.local_steps.tolist(),
            "y": panel.clients_per_round.tolist(),
            "z": (~panel.allowed).astype(int).tolist(),
        },
    }


def _curve(
    values: IntArray, ratio: FloatArray, others: Sequence[FloatArray], name: str
) -> dict[str, Any]:
    shown = ratio <= _HIGHEST_RATIO
    first, last = np.flatnonzero(shown)[[0, -1]]
    part = slice(max(int(first) - 1, 0), int(last) + 2)
    band = np.stack([ratio, *others])[:, part]
    axis = count_axis(name, int(values[part][0]), int(values[part][-1]))
    top = float(np.minimum(np.max(ratio[part]), _HIGHEST_RATIO))
    low = float(min(1.0, band[0].min()))
    cost = fit_axis("cost / the plan's", NO_UNIT, [low, max(top, 1.02)], log=False)
    return {
        "x": values[part].tolist(),
        "y": rounded(band[0]),
        "low": rounded(band.min(axis=0)),
        "high": rounded(band.max(axis=0)),
        "xaxis": axis_layout(axis),
        "yaxis": axis_layout(cost),
    }


def _looked_at(marks: Sequence[Mark]) -> list[tuple[Mark, Any]]:
    return list(zip(marks, looks(marks), strict=True))


def _mark(mark: Mark, look: Any) -> dict[str, Any]:
    return {
        "role": mark.role,
        "name": mark.legend,
        "colour": look.colour,
        "symbol": look.symbol,
        "size": 1.35 * look.size,
    }


def _frontier_mark(data: FrontierView, mark: Mark, look: Any) -> dict[str, Any]:
    beyond = "" if data.shows(mark) else f" {data.whereabouts(mark)}"
    return {
        **_mark(mark, look),
        "name": mark.legend + beyond,
        "x": round_number(data.time.pinned(mark.time_s)),
        "y": round_number(data.energy.pinned(mark.energy_j)),
        "words": ", ".join(words_of(mark.time_s, mark.energy_j)),
    }


def _rounds_at(surface: Surface, point: FrontierPoint) -> float:
    clients, steps = point.pair
    row = np.searchsorted(surface.clients_per_round, clients)
    column = np.searchsorted(surface.local_steps, steps)
    return float(surface.expected_rounds[row, column])


def _weights(point: FrontierPoint) -> str:
    if point.energy_weight_from is None or point.energy_weight_to is None:
        return ""
    return f"{point.energy_weight_from:.3g} to {point.energy_weight_to:.3g}"


def round_number(value: float) -> float:
    """Enough digits for a picture, and few to send."""
    return float(f"{value:.5g}")


def rounded(values: FloatArray) -> list[float]:
    """The same of all values."""
    return [round_number(value) for value in values.tolist()]
