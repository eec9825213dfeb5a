"""A sweep for print, with matplotlib: a heat map over (K, E)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.print_parts import add_legend, new_figure
from fedplan.figures.style import DARK_FROM, GREY, HEAT, INK, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.sweep import SweepFigure

_HATCH = "////"


def draw_sweep(data: SweepFigure) -> Figure:
    """One cell a setting, light where it is cheap."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    rows, columns = data.ratio.shape
    width = min(max(2.8 + 0.72 * columns, 6.5), 13.0)
    figure = new_figure(width=width, height=min(max(2.0 + 0.46 * rows, 3.6), 9.5))
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    axes = figure.subplots()
    axes.grid(visible=False)
    axes.set_xticks(range(columns), [f"{e:,}" for e in data.local_steps])
    axes.set_yticks(range(rows), [f"{k:,}" for k in data.clients_per_round])
    axes.set(xlabel="local steps E", ylabel="clients per round K")
    drawn = axes.pcolormesh(
        np.arange(columns),
        np.arange(rows),
        np.ma.masked_invalid(data.shade),
        cmap=LinearSegmentedColormap.from_list("cost", HEAT),
        vmin=0.0,
        vmax=1.0,
        edgecolor="white",
        linewidth=1.5,
        shading="nearest",
    )
    if data.best is not None:
        bar = figure.colorbar(drawn, ax=axes, ticks=[shade for shade, _ in data.ticks])
        bar.set_ticklabels([text for _, text in data.ticks])
    _mark_cells(axes, data)
    hatched = Patch(facecolor="none", edgecolor=GREY, hatch=_HATCH, label="not every seed arrived")
    add_legend(figure, [hatched] if data.has_missed else [], data.note, columns=1)
    return figure


def _mark_cells(axes: Axes, data: SweepFigure) -> None:
    from matplotlib.patches import Rectangle

    for row, column in np.ndindex(data.ratio.shape):
        shade, place = data.shade[row, column], (column - 0.5, row - 0.5)
        if np.isinf(data.ratio[row, column]):
            cell = Rectangle(place, 1, 1, fill=False, hatch=_HATCH, edgecolor=GREY, linewidth=0)
            axes.add_patch(cell)
        is_best = (row, column) == data.best
        if is_best:
            frame = Rectangle(
                place, 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, clip_on=False,
                zorder=5,
            )  # fmt: skip
            axes.add_patch(frame)
        missed = np.isinf(data.ratio[row, column])
        axes.text(
            column,
            row,
            data.labels[row][column],
            ha="center",
            va="center",
            size=9.2,
            weight="bold" if is_best else "normal",
            color="white" if shade > DARK_FROM else INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5} if missed else None,
        )
