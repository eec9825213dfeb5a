"""The cost panel for print, with matplotlib: a map over (K, E), or a curve where one is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.figures.print_parts import draw_mark, set_up_axis
from fedplan.figures.style import BLUE, GREY, band_colours, level_label, looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.cost_panel import CostPanel


def draw_cost(figure: Figure, axes: Axes, data: CostPanel) -> list[Artist]:
    """Draw the panel; returns what the legend should explain beyond the marks."""
    axes.set_title(data.title)
    if data.is_map:
        return _draw_map(figure, axes, data)
    _draw_curve(axes, data)
    return []


def _draw_map(figure: Figure, axes: Axes, data: CostPanel) -> list[Artist]:
    set_up_axis(axes, "x", data.steps)
    set_up_axis(axes, "y", data.clients)
    axes.grid(visible=False)
    clients, steps, extra_cost = data.smooth()
    bands, count = data.bands(extra_cost), len(data.levels)
    filled = axes.contourf(
        steps,
        clients,
        bands,
        levels=[-1.5, *range(count), count + 0.5],
        colors=band_colours(data.levels, data.scale),
    )
    if data.levels:
        axes.contour(steps, clients, bands, levels=range(count), colors=GREY, linewidths=0.8)
        bar = figure.colorbar(filled, ax=axes, ticks=range(count), label=data.quantity)
        bar.set_ticklabels([level_label(level) for level in data.levels])
    for mark, look in zip(data.marks, looks(data.marks), strict=True):
        if data.has(mark):  # not clipped: the corners of the map are settings too
            draw_mark(axes, mark.local_steps, mark.clients_per_round, look, clip=False)
    return _draw_forbidden(axes, data)


def _draw_forbidden(axes: Axes, data: CostPanel) -> list[Artist]:
    from matplotlib.patches import Patch

    if data.allowed.all():
        return []
    hatch = "////"
    axes.contourf(
        data.local_steps,
        data.clients_per_round,
        ~data.allowed,
        levels=[0.5, 1.5],
        colors="none",
        hatches=[hatch],
    )
    return [Patch(facecolor="none", edgecolor=GREY, hatch=hatch, label="over a limit")]


def _draw_curve(axes: Axes, data: CostPanel) -> None:
    curve = data.curve()
    set_up_axis(axes, "x", curve.x)
    set_up_axis(axes, "y", curve.y)
    axes.plot(curve.values, curve.ratio, "o-", color=BLUE, markersize=3, linewidth=1.2)
    for mark, place, look in zip(data.marks, curve.places, looks(data.marks), strict=True):
        if data.has(mark):
            draw_mark(axes, *place, look, clip=False)
