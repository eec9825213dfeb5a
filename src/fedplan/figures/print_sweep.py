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
_MOST_TICKS = 16  # below the map, before their texts run into each other


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
    every = -(-columns // _MOST_TICKS)
    axes.set_xticks(range(0, columns, every), [f"{e:,}" for e in data.local_steps[::every]])
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

    missed, shade = np.isinf(data.ratio), data.shade
    for row, column in np.argwhere(missed):
        place = (column - 0.5, row - 0.5)
        axes.add_patch(
            Rectangle(place, 1, 1, fill=False, hatch=_HATCH, edgecolor=GREY, linewidth=0)
        )
    if data.best is not None:
        row, column = data.best
        place = (column - 0.5, row - 0.5)
        frame = Rectangle(place, 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, zorder=5)
        frame.set_clip_on(False)
        axes.add_patch(frame)
    plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # over the hatching
    for row, column in np.ndindex(data.ratio.shape):
        if data.labels[row][column]:
            axes.text(
                column,
                row,
                data.labels[row][column],
                ha="center",
                va="center",
                size=9.2,
                weight="bold" if (row, column) == data.best else "normal",
                color="white" if shade[row, column] > DARK_FROM else INK,
                bbox=plate if missed[row, column] else None,
            )
