"""Pilots and fit for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.figures.print_parts import add_legend, new_figure, set_up_axis
from fedplan.figures.style import BLUE, GREY, series_looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.fit import FitFigure


def draw_fit(data: FitFigure) -> Figure:
    """Pilots and curves on the left, intervals on the right."""
    figure = new_figure()
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    handles = _draw_pilots(left, data)
    _draw_intervals(right, data)
    add_legend(figure, handles, data.note, columns=8)
    return figure


def _draw_pilots(axes: Axes, data: FitFigure) -> list[Artist]:
    axes.set_title(data.pilots_title)
    set_up_axis(axes, "x", data.steps)
    set_up_axis(axes, "y", data.iterations)
    looks = series_looks(pilot.clients_per_round for pilot in data.pilots)
    handles: list[Artist] = []
    for curve in data.curves:
        look = looks[curve.clients_per_round]
        axes.fill_between(
            curve.local_steps, curve.low, curve.high, color=look.colour, alpha=0.15, linewidth=0
        )
        axes.plot(curve.local_steps, curve.iterations, color=look.colour, linewidth=1.6)
    for clients, look in looks.items():
        pilots = [pilot for pilot in data.pilots if pilot.clients_per_round == clients]
        handles += axes.plot(
            [pilot.local_steps for pilot in pilots],
            [pilot.iterations for pilot in pilots],
            look.marker,
            markersize=look.size,
            color=look.colour,
            markeredgecolor="white",
            label=f"K={clients:,}",
            zorder=5,
        )
    return handles


def _draw_intervals(axes: Axes, data: FitFigure) -> None:
    if not data.intervals:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no fit, so no intervals", ha="center", transform=axes.transAxes)
        return
    axes.set_title(data.intervals_title)
    set_up_axis(axes, "x", data.ratio)
    axes.grid(visible=False, axis="y")
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    rows = range(len(data.intervals))
    axes.set_yticks(rows, [interval.label for interval in data.intervals])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for row, interval in zip(rows, data.intervals, strict=True):
        low, centre, high = interval.relative
        if data.ratio.has(high):
            axes.plot([low, high], [row, row], "|-", color=BLUE, linewidth=2.2, markersize=11)
        else:
            axes.plot([low], [row], "|", color=BLUE, markersize=11)
            axes.annotate(
                "",
                (data.ratio.high, row),
                (low, row),
                arrowprops={"arrowstyle": "-|>", "color": BLUE, "linewidth": 2.2, "shrinkA": 0},
            )
        axes.plot(centre, row, "o", color=BLUE, markersize=8, markeredgecolor="white", zorder=4)
