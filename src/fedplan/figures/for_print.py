"""The print renderer: every kind of part in matplotlib, and the page layout."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedplan.figures.axes import Axis, tick_text
from fedplan.figures.spec import (
    STEP,
    Boxes,
    Categories,
    Figure,
    Line,
    Map,
    Panel,
    Part,
    Points,
    Shaded,
    Texts,
)
from fedplan.figures.style import BAND_OPACITY, GREY, GRID, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Paper

_CHARACTERS = 13.5  # of a note or legend, that fit into an inch
_ENTRY = 7  # characters that the marker of an entry and the air around it take
_SMALL = 9.2
_ABOVE_GRID = 2  # the order of drawing of layer 0
_HATCH = "////"
_MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "triangle-right": ">",
    "star": "*",
    "cross": "P",
    "x": "X",
    "line-ns": "|",
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}

# Changing matplotlib's settings is visible to all threads; a lock keeps our own from mixing.
_SETTINGS = threading.RLock()


@contextmanager
def print_style() -> Iterator[None]:
    """Matplotlib's defaults with our settings, whatever the user's own are; undone afterwards."""
    import matplotlib.style

    ours = {
        "font.size": 10.5,
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "hatch.color": INK,  # to be seen on the darkest band too
        "hatch.linewidth": 0.6,
        "svg.hashsalt": "fedplan",  # the same figure is the same file
    }
    with _SETTINGS, matplotlib.style.context(["default", ours]):
        yield


def draw(data: Figure) -> Paper:
    """The figure; to be called, and to be saved, within `print_style`."""
    from matplotlib.figure import Figure as Paper

    paper = Paper(figsize=data.size, layout="constrained")
    if data.title:
        paper.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    paper.get_layout_engine().set(wspace=0.05)  # type: ignore[union-attr, call-arg]
    shared: dict[str, Artist] = {}
    for strip, row in zip(_strips(paper, data), data.rows, strict=True):
        widths = [panel.width for panel in row]
        grid = strip.subplots(1, len(row), width_ratios=widths, squeeze=False)[0]
        for axes, panel in zip(grid, row, strict=True):
            handles = _draw_panel(axes, panel)
            if panel.shares_y:
                axes.sharey(grid[0])
                axes.tick_params(labelleft=False)
                axes.set_ylabel("")
            if panel.own_legend:
                # Where least is covered: losses fall, so that is mostly the upper right.
                legend = axes.legend(handles=[*handles.values()], fontsize=9.0, frameon=True)
                legend.get_frame().set(facecolor="white", alpha=0.75, linewidth=0)
            else:
                for name, handle in handles.items():
                    shared.setdefault(name, handle)
    _add_shared_legend(paper, [*shared.values()], data.note)
    return paper


def _strips(paper: Paper, data: Figure) -> Sequence[Any]:
    """The figure or subfigure of each row of panels."""
    if len(data.rows) == 1:
        return [paper]
    heights = [max(panel.height for panel in row) for row in data.rows]
    # Rows are laid out apart: what stands beside a panel takes no room from those above it.
    return list(paper.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])


def _draw_panel(axes: Axes, panel: Panel) -> dict[str, Artist]:
    """Draw a panel; returns what a legend should explain."""
    axes.set_title(panel.title)
    _set_up(axes, "x", panel.x)
    _set_up(axes, "y", panel.y)
    if panel.y_at_right:
        axes.yaxis.tick_right()
        axes.yaxis.set_label_position("right")
    handles: dict[str, Artist] = {}
    for part in panel.parts:
        handle = _DRAW[type(part)](axes, part, panel.x.unit.size, panel.y.unit.size)
        if part.name:
            handles.setdefault(part.name, handle)
    return handles


def _set_up(axes: Axes, which: Literal["x", "y"], axis: Axis | Categories) -> None:
    """Label, scale, ends and ticks."""
    from matplotlib import ticker

    ticks = axes.xaxis if which == "x" else axes.yaxis
    if isinstance(axis, Categories):
        ticks.set_ticks(*zip(*axis.ticks, strict=True))
        axes.set(**{f"{which}label": axis.label, f"{which}lim": axis.ends})
        axes.tick_params(axis=which, length=0)
        axes.grid(visible=False, axis=which)
        return
    axes.set(**{f"{which}label": axis.label})
    if axis.log:
        axes.set(**{f"{which}scale": "log"})
    if axis.all_zero:
        ticks.set_major_locator(ticker.FixedLocator([0.0]))
    elif axis.decades:
        ticks.set_major_locator(ticker.LogLocator(subs=axis.decades))
    else:
        narrow = which == "x" and axes.get_position().width < 0.15  # of the whole figure
        bins, steps = 3 if narrow else 6, [1, 2, 2.5, 5, 10]
        ticks.set_major_locator(ticker.MaxNLocator(nbins=bins, steps=steps, integer=axis.counts))
    ticks.set_minor_formatter(ticker.NullFormatter())
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    ticks.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_text(value)))


def _add_shared_legend(paper: Paper, handles: Sequence[Artist], note: str) -> None:
    """Below all panels, under a note if there is one."""
    if not handles and not note:
        return
    room = _CHARACTERS * paper.get_figwidth()
    legend = paper.legend(
        handles=handles,
        loc="outside lower left",
        ncols=_columns(handles, room),
        fontsize=_SMALL,
        title=textwrap.fill(note, int(room)) or None,
        title_fontsize=_SMALL,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def _columns(handles: Sequence[Artist], room: float) -> int:
    """The number of columns of a legend that may be `room` characters wide."""
    lengths = [len(str(handle.get_label())) + _ENTRY for handle in handles]
    for count in range(len(lengths), 1, -1):
        if sum(max(column) for column in np.array_split(lengths, count)) <= room:
            return count
    return 1


def _draw_line(axes: Axes, part: Line, across: float, up: float) -> Artist:
    x, y = part.x / across, part.y / up
    order = _ABOVE_GRID + part.layer
    (handle,) = axes.plot(
        x,
        y,
        color=part.colour,
        linestyle=_DASHES[part.dash],
        linewidth=part.width,
        marker=_MARKERS[part.look.symbol] if part.look else None,
        markersize=0.75 * part.look.size if part.look else None,
        markevery=part.every,
        label=part.name,
        zorder=order,
    )
    low, high = part.low / up, part.high / up
    if part.has_band:
        axes.fill_between(
            x, low, high, color=part.colour, alpha=BAND_OPACITY, linewidth=0, zorder=order - 1
        )
    elif low.size:
        around = [y - low, high - y]
        axes.errorbar(x, y, yerr=around, fmt="none", ecolor=part.colour, capsize=3, elinewidth=1.1)
    return handle


def _draw_points(axes: Axes, part: Points, across: float, up: float) -> Artist:
    look = part.look
    (handle,) = axes.plot(
        part.x / across,
        part.y / up,
        _MARKERS[look.symbol],
        markersize=look.size,
        color=look.colour,
        markerfacecolor="white" if part.hollow else look.colour,
        markeredgecolor=part.rim,
        markeredgewidth=2.2 if look.is_stroke else 1.0,
        label=part.name,
        clip_on=False,
        zorder=_ABOVE_GRID + part.layer,
    )
    return handle


def _draw_boxes(axes: Axes, part: Boxes, across: float, up: float) -> Any:
    one_or_each = [part.colours] if isinstance(part.colours, str) else part.colours
    return axes.bar(
        part.left / across,
        (part.top - part.bottom) / up,
        (part.right - part.left) / across,
        part.bottom / up,
        align="edge",
        color=[colour or "none" for colour in one_or_each],
        edgecolor=part.edge or (GREY if part.hatched else "none"),
        linewidth=part.edge_width if part.edge else 0.0,
        hatch=_HATCH if part.hatched else "",
        label=part.name,
        zorder=_ABOVE_GRID + part.layer,
    )


def _draw_texts(axes: Axes, part: Texts, across: float, up: float) -> None:
    from matplotlib.patheffects import withStroke

    right, above = np.sign(part.side)
    rim = [withStroke(linewidth=2.5, foreground="white")] if part.colour == INK else None
    for x, y, text in zip(part.x / across, part.y / up, part.texts, strict=True):
        axes.annotate(
            text,
            (x, y),
            xytext=tuple(STEP * part.side),
            textcoords="offset points",
            ha={1: "left", 0: "center", -1: "right"}[right],
            va={1: "bottom", 0: "center", -1: "top"}[above],
            color=part.colour,
            weight="bold" if part.bold else "normal",
            fontsize=9.2,
            path_effects=rim,
            zorder=_ABOVE_GRID + part.layer,
        )


def _draw_map(axes: Axes, part: Map, _: float, __: float) -> None:
    count = len(part.colours) - 1
    axes.grid(visible=False)
    edges = [-1.5, *range(count), count + 0.5]
    axes.contourf(part.x, part.y, part.steps, levels=edges, colors=part.colours)
    if count:
        axes.contour(part.x, part.y, part.steps, levels=range(count), colors=GREY, linewidths=0.8)


def _draw_shaded(axes: Axes, part: Shaded, _: float, __: float) -> Artist:
    from matplotlib.patches import Patch

    axes.contourf(part.x, part.y, part.inside, levels=[0.5, 1.5], colors="none", hatches=[_HATCH])
    return Patch(facecolor="none", edgecolor=GREY, hatch=_HATCH, label=part.name)


_DRAW: dict[type[Part], Callable[..., Any]] = {
    Line: _draw_line,
    Points: _draw_points,
    Boxes: _draw_boxes,
    Texts: _draw_texts,
    Map: _draw_map,
    Shaded: _draw_shaded,
}
