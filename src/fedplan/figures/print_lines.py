"""Lines with their spread for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.figures.print_parts import add_legend, add_note, in_rows, new_figure, set_up_axis
from fedplan.figures.style import GREY, line_looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.lines import Line, LinePanel, LinesFigure, Spread
    from fedplan.figures.style import Look

_MARKERS = 10  # of a line at most
_SMALL = 9.0
_ENTRIES = 4  # of a legend, in a row below one panel


def draw_lines(data: LinesFigure) -> Figure:
    """Panels in rows; one legend below them all, or one in each where they show other lines."""
    rows = -(-len(data.panels) // data.columns)
    figure = new_figure(width=6.2 * data.columns, height=0.9 + 3.5 * rows)
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    grid = figure.subplots(rows, data.columns, squeeze=False)
    handles: dict[str, Artist] = {}
    for axes, panel in zip(grid.flat, data.panels, strict=True):
        own = _draw_panel(axes, panel, data.spread)
        handles |= own
        if not data.one_legend:
            axes.legend(
                handles=in_rows([*own.values()], _ENTRIES),
                loc="upper left",
                bbox_to_anchor=(-0.02, -0.16),
                ncols=_ENTRIES,
                fontsize=_SMALL,
            )
    if data.one_legend:
        add_legend(figure, [*handles.values()], data.note, columns=_ENTRIES * data.columns)
    else:
        add_note(figure, data.note)
    return figure


def _draw_panel(axes: Axes, panel: LinePanel, spread: Spread) -> dict[str, Artist]:
    axes.set_title(panel.title)
    set_up_axis(axes, "x", panel.x)
    set_up_axis(axes, "y", panel.y)
    looks = line_looks([line.name for line in panel.lines])
    handles = {
        line.name: _draw_line(axes, panel, line, looks[line.name], spread) for line in panel.lines
    }
    if panel.level is not None:
        level, name = panel.level
        at = panel.y.shown(level)
        handles[name] = axes.axhline(at, color=GREY, linestyle=":", linewidth=1.4, label=name)
    return handles


def _draw_line(axes: Axes, panel: LinePanel, line: Line, look: Look, spread: Spread) -> Artist:
    x, y = line.x / panel.x.unit.size, line.y / panel.y.unit.size
    (handle,) = axes.plot(
        x,
        y,
        color=look.colour,
        marker=look.marker,
        markersize=0.75 * look.size,
        markevery=max(1, len(x) // _MARKERS) if spread == "band" else None,
        linewidth=1.6,
        label=line.name,
        zorder=look.layer,
    )
    if line.spread.size:
        around = line.spread / panel.y.unit.size
        if spread == "band":
            axes.fill_between(x, y - around, y + around, color=look.colour, alpha=0.16, linewidth=0)
        else:
            axes.errorbar(
                x, y, yerr=around, fmt="none", ecolor=look.colour, capsize=3, elinewidth=1.1
            )
    for text, place in zip(line.ends, (0, -1), strict=True):
        if text:
            axes.annotate(
                text,
                (x[place], y[place]),
                xytext=(6, 5),
                textcoords="offset points",
                color=look.colour,
                fontsize=_SMALL,
            )
    return handle
