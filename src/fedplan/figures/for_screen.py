"""Figures for the screen, with plotly: where panels, axes and legends stand."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedplan.figures.screen_parts import html_lines, notes_of, shapes_of, traces_of
from fedplan.figures.spec import Categories, Cells, Line, Points
from fedplan.figures.style import GREY, GRID, INK

if TYPE_CHECKING:
    from fedplan.figures.spec import Figure, Panel, Part
    from fedplan.figures.units import Axis

_PER_INCH = 130  # pixels of the screen for an inch of print
_WIDTH = 1100.0  # pixels that panels usually share
_NOTE_WIDTH = 150  # characters of a note that fit on one line
_NUMBER = ",~r"  # thousands separated, no exponent, no trailing zeros
_BESIDE = {"scale": 110.0, "numbers": 75.0, "nothing": 25.0}  # pixels that stand beside a panel
_BELOW = 62.0  # pixels that the ticks and the label of an axis take
_PUSHED = 1.2  # a long legend takes room from the panels, and so moves up towards them
_LEGEND = 34.0  # pixels of a legend between two rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """A panel's number, and where it stands, in shares of the figure's width and height."""

    panel: Panel
    number: int
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def axes(self) -> tuple[str, str]:
        """What plotly calls its axes: x2 and y2 of the second."""
        suffix = "" if self.number == 1 else str(self.number)
        return f"x{suffix}", f"y{suffix}"


def draw(data: Figure) -> Any:
    """The figure."""
    from plotly.graph_objects import Figure as Screen

    return Screen(traces_and_layout(data))


def traces_and_layout(data: Figure, *, per_inch: float = _PER_INCH) -> dict[str, Any]:
    """The figure in plotly's terms; `per_inch` is how many pixels of height print's inches get."""
    lines = [f"<b>{data.title}</b>" if data.title else "", *textwrap.wrap(data.note, _NOTE_WIDTH)]
    title = "<br>".join([lines[0], *(f"<sub>{line}</sub>" for line in lines[1:])])
    margin = {"l": 70, "r": 30, "t": 90 + 20 * (len(lines) - 1), "b": 60}
    height = round(per_inch * data.size[1])
    inner = max(height - margin["t"] - margin["b"], 100)
    layout: dict[str, Any] = {
        "template": "plotly_white",
        "height": height,
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": INK},
        "title": {"text": title, "x": 0.01, "y": 0.97, "yanchor": "top", "font": {"size": 19}},
        "margin": margin,
        "hoverlabel": {"align": "left"},
        "barmode": "overlay",
        "annotations": [],
        "shapes": [],
        "legend": _legend_below(0.0, 0.0, inner),
    }
    if any(isinstance(part, Line) and part.look for panel in data.panels for part in panel.parts):
        layout["legend"]["itemsizing"] = "constant"  # most markers of such a line have no size
    spots = list(_spots(data, inner))
    for spot in spots:
        x, y = spot.axes
        layout[x.replace("x", "xaxis")] = _x_layout(spot)
        layout[y.replace("y", "yaxis")] = _y_layout(spot)
        if spot.panel.title and spot.panel.title != data.title:
            layout["annotations"].append(_title(spot))
    named: set[tuple[str, str]] = set()
    traces = [trace for spot in spots for trace in _add_panel(layout, spot, named, inner)]
    return {"data": traces, "layout": layout}


def axis_layout(axis: Axis) -> dict[str, Any]:
    """What plotly needs to show an axis as it is."""
    low, high = (math.log10(axis.low), math.log10(axis.high)) if axis.log else (axis.low, axis.high)
    slack = 1e-6 * (high - low)  # or rounding hides a mark that stands right at an end
    layout: dict[str, Any] = {
        "title": {"text": axis.label},
        "type": "log" if axis.log else "linear",
        "range": [low - slack, high + slack],
        "tickformat": _NUMBER,
        "showline": True,
        "linecolor": GREY,
        "gridcolor": GRID,
        "zeroline": False,
    }
    if axis.log:
        layout["dtick"] = "D2" if axis.has_few_decades else 1  # 1, 2, 5, 10, or powers of 10
    if axis.ticks is not None:
        layout |= {"tickvals": axis.ticks, "dtick": None}
    if axis.all_zero:
        layout["tickvals"] = [0]
    return layout


def _names_layout(axis: Categories, places: Sequence[tuple[int, str]]) -> dict[str, Any]:
    return {
        "title": {"text": axis.label},
        "range": list(axis.ends),
        "tickvals": [place for place, _ in places],
        "ticktext": [html_lines(name) + "  " for _, name in places],
        "showline": True,
        "linecolor": GREY,
        "showgrid": False,
        "zeroline": False,
    }


def _x_layout(spot: _Spot) -> dict[str, Any]:
    axis = spot.panel.x
    names = _names_layout(axis, axis.few) if isinstance(axis, Categories) else axis_layout(axis)
    return names | {"domain": spot.x, "anchor": spot.axes[1]}


def _y_layout(spot: _Spot) -> dict[str, Any]:
    axis = spot.panel.y
    layout = (
        _names_layout(axis, [*enumerate(axis.names)])
        if isinstance(axis, Categories)
        else axis_layout(axis)
    )
    if spot.panel.shares_y:
        layout |= {"title": None, "showticklabels": False}
    return layout | {"domain": spot.y, "anchor": spot.axes[0], "automargin": True}


def _spots(data: Figure, inner: float) -> Iterator[_Spot]:
    """Panels in rows, from the top down; `inner` is the height that they share, in pixels."""
    heights = [max(panel.height for panel in row) for row in data.rows]
    gaps = [
        _BELOW + _LEGEND + _LEGEND * any(panel.legend == "below" for panel in row)
        for row in data.rows[:-1]
    ]
    free = max(1.0 - sum(gaps) / inner, 0.3)
    number, top = 1, 1.0
    for row, height, gap in zip(data.rows, heights, [*gaps, 0.0], strict=True):
        bottom = top - free * height / sum(heights)
        lefts = [_left(panel) for panel in row]
        rights = [_BESIDE["scale"] if panel.has_scale else 0.0 for panel in row]
        lefts[0] = 0.0  # within the margin
        room = 1.0 - (sum(lefts) + sum(rights)) / _WIDTH
        start = 0.0
        for panel, left, right in zip(row, lefts, rights, strict=True):
            start += left / _WIDTH
            end = start + room * panel.width / sum(other.width for other in row)
            yield _Spot(panel=panel, number=number, x=(start, end), y=(max(bottom, 0.0), top))
            start = end + right / _WIDTH
            number += 1
        top = bottom - gap / inner


def _left(panel: Panel) -> float:
    """Pixels that stand to the left of a panel."""
    if panel.shares_y:
        return _BESIDE["nothing"]
    if not isinstance(panel.y, Categories):
        return _BESIDE["numbers"]
    lines = [line for name in panel.y.names for line in name.split("\n")]
    return _BESIDE["nothing"] + 8.0 * max(map(len, lines))


def _title(spot: _Spot) -> dict[str, Any]:
    return {
        "text": spot.panel.title,
        "x": spot.x[0],
        "y": spot.y[1],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 4,
        "showarrow": False,
        "font": {"size": 16},
    }


def _legend_below(x: float, y: float, inner: float) -> dict[str, Any]:
    place = {"x": x, "y": y - _PUSHED * _BELOW / inner, "yanchor": "top"}
    return {"orientation": "h", "tracegroupgap": 0, **place}


def _own_legend(spot: _Spot, inner: float) -> dict[str, Any]:
    if spot.panel.legend == "below":
        return _legend_below(spot.x[0], spot.y[0], inner)
    return {
        "x": spot.x[1],
        "y": spot.y[1],
        "xanchor": "right",
        "yanchor": "top",
        "bgcolor": "rgba(255, 255, 255, 0.7)",
        "font": {"size": 12},
        "tracegroupgap": 0,
    }


def _add_panel(
    layout: dict[str, Any], spot: _Spot, named: set[tuple[str, str]], inner: float
) -> Iterator[dict[str, Any]]:
    """The traces of a panel; its texts, shapes and legend go into the layout."""
    panel, (x, y) = spot.panel, spot.axes
    legend = "legend" if panel.legend == "shared" else f"legend{spot.number + 1}"
    if legend != "legend":
        layout[legend] = _own_legend(spot, inner)
    ranked = list(enumerate(panel.parts, start=1000))
    # Later traces are drawn on top, but the legend keeps the order of the parts.
    for rank, part in sorted(ranked, key=lambda item: item[1].layer):
        on = {"xref": x, "yref": y}
        layout["annotations"] += [on | note for note in notes_of(panel, part)]
        layout["shapes"] += [on | shape for shape in shapes_of(part)]
        traces = traces_of(panel, part)
        for trace in traces:
            trace |= {"xaxis": x, "yaxis": y, "legend": legend, "legendrank": rank}
            trace |= {"name": _legend_name(part), "legendgroup": part.group or part.name}
            trace["showlegend"] = False
            if "colorbar" in trace:
                trace["colorbar"] |= _beside(spot)
        is_new = part.name and (legend, part.name) not in named
        if traces and is_new and not isinstance(part, Cells):  # cells say so under the pointer
            named.add((legend, part.name))
            traces[-1]["showlegend"] = True
        yield from traces


def _legend_name(part: Part) -> str:
    """The name, with a label that says more than it."""
    if isinstance(part, Points) and part.label not in ("", part.name):
        return f"{part.name} {part.label}"
    return part.name


def _beside(spot: _Spot) -> dict[str, float]:
    """Where the bar of colours stands."""
    bottom, top = spot.y
    return {"x": spot.x[1] + 0.005, "y": (bottom + top) / 2, "len": top - bottom}
