"""The screen renderer: figures in plotly's terms."""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fedplan.figures.axes import Axis
from fedplan.figures.screen_parts import CLEAR, Trace, html_lines, notes_of, traces_of
from fedplan.figures.spec import Categories, Figure, Line, Panel
from fedplan.figures.style import GREY, GRID, INK

_PER_INCH, _FEWER_PER_INCH = 130, 75  # pixels of height for an inch of print; if compact
_WIDE, _NARROW = 100, 75  # pixels of width for an inch of print; if compact
_NOTE_WIDTH = 150  # characters of a note that fit on one line
_NUMBER = ",~r"  # thousands separated, no exponent, no trailing zeros
_BESIDE = {"numbers": 75.0, "nothing": 25.0}  # pixels that stand beside a panel
_BELOW = 62.0  # pixels that the ticks and the label of an axis take
_ENTRY = 19  # pixels of a legend's line
_PUSHED = 1.2  # a long legend takes room from the panels, and so moves up towards them
_BETWEEN = 34.0  # pixels of air between two rows


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


def traces_and_layout(data: Figure, *, compact: bool = False) -> dict[str, Any]:
    """The figure in plotly's terms.

    compact : it is one of many on a page: lower, with every name of the legend on its own line.
    """
    lines = [f"<b>{data.title}</b>" if data.title else "", *textwrap.wrap(data.note, _NOTE_WIDTH)]
    title = "<br>".join([lines[0], *(f"<sub>{line}</sub>" for line in lines[1:])])
    margin = {"l": 70, "r": 30, "t": 90 + 20 * (len(lines) - 1), "b": 60}
    height = round((_FEWER_PER_INCH if compact else _PER_INCH) * data.size[1])
    if compact:
        margin = {"l": 20, "r": 44, "t": 14, "b": 50}
    inner = max(height - margin["t"] - margin["b"], 100)
    layout: dict[str, Any] = {
        "template": "none",
        "height": height,
        "font": {"family": "system-ui, sans-serif", "size": 12 if compact else 14, "color": INK},
        "title": {
            "text": title,
            "x": 0.01,
            "y": 1.0,
            "yanchor": "top",
            "pad": {"t": 20},
            "font": {"size": 19},
        },
        "margin": margin,
        "hoverlabel": {"align": "left"},
        "barmode": "overlay",
        "annotations": [],
        "paper_bgcolor": CLEAR if compact else "white",
        "plot_bgcolor": CLEAR if compact else "white",
        "legend": {
            "orientation": "h",
            "x": 0.0,
            "y": -_PUSHED * _BELOW / inner,
            "yanchor": "top",
            "tracegroupgap": 0,
        },
    }
    if any(isinstance(part, Line) and part.look for panel in data.panels for part in panel.parts):
        layout["legend"]["itemsizing"] = "constant"  # most markers of such a line have no size
    named: set[tuple[str, str]] = set()
    traces: list[Trace] = []
    for spot in _spots(data, inner, (_NARROW if compact else _WIDE) * data.size[0]):
        x, y = spot.axes
        names = x.replace("x", "xaxis"), y.replace("y", "yaxis")
        layout |= zip(names, _axes_layout(spot), strict=True)
        if spot.panel.title:
            layout["annotations"].append(_title(spot))
        if spot.panel.own_legend:
            layout[f"legend{spot.number + 1}"] = _own_legend(spot)
        layout["annotations"] += [{"xref": x, "yref": y} | note for note in notes_of(spot.panel)]
        traces += _traces(spot, named)
    if compact:
        entries = sum(trace["showlegend"] and trace["legend"] == "legend" for trace in traces)
        layout["height"] += _ENTRY * entries
        margin["b"] += _ENTRY * entries
        layout["legend"] |= {"orientation": "v", "yref": "container", "y": 0, "yanchor": "bottom"}
    return {"data": traces, "layout": layout}


def _axis_layout(axis: Axis | Categories) -> dict[str, Any]:
    """What plotly needs to show an axis as it is."""
    layout: dict[str, Any] = {
        "title": {"text": axis.label, "standoff": 8},
        "showline": True,
        "linecolor": GREY,
        "gridcolor": GRID,
        "zeroline": False,
    }
    if isinstance(axis, Categories):
        return layout | {
            "range": list(axis.ends),
            "tickvals": [place for place, _ in axis.ticks],
            "ticktext": [html_lines(name) + "  " for _, name in axis.ticks],
            "showgrid": False,
        }
    low, high = (math.log10(axis.low), math.log10(axis.high)) if axis.log else (axis.low, axis.high)
    slack = 1e-6 * (high - low)  # otherwise rounding may hide a mark at the very end
    layout |= {
        "type": "log" if axis.log else "linear",
        "range": [low - slack, high + slack],
        "tickformat": _NUMBER,
    }
    if axis.all_zero:
        layout["tickvals"] = [0.0]
    elif axis.decades:
        layout["dtick"] = "D2" if len(axis.decades) > 1 else 1  # 1, 2, 5, 10, or powers of 10
    return layout


def _axes_layout(spot: _Spot) -> tuple[dict[str, Any], dict[str, Any]]:
    """What plotly needs of x and of y."""
    panel, (x, y) = spot.panel, spot.axes
    side = "right" if panel.y_at_right else "left"
    on_y = {"domain": [*spot.y], "anchor": x, "side": side, "automargin": True}
    if panel.shares_y:
        on_y |= {"title": None, "showticklabels": False}
    on_x: dict[str, Any] = {"domain": [*spot.x], "anchor": y}
    if isinstance(panel.y, Categories):  # bars, which have their numbers beside them
        on_x |= {"nticks": 4, "tickangle": 0}
    return (_axis_layout(panel.x) | on_x, _axis_layout(panel.y) | on_y)


def _spots(data: Figure, inner: float, width: float) -> Iterator[_Spot]:
    """Panels in rows, from the top down; they share `inner` pixels of height."""
    heights = [max(panel.height for panel in row) for row in data.rows]
    gap = (_BELOW + _BETWEEN) / inner
    free = max(1.0 - gap * (len(heights) - 1), 0.3)
    number, top = 1, 1.0
    for row, height in zip(data.rows, heights, strict=True):
        bottom = top - free * height / sum(heights)
        lefts = [0.0, *(_left(panel) / width for panel in row[1:])]  # the first is in the margin
        room = 1.0 - sum(lefts)
        start = 0.0
        for panel, left in zip(row, lefts, strict=True):
            start += left
            end = start + room * panel.width / sum(other.width for other in row)
            place = (start, min(end, 1.0)), (max(bottom, 0.0), top)
            yield _Spot(panel=panel, number=number, x=place[0], y=place[1])
            start = end
            number += 1
        top = bottom - gap


def _left(panel: Panel) -> float:
    """Pixels that stand to the left of a panel."""
    if panel.shares_y or panel.y_at_right:
        return _BESIDE["nothing"]
    if not isinstance(panel.y, Categories):
        return _BESIDE["numbers"]
    lines = [line for name in panel.y.names for line in name.split("\n")]
    return _BESIDE["nothing"] + 8.0 * max(map(len, lines), default=0)


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


def _own_legend(spot: _Spot) -> dict[str, Any]:
    return {
        "x": spot.x[1],
        "y": spot.y[1],
        "xanchor": "right",
        "yanchor": "top",
        "bgcolor": "rgba(255, 255, 255, 0.7)",
        "font": {"size": 12},
        "tracegroupgap": 0,
    }


def _traces(spot: _Spot, named: set[tuple[str, str]]) -> list[Trace]:
    """The traces of a panel, by rising layer; `named` are those that a legend explains already."""
    x, y = spot.axes
    legend = f"legend{spot.number + 1}" if spot.panel.own_legend else "legend"
    found: list[tuple[int, Trace]] = []
    # Later traces are drawn on top, but the legend keeps the order of the parts.
    for rank, part in enumerate(spot.panel.parts, start=1000):
        traces = traces_of(spot.panel, part)
        on = {"xaxis": x, "yaxis": y, "legend": legend, "legendrank": rank}
        for trace in traces:
            trace |= on | {"name": part.name, "legendgroup": part.name, "showlegend": False}
        if traces and part.name and (legend, part.name) not in named:
            named.add((legend, part.name))
            traces[-1]["showlegend"] = True
        found += [(part.layer, trace) for trace in traces]
    return [trace for _, trace in sorted(found, key=lambda item: item[0])]
