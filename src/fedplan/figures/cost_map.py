"""The map of cost: what every other (K, E) costs above the plan, or above the lowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.axes import count_axis, fit_axis
from fedplan.figures.spec import Categories, Line, Map, Panel, Part, Shaded, scale_panel, spot
from fedplan.figures.style import BLUE, LEVELS, Look, band_colours, looks
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import Surface, cost_surface, lattice
from fedplan.words import NO_UNIT

if TYPE_CHECKING:
    from fedplan.convergence.bound import Bound
    from fedplan.core.constraints import Constraints
    from fedplan.core.fleet import Fleet, FloatArray, IntArray
    from fedplan.core.objective import Objective
    from fedplan.figures.frontier import Mark

_FAR = 50.0  # times the lowest cost; what costs more, or never gets there, is drawn as this
_BELOW, _ABOVE = -0.8, 4.0  # what the next levels would be
_FINE = 110  # points along each axis of the drawn map

# Most values of (K, E) looked at; fewer in a large fleet, where each E costs a sort of it all.
_GRID, _LARGE_GRID, _LARGE_FLEET = (60, 60), (24, 16), 20_000


def surface_around(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    chosen: tuple[int, int],
    *,
    target_gap: float,
    constraints: Constraints,
) -> Surface:
    """Costs over a grid of every (K, E) the constraints allow, the chosen one among them."""
    most = _LARGE_GRID if fleet.count.size > _LARGE_FLEET else _GRID
    ks = _values(constraints.clients_range(len(fleet)), most[0], chosen[0])
    es = _values(steps_range(constraints, bound), most[1], chosen[1])
    return cost_surface(fleet, bound, objective, ks, es, target_gap=target_gap)


def cost_panels(
    surface: Surface,
    marks: Sequence[Mark],
    constraints: Constraints,
    *,
    basis: str,
    points: int = _FINE,
) -> tuple[Panel, ...]:
    """Extra cost over a surface that has the chosen mark's K and E: a map and its scale of colours.

    Where K or E has a single value there is a curve instead. Where nothing is chosen, for nothing
    meets the limits, extra cost is above the lowest.

    basis : what cost is made of, for the title.
    points : of each axis of the map.
    """
    title, quantity, extra = _extra_cost(surface, marks, basis)
    ks, es = surface.clients_per_round, surface.local_steps
    x = count_axis("local steps E", int(es[0]), int(es[-1]))
    y = count_axis("clients per round K", int(ks[0]), int(ks[-1]))
    held = [mark for mark in marks if y.has(mark.clients_per_round) and x.has(mark.local_steps)]
    if ks.size > 1 and es.size > 1:
        marked = _marks(marks, held, [(m.local_steps, m.clients_per_round) for m in marks])
        drawn, levels = _map(extra, ks, es, points, quantity), _crossed(extra)
        parts = (drawn, *marked, *_forbidden(surface, constraints))
        names = tuple(f"{level:+.0%}" for level in levels)
        strip = scale_panel(Categories(names=names, label=quantity, upward=True), drawn.colours)
        panel = Panel(x=x, y=y, parts=parts, title=title)
        return (panel, strip) if names else (panel,)
    over_steps = ks.size == 1
    values, ratio = (es if over_steps else ks).astype(float), extra.ravel() + 1.0
    dots = Look(colour=BLUE, symbol="circle", size=4.0)
    at = [mark.local_steps if over_steps else mark.clients_per_round for mark in marks]
    places = [(place, float(np.interp(place, values, ratio))) for place in at]
    line = Line(x=values, y=ratio, width=1.2, look=dots, hover="{x}: {y}")
    reference = "the plan's" if any(mark.role == "chosen" for mark in marks) else "the lowest"
    label = f"{quantity.removeprefix('extra ')} / {reference}"
    panel = Panel(
        x=x if over_steps else y,
        y=fit_axis(label, NO_UNIT, ratio.tolist()),
        parts=(line, *_marks(marks, held, places)),
        title=title,
    )
    return (panel,)


def _extra_cost(surface: Surface, marks: Sequence[Mark], basis: str) -> tuple[str, str, FloatArray]:
    """A title, what is shown, and cost / planned (or lowest) cost - 1, one row for each K."""
    title, quantity, cost = f"Extra cost of other settings ({basis})", "extra cost", surface.cost
    if not cost.any():  # nothing costs anything, and the plan is the fastest
        title, quantity = "Extra time of other settings (cost is 0)", "extra time"
        cost = surface.time_s
    chosen = next((mark for mark in marks if mark.role == "chosen"), None)
    if chosen is None:
        return title, quantity, np.minimum(cost / cost.min(), _FAR) - 1.0
    row = surface.clients_per_round == chosen.clients_per_round
    planned = cost[row][:, surface.local_steps == chosen.local_steps]
    return title, quantity, cost / planned - 1.0


def _crossed(extra: FloatArray) -> tuple[float, ...]:
    """The contours that the costs cross."""
    return tuple(level for level in LEVELS if extra.min() < level < extra.max())


def _map(extra: FloatArray, ks: IntArray, es: IntArray, points: int, quantity: str) -> Map:
    """On a fine grid, by splines: round contours from a coarse one.

    The inverse of cost is smooth over the logarithms of K and E, even where cost rises without an
    end, and the splines go through every point.
    """
    from scipy.interpolate import RectBivariateSpline

    log_k, log_e = np.log(ks), np.log(es)
    inverse, levels = 1.0 / (1.0 + extra), _crossed(extra)
    spline = RectBivariateSpline(
        log_k, log_e, inverse, kx=min(3, ks.size - 1), ky=min(3, es.size - 1)
    )
    fine_k, fine_e = (np.linspace(axis[0], axis[-1], points) for axis in (log_k, log_e))
    values = 1.0 / np.maximum(spline(fine_k, fine_e), 0.5 * inverse.min()) - 1.0
    return Map(
        x=np.exp(fine_e),
        y=np.exp(fine_k),
        steps=_steps(values, levels),
        values=values,
        colours=tuple(band_colours(levels)),
        quantity=quantity,
        hover="K={y}, E={x}",
    )


def _steps(values: FloatArray, levels: tuple[float, ...]) -> FloatArray:
    """Extra cost on a scale where `levels[i]` is i, from -1 to len(levels).

    Its contours are evenly spaced, the only ones plotly draws. It has neither kinks nor steep
    parts, which would show as ragged contours.
    """
    from scipy.interpolate import PchipInterpolator

    if not levels:
        return np.full(values.shape, -0.5)
    around = (_BELOW, *LEVELS, _ABOVE)
    low = min(around[around.index(levels[0]) - 1], float(values.min()))
    high = max(around[around.index(levels[-1]) + 1], float(values.max()))
    knots = np.log1p([low, *levels, high])
    scale = PchipInterpolator(knots, np.arange(knots.size) - 1.0)
    return np.asarray(scale(np.log1p(values)))


def _forbidden(surface: Surface, constraints: Constraints) -> list[Shaded]:
    allowed = constraints.met(surface.time_s, surface.energy_j, surface.expected_rounds)
    if allowed.all():
        return []
    x, y = surface.local_steps.astype(float), surface.clients_per_round.astype(float)
    return [Shaded(x=x, y=y, inside=~allowed, name="over a limit")]


def _marks(
    marks: Sequence[Mark], held: Sequence[Mark], places: Sequence[tuple[float, float]]
) -> list[Part]:
    """Those of the marks whose K and E are within the grid."""
    return [
        spot(*place, look, name=mark.legend, hover=f"<b>{mark.legend}</b>")
        for mark, place, look in zip(marks, places, looks(marks), strict=True)
        if mark in held
    ]


def _values(ends: tuple[int, int], most: int, chosen: int) -> IntArray:
    # A robust choice may be past the steps worth taking by the bound that predicts.
    low, high = min(ends[0], chosen), max(ends[1], chosen)
    if high - low < most:
        return lattice(low, high, most)
    # The plan must be on the grid: the smallest contours are around it.
    return np.union1d(lattice(low, high, most - 1), [chosen])
