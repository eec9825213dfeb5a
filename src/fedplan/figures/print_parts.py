"""Every kind of part for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedplan.figures.spec import (
    Bars,
    Cells,
    Contours,
    Interval,
    Line,
    Points,
    Shaded,
    Texts,
)
from fedplan.figures.style import DARK_FROM, GREY, HEAT, INK, VERMILLION

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from fedplan.figures.spec import Panel, Part

_MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "star": "*",
    "cross": "P",
    "x": "X",
    "line-ns": "|",
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":"}
_HATCH = "////"
_SMALL = 6.0  # markers below need no white rim to be told from what is behind
_ABOVE_GRID = 2  # the order of drawing of layer 0


def draw_part(strip: Any, axes: Axes, panel: Panel, part: Part) -> Any:
    """Draw a part; returns what explains it in a legend."""
    scale = panel.x.unit.size, panel.y.unit.size
    match part:
        case Line():
            return _draw_line(axes, part, *scale)
        case Points():
            return _draw_points(axes, part, *scale)
        case Interval():
            return _draw_interval(axes, part, *scale)
        case Bars():
            return _draw_bars(axes, part, *scale)
        case Texts():
            return _draw_texts(axes, part, *scale)
        case Contours():
            return _draw_contours(strip, axes, part)
        case Shaded():
            return _draw_shaded(axes, part)
        case Cells():
            return _draw_cells(strip, axes, part)
    raise AssertionError(f"{type(part).__name__} is no part of a figure")


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
    if part.low.size:
        low, high = part.low / up, part.high / up
        if part.spread == "band":
            axes.fill_between(
                x, low, high, color=part.colour, alpha=0.16, linewidth=0, zorder=order - 1
            )
        else:
            around = [y - low, high - y]
            axes.errorbar(
                x, y, yerr=around, fmt="none", ecolor=part.colour, capsize=3, elinewidth=1.1
            )
    return handle


def _draw_points(axes: Axes, part: Points, across: float, up: float) -> Artist:
    look = part.look
    is_stroke = look.symbol == "line-ns"
    has_rim = not (part.hollow or is_stroke or look.size < _SMALL)
    (handle,) = axes.plot(
        part.x / across,
        part.y / up,
        _MARKERS[look.symbol],
        markersize=look.size,
        color=look.colour,
        markerfacecolor="white" if part.hollow else look.colour,
        markeredgecolor="white" if has_rim else look.colour,
        markeredgewidth=2.6 if is_stroke else 1.0,
        label=part.name,
        clip_on=False,
        zorder=_ABOVE_GRID + part.layer,
    )
    return handle


def _draw_interval(axes: Axes, part: Interval, across: float, up: float) -> Artist:
    low, high, at = part.low / across, part.high / across, part.at / up
    order = _ABOVE_GRID + part.layer
    if part.goes_on:
        arrow = {
            "arrowstyle": "-|>",
            "color": part.colour,
            "linewidth": part.width,
            "shrinkA": 0,
            "shrinkB": 0,
        }
        axes.annotate("", (high, at), (low, at), arrowprops=arrow, zorder=order)
        high = low
    (handle,) = axes.plot(
        [low, high],
        [at, at],
        "|-",
        color=part.colour,
        linewidth=part.width,
        markersize=11,
        markeredgewidth=0.75 * part.width,
        label=part.name,
        zorder=order,
    )
    return handle


def _draw_bars(axes: Axes, part: Bars, across: float, up: float) -> Any:
    start = part.start / across
    return axes.barh(
        part.at / up,
        part.end / across - start,
        left=start,
        height=part.thickness,
        color=part.colour,
        edgecolor=part.edge or "none",
        hatch="//" if part.hatched else "",
        label=part.name,
        zorder=_ABOVE_GRID + part.layer,
    )


def _draw_texts(axes: Axes, part: Texts, across: float, up: float) -> Any:
    offset = {"right": (8, 0), "above": (6, 5), "center": (0, 0)}[part.side]
    for x, y, text in zip(part.x / across, part.y / up, part.texts, strict=True):
        axes.annotate(
            text,
            (x, y),
            xytext=offset,
            textcoords="offset points",
            va="bottom" if part.side == "above" else "center",
            ha="center" if part.side == "center" else "left",
            color=part.colour,
            weight="bold" if part.bold else "normal",
            fontsize=9.0,
            zorder=_ABOVE_GRID + part.layer,
        )


def _draw_contours(strip: Any, axes: Axes, part: Contours) -> Any:
    count = len(part.levels)
    edges = [-1.5, *range(count), count + 0.5]
    filled = axes.contourf(part.x, part.y, part.steps, levels=edges, colors=part.colours)
    if count:
        axes.contour(part.x, part.y, part.steps, levels=range(count), colors=GREY, linewidths=0.8)
        bar = strip.colorbar(filled, ax=axes, ticks=range(count), label=part.quantity)
        bar.set_ticklabels(part.levels)


def _draw_shaded(axes: Axes, part: Shaded) -> Artist:
    from matplotlib.patches import Patch

    axes.contourf(part.x, part.y, part.inside, levels=[0.5, 1.5], colors="none", hatches=[_HATCH])
    return Patch(facecolor="none", edgecolor=GREY, hatch=_HATCH, label=part.name)


def _draw_cells(strip: Any, axes: Axes, part: Cells) -> Artist | None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch, Rectangle

    rows, columns = part.shades.shape
    drawn = axes.pcolormesh(
        np.arange(columns),
        np.arange(rows),
        np.ma.masked_invalid(part.shades),
        cmap=LinearSegmentedColormap.from_list("cost", HEAT),
        vmin=0.0,
        vmax=1.0,
        edgecolor="white",
        linewidth=1.5,
        shading="nearest",
    )
    if part.scale:
        bar = strip.colorbar(drawn, ax=axes, ticks=[shade for shade, _ in part.scale])
        bar.set_ticklabels([text for _, text in part.scale])
    for row, column in np.argwhere(part.hatched):
        place = (column - 0.5, row - 0.5)
        axes.add_patch(
            Rectangle(place, 1, 1, fill=False, hatch=_HATCH, edgecolor=GREY, linewidth=0)
        )
    if part.framed is not None:
        place = (part.framed[1] - 0.5, part.framed[0] - 0.5)
        frame = Rectangle(place, 1, 1, fill=False, edgecolor=VERMILLION, linewidth=2.4, zorder=5)
        frame.set_clip_on(False)
        axes.add_patch(frame)
    _write_in_cells(axes, part)
    if not part.hatched.any():
        return None
    return Patch(facecolor="none", edgecolor=GREY, hatch=_HATCH, label=part.name)


def _write_in_cells(axes: Axes, part: Cells) -> None:
    plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # over the hatching
    for row, column in np.ndindex(part.shades.shape):
        if text := part.texts[row][column]:
            axes.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                size=9.2,
                weight="bold" if (row, column) == part.framed else "normal",
                color="white" if part.shades[row, column] > DARK_FROM else INK,
                bbox=plate if part.hatched[row, column] else None,
            )
