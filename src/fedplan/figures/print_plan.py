"""Plan and frontier for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.figures.print_cost import draw_cost
from fedplan.figures.print_labels import Labeller
from fedplan.figures.print_parts import (
    add_legend,
    draw_mark,
    new_figure,
    set_up_axis,
    settle_layout,
)
from fedplan.figures.style import BLUE, GREY, PALE, looks
from fedplan.figures.units import quantity

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.frontier import FrontierFigure
    from fedplan.figures.plan import PlanFigure

_MANY = 150  # frontier points from which on smaller dots read better


def draw_plan(data: PlanFigure) -> Figure:
    """Frontier on the left, extra cost on the right, one legend below both."""
    figure = new_figure()
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    left, right = figure.subplots(1, 2)
    handles = [*_draw_frontier(left, data.frontier), *draw_cost(figure, right, data.cost)]
    add_legend(figure, handles, data.frontier.note, columns=2)
    _add_labels(figure, left, data.frontier)
    return figure


def draw_frontier(data: FrontierFigure) -> Figure:
    """The frontier alone."""
    figure = new_figure(width=7.0)
    axes = figure.subplots()
    add_legend(figure, _draw_frontier(axes, data), data.note, columns=2)
    _add_labels(figure, axes, data)
    return figure


def _draw_frontier(axes: Axes, data: FrontierFigure) -> list[Artist]:
    """Draw the panel; returns what the legend should explain, in its order."""
    axes.set_title(data.title)
    set_up_axis(axes, "x", data.time)
    set_up_axis(axes, "y", data.energy)
    axes.plot(*_places(data), color=PALE, linewidth=1.4, zorder=2)
    handles: list[Artist] = []
    size = 4.5 if len(data.points) < _MANY else 3.0
    for selected, face, edge, label in (
        (True, BLUE, BLUE, "frontier"),
        (False, "white", PALE, "frontier, selected by no energy weight"),
    ):
        time, energy = _places(data, selected=selected)
        if time:
            handles += axes.plot(
                time,
                energy,
                "o",
                markersize=size,
                color=edge,
                markerfacecolor=face,
                label=label,
                zorder=3 + selected,
            )
    handles += _draw_limits(axes, data)
    for mark, look in zip(data.marks, looks(data.marks), strict=True):
        place = data.time.pinned(mark.time_s), data.energy.pinned(mark.energy_j)
        drawn = draw_mark(axes, *place, look, label=mark.legend)
        if mark.remark:  # the others are labelled where they stand
            handles += drawn
    return handles


def _places(
    data: FrontierFigure, *, selected: bool | None = None
) -> tuple[list[float], list[float]]:
    """Time and energy as shown, of all points or of those that some energy weight selects."""
    points = [
        point
        for point in data.points
        if selected is None or selected == (point.energy_weight_from is not None)
    ]
    return (
        [data.time.shown(point.time_s) for point in points],
        [data.energy.shown(point.energy_j) for point in points],
    )


def _draw_limits(axes: Axes, data: FrontierFigure) -> list[Artist]:
    lines: list[Artist] = []
    if data.deadline_s is not None and data.time.has(data.deadline_s):
        text = f"deadline: {quantity(data.deadline_s, data.time.unit)}"
        at = data.time.shown(data.deadline_s)
        lines.append(axes.axvline(at, color=GREY, linestyle="--", zorder=1, label=text))
    if data.energy_budget_j is not None and data.energy.has(data.energy_budget_j):
        text = f"energy budget: {quantity(data.energy_budget_j, data.energy.unit)}"
        at = data.energy.shown(data.energy_budget_j)
        lines.append(axes.axhline(at, color=GREY, linestyle=":", zorder=1, label=text))
    return lines


def _add_labels(figure: Figure, axes: Axes, data: FrontierFigure) -> None:
    """Name the plan where it stands, and say how far off the pinned marks are."""
    settle_layout(figure)
    places = [(data.time.pinned(m.time_s), data.energy.pinned(m.energy_j)) for m in data.marks]
    labeller = Labeller(figure, axes, places, [*zip(*_places(data), strict=True)])
    beyond: dict[tuple[float, float], list[str]] = {}  # marks in one corner share one label
    for mark, place in zip(data.marks, places, strict=True):
        if not data.shows(mark):
            beyond.setdefault(place, []).append(data.whereabouts(mark))
        elif not mark.remark:
            labeller.add(mark.label, place, weight="bold" if mark.role == "chosen" else "normal")
    for place, lines in beyond.items():
        labeller.add("\n".join(lines), place)
