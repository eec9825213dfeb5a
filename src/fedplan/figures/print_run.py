"""Runs for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.figures.print_parts import add_legend, new_figure, set_up_axis
from fedplan.figures.style import BLUE, GREY, PALE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.run import RunFigure, RunPanel

_WIDTHS = {1: 7.0, 2: 9.5, 3: 12.5}  # inches, by the number of panels


def draw_run(data: RunFigure) -> Figure:
    """Panels side by side, with one loss axis."""
    figure = new_figure(width=_WIDTHS[len(data.panels)], height=4.4)
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    grid = figure.subplots(1, len(data.panels), sharey=True, squeeze=False)
    handles: dict[str, Artist] = {}
    for axes, panel in zip(grid[0], data.panels, strict=True):
        set_up_axis(axes, "x", panel.quantity)
        _draw_lines(axes, panel, data, handles)
    set_up_axis(grid[0][0], "y", data.loss)
    figure.get_layout_engine().set(wspace=0.04)  # type: ignore[union-attr, call-arg]
    add_legend(figure, list(handles.values()), data.note, columns=4)
    return figure


def _draw_lines(axes: Axes, panel: RunPanel, data: RunFigure, handles: dict[str, Artist]) -> None:
    has_median = panel.median.size > 0
    for line in panel.lines:
        at = [panel.quantity.shown(value) for value in line.at]
        name = "diverged" if line.diverged else data.run_name
        (handle,) = axes.plot(
            at,
            line.losses,
            label=name,
            color=VERMILLION if line.diverged else PALE if has_median else BLUE,
            linewidth=0.8 if has_median else 1.8,
            zorder=4 if line.diverged else 2,
        )
        handles.setdefault(name, handle)
        if line.diverged:
            axes.plot(at[-1], line.losses[-1], "x", color=VERMILLION, zorder=4)
    if has_median:
        at = [panel.quantity.shown(value) for value in panel.median_at]
        (handle,) = axes.plot(at, panel.median, color=BLUE, linewidth=2.4, label="median", zorder=5)
        handles.setdefault("median", handle)
    if data.target_loss is not None:
        handle = axes.axhline(
            data.target_loss, color=GREY, linestyle="--", linewidth=1.2, label=data.target_name
        )
        handles.setdefault("target", handle)
