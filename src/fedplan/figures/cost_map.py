"""The cost map: how much more every other (K, E) costs than the plan or the best."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy  # its parts load when they are used

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.figures.axes import Axis, count_axis, fit_axis
from fedplan.figures.frontier import Mark, looks
from fedplan.figures.spec import Categories, Line, Map, Panel, Points, Shaded, scale_panel, spot
from fedplan.figures.style import LEVELS, Look, band_colours
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import STEPS_PER_DECADE, Surface, cost_surface, ladder, lattice
from fedplan.words import NO_UNIT

_FAR = 50.0  # times the lowest cost; what costs more, or never gets there, is drawn as this
_BELOW, _ABOVE = -0.8, 4.0  # what the next levels would be
_FINE = 110  # points along each axis of the drawn map
_HIGHEST_RATIO = 3.0  # of cost curves; higher ones are cut off

_SMALL = 2_000  # entries; a larger fleet has a coarser grid, since each E needs a sort
_CLIENTS, _FEWER_CLIENTS = 128, 40
_ALL_STEPS = 64  # up to here every E is looked at
_PER_DECADE = 24  # of E beyond, for a small fleet


def grid_surface(problem: Problem, bound: Bound, settings: Sequence[tuple[int, int]]) -> Surface:
    """Costs over the (K, E) that figures look at, these settings among them.

    The rest of the grid depends on the fleet and on how far E goes, not on prices, other limits or
    the plan: when those change, every round time is in the fleet's cache.
    """
    fleet = problem.fleet
    is_small = fleet.count.size <= _SMALL
    most = Constraints(max_local_steps=problem.limits.max_local_steps)
    high = steps_range(most, bound)[1]
    ks = lattice(1, len(fleet), _CLIENTS if is_small else _FEWER_CLIENTS)
    es = ladder(1, high, _PER_DECADE if is_small else STEPS_PER_DECADE)
    if is_small and high <= _ALL_STEPS:
        es = np.arange(1, high + 1)
    ks, es = (
        np.union1d(values, [setting[which] for setting in settings]).astype(np.int64)
        for which, values in enumerate((ks, es))
    )
    return cost_surface(fleet, bound, problem.objective, ks, es)


def allowed_part(
    surface: Surface, problem: Problem, bound: Bound, settings: Sequence[tuple[int, int]]
) -> Surface:
    """The part of a surface within the ranges of K and E, and around these settings."""
    ks, es = zip(*settings, strict=True) if settings else ((), ())
    low_k, high_k = problem.limits.clients_range(len(problem.fleet))
    low_e, high_e = steps_range(problem.limits, bound)
    rows = _within(surface.clients_per_round, min([low_k, *ks]), max([high_k, *ks]))
    columns = _within(surface.local_steps, min([low_e, *es]), max([high_e, *es]))
    totals = ("expected_rounds", "time_s", "energy_j", "cost")
    return Surface(
        clients_per_round=surface.clients_per_round[rows],
        local_steps=surface.local_steps[columns],
        **{name: getattr(surface, name)[rows, columns] for name in totals},
    )


def _within(values: IntArray, low: int, high: int) -> slice:
    start = int(np.searchsorted(values, low, "left"))
    end = int(np.searchsorted(values, high, "right"))
    if start == end:  # between two values: the next one stands for it
        start = min(start, values.size - 1)
        end = start + 1
    return slice(start, end)


def cost_panels(
    surface: Surface, marks: Sequence[Mark], problem: Problem, *, points: int = _FINE
) -> tuple[Panel, ...]:
    """Extra cost over a surface that has the chosen mark's K and E: a map and its scale of colours.

    If K or E has a single value there is a curve instead. If nothing is chosen, because nothing
    meets the limits, extra cost is relative to the lowest.

    points : of each axis of the map.
    """
    title, quantity, extra = _extra_cost(surface, marks, problem.objective)
    ks, es = surface.clients_per_round, surface.local_steps
    held = [
        (mark, look, mark.place.pair)
        for mark, look in zip(marks, looks(marks), strict=True)
        if ks[0] <= mark.place.pair[0] <= ks[-1] and es[0] <= mark.place.pair[1] <= es[-1]
    ]
    if min(extra.shape) > 1:
        x = count_axis("local steps E", int(es[0]), int(es[-1]))
        y = count_axis("clients per round K", int(ks[0]), int(ks[-1]))
        drawn, levels = _map(extra, ks, es, points, quantity), _crossed(extra)
        names = tuple(f"{level:+.0%}" for level in levels)
        strip = scale_panel(Categories(names=names, label=quantity, upward=True), drawn.colours)
        spots = [_spot(e, k, mark, look) for mark, look, (k, e) in held]
        parts = (drawn, *spots, *_forbidden(surface, problem.limits))
        panel = Panel(x=x, y=y, parts=parts, title=title)
        return (panel, strip) if names else (panel,)
    reference = "the plan's" if any(mark.role == "chosen" for mark in marks) else "the lowest"
    label, which = f"{quantity.removeprefix('extra ')} / {reference}", int(ks.size == 1)
    values, ratio = (ks, es)[which], extra.ravel() + 1.0
    name = ("clients per round K", "local steps E")[which]
    line, x, y = cost_curve(values, ratio[None], name, label)
    spots = [
        _spot(pair[which], float(np.interp(pair[which], values, ratio)), mark, look)
        for mark, look, pair in held
        if x.has(pair[which])
    ]
    return (Panel(x=x, y=y, parts=(line, *spots), title=title),)


def cost_curve(
    values: IntArray, ratios: FloatArray, name: str, label: str
) -> tuple[Line, Axis, Axis]:
    """Ratios of cost along K or E, one row for each bound: the first's, with a band of all."""
    shown = np.flatnonzero(ratios[0] <= _HIGHEST_RATIO)
    part = slice(max(int(shown[0]) - 1, 0), int(shown[-1]) + 2)
    x, y = values[part].astype(float), ratios[0, part]
    low, high = ratios[:, part].min(axis=0), ratios[:, part].max(axis=0)
    line = Line(x=x, y=y, width=2.0, hover="{x}: {y}")
    if len(ratios) > 1:
        hover = tuple(
            f"{at:,.0f}\n{ratio:.3f}, or {least:.3f} to {most:.3f}"
            for at, ratio, least, most in zip(x, y, low, high, strict=True)
        )
        words = "as planned (shaded: by other bounds)"
        line = replace(line, low=low, high=high, name=words, hover=hover)
    top = max(min(float(y.max()), _HIGHEST_RATIO), 1.02)
    across = count_axis(name, int(x[0]), int(x[-1]))
    return line, across, fit_axis(label, NO_UNIT, [min(1.0, float(y.min())), top], log=False)


def _extra_cost(
    surface: Surface, marks: Sequence[Mark], objective: Objective
) -> tuple[str, str, FloatArray]:
    """A title, what is shown, and cost / planned (or lowest) cost - 1, one row for each K."""
    weight = objective.energy_weight
    basis = f"energy weight {weight:g}" if weight else "time alone"
    if weight is None:
        basis = objective.unit
    title, quantity, cost = f"Extra cost of other settings ({basis})", "extra cost", surface.cost
    if not cost.any():  # nothing costs anything, and the plan is the fastest
        title, quantity = "Extra time of other settings (cost is 0)", "extra time"
        cost = surface.time_s
    chosen = next((mark.place.pair for mark in marks if mark.role == "chosen"), None)
    if chosen is None:
        return title, quantity, np.minimum(cost / cost.min(), _FAR) - 1.0
    row = surface.clients_per_round == chosen[0]
    planned = cost[row][:, surface.local_steps == chosen[1]]
    return title, quantity, cost / planned - 1.0


def _crossed(extra: FloatArray) -> tuple[float, ...]:
    """The contours that the costs cross."""
    return tuple(level for level in LEVELS if extra.min() < level < extra.max())


def _map(extra: FloatArray, ks: IntArray, es: IntArray, points: int, quantity: str) -> Map:
    """The map on a fine grid, by splines, so that contours are smooth.

    The inverse of cost is smooth over the logarithms of K and E, even where cost rises without
    bound, and the splines go through every point.
    """
    log_k, log_e = np.log(ks), np.log(es)
    inverse, levels = 1.0 / (1.0 + extra), _crossed(extra)
    spline = scipy.interpolate.RectBivariateSpline(
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
    if not levels:
        return np.full(values.shape, -0.5)
    around = (_BELOW, *LEVELS, _ABOVE)
    low = min(around[around.index(levels[0]) - 1], float(values.min()))
    high = max(around[around.index(levels[-1]) + 1], float(values.max()))
    knots = np.log1p([low, *levels, high])
    scale = scipy.interpolate.PchipInterpolator(knots, np.arange(knots.size) - 1.0)
    return np.asarray(scale(np.log1p(values)))


def _forbidden(surface: Surface, constraints: Constraints) -> list[Shaded]:
    allowed = constraints.met(surface.time_s, surface.energy_j, surface.expected_rounds)
    if allowed.all():
        return []
    x, y = surface.local_steps.astype(float), surface.clients_per_round.astype(float)
    return [Shaded(x=x, y=y, inside=~allowed, name="over a limit")]


def _spot(x: float, y: float, mark: Mark, look: Look) -> Points:
    return spot(x, y, look, name=mark.legend, hover=f"<b>{mark.legend}</b>")
