"""Every kind of part for the screen, as the traces, texts and shapes that plotly draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fedplan.figures.labels import screen_position
from fedplan.figures.spec import (
    Bars,
    Cells,
    Contours,
    Interval,
    Line,
    Part,
    Points,
    Shaded,
    Texts,
)
from fedplan.figures.style import DARK_FROM, GREY, HEAT, INK, VERMILLION
from fedplan.figures.units import Axis

if TYPE_CHECKING:
    from fedplan.core.fleet import FloatArray
    from fedplan.figures.spec import Categories, Panel

Trace = dict[str, Any]

_LARGER = 1.35  # a marker on the screen, over one in print
_SMALL = 6.0  # markers below need no white rim to be told from what is behind


def traces_of(panel: Panel, part: Part) -> list[Trace]:
    """What plotly draws of a part; the last is the one that a legend shows."""
    draw = _DRAW.get(type(part))
    return [] if draw is None else [*_bands(panel, part), draw(panel, part)]


def notes_of(panel: Panel, part: Part) -> list[Trace]:
    """Texts that plotly writes over the traces."""
    if isinstance(part, Cells):
        return _cell_texts(part)
    if not isinstance(part, Texts):
        return []
    shift = {"right": (8, 0), "above": (8, 10), "center": (0, 0)}[part.side]
    return [
        {
            "x": _place(panel.x, x),
            "y": _place(panel.y, y),
            "text": html_lines(f"<b>{text}</b>" if part.bold else text),
            "showarrow": False,
            "xanchor": "center" if part.side == "center" else "left",
            "xshift": shift[0],
            "yshift": shift[1],
            "align": "left",
            "font": {"size": 12, "color": part.colour},
        }
        for x, y, text in zip(part.x.tolist(), part.y.tolist(), part.texts, strict=True)
        if text
    ]


def shapes_of(part: Part) -> list[Trace]:
    """Frames that plotly draws over the traces."""
    if not isinstance(part, Cells) or part.framed is None:
        return []
    row, column = part.framed
    corners = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return [{"type": "rect", **corners, "line": {"color": VERMILLION, "width": 3}}]


def html_lines(text: str) -> str:
    """A text of several lines as plotly wants it."""
    return text.replace("\n", "<br>")


def _place(axis: Axis | Categories, value: float) -> float:
    """Where a text stands: plotly wants the logarithm where an axis has one."""
    shown = value / axis.unit.size
    return math.log10(shown) if isinstance(axis, Axis) and axis.log else shown


def _shown(panel: Panel, x: FloatArray, y: FloatArray) -> dict[str, Any]:
    return {"x": x / panel.x.unit.size, "y": y / panel.y.unit.size}


def _hover(panel: Panel, part: Part) -> dict[str, Any]:
    if not part.hover:
        return {"hoverinfo": "skip"}
    if isinstance(part.hover, tuple):
        texts = [html_lines(text) for text in part.hover]
        return {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}
    text = html_lines(part.hover)
    for name, axis in (("x", panel.x), ("y", panel.y)):
        form = ",.0f" if isinstance(axis, Axis) and axis.counts else ",.4~g"
        text = text.replace(f"{{{name}}}", f"%{{{name}:{form}}}")
    return {"hovertemplate": f"{text}<extra></extra>"}


def _line(panel: Panel, part: Line) -> Trace:
    line: Trace = {
        "type": "scatter",
        **_shown(panel, part.x, part.y),
        "mode": "lines+markers" if part.look else "lines",
        "line": {"color": part.colour, "width": 1.25 * part.width, "dash": part.dash},
        **_hover(panel, part),
    }
    if part.look:
        sizes = [part.look.size if place % part.every == 0 else 0 for place in range(part.x.size)]
        line["marker"] = {"symbol": part.look.symbol, "opacity": 1.0, "size": sizes}
    if part.spread == "bars" and part.low.size:
        up = panel.y.unit.size
        around = {"array": (part.high - part.y) / up, "arrayminus": (part.y - part.low) / up}
        line["error_y"] = {"type": "data", **around, "thickness": 1.2}
    return line if part.x.size else line | {"x": [None], "y": [None]}  # to be in the legend


def _bands(panel: Panel, part: Part) -> list[Trace]:
    """What lies behind a line."""
    if not isinstance(part, Line) or part.spread != "band" or not part.low.size:
        return []
    low = part.low
    if isinstance(panel.y, Axis) and panel.y.log:
        low = np.maximum(low, panel.y.ends[0])
    around = np.concatenate([part.x, part.x[::-1]]), np.concatenate([part.high, low[::-1]])
    style = {"fill": "toself", "fillcolor": part.colour, "opacity": 0.16, "line": {"width": 0}}
    shown = _shown(panel, *around)
    return [{"type": "scatter", **shown, "mode": "lines", **style, "hoverinfo": "skip"}]


def _points(panel: Panel, part: Points) -> Trace:
    look = part.look
    has_rim = not (part.hollow or look.symbol == "line-ns" or look.size < _SMALL)
    trace = {
        "type": "scatter",
        **_shown(panel, part.x, part.y),
        "mode": "markers",
        "marker": {
            "symbol": look.symbol,
            "size": _LARGER * look.size,
            "color": "white" if part.hollow else look.colour,
            "line": {
                "color": "white" if has_rim else look.colour,
                "width": 3 if look.symbol == "line-ns" else 1,
            },
        },
        "cliponaxis": False,
        **_hover(panel, part),
    }
    if part.label == part.name != "":  # what else a label says is in the legend
        text = html_lines(f"<b>{part.label}</b>" if part.bold else part.label)
        texts = [text] + [""] * (part.x.size - 1)
        trace |= {
            "mode": "markers+text",
            "text": texts,
            "textposition": screen_position(panel, part),
        }
    return trace


def _interval(panel: Panel, part: Interval) -> Trace:
    symbols = ["line-ns", "triangle-right" if part.goes_on else "line-ns"]
    widths = [2, 0 if part.goes_on else 2]
    return {
        "type": "scatter",
        **_shown(panel, np.array([part.low, part.high]), np.full(2, part.at)),
        "mode": "lines+markers",
        "line": {"color": part.colour, "width": 1.35 * part.width},
        "marker": {
            "symbol": symbols,
            "size": 12,
            "color": part.colour,
            "opacity": 1.0,
            "line": {"color": part.colour, "width": widths},
        },
        **_hover(panel, part),
    }


def _bars(panel: Panel, part: Bars) -> Trace:
    start, end = part.start / panel.x.unit.size, part.end / panel.x.unit.size
    return {
        "type": "bar",
        "orientation": "h",
        "y": part.at,
        "base": start,
        "x": end - start,
        "width": part.thickness,
        "marker": {
            "color": part.colour,
            "line": {"color": part.edge or part.colour, "width": 1.5 if part.edge else 0},
            "pattern": {"shape": "/" if part.hatched else "", "fgcolor": GREY},
        },
        **_hover(panel, part),
    }


def _contours(panel: Panel, part: Contours) -> Trace:
    count, last = len(part.levels), max(len(part.levels), 1)
    colours = part.colours if count else part.colours * 2
    hover = _hover(panel, part)["hovertemplate"].replace("<extra>", "<br>%{text}<extra>")
    return {
        "type": "contour",
        "x": part.x.round(3),
        "y": part.y.round(3),
        "z": part.steps.round(3),
        "text": part.texts,
        "hovertemplate": hover,
        "contours": {"start": 0, "end": max(count - 1, 0), "size": 1, "coloring": "fill"},
        # plotly gives the i-th of n + 1 fills the colour at i / n
        "colorscale": [[rank / last, colour] for rank, colour in enumerate(colours)],
        "line": {"color": GREY, "width": 1},
        "colorbar": {
            "title": {"text": part.quantity},
            "outlinewidth": 1,
            "outlinecolor": GREY,
            "tickvals": list(range(count)),
            "ticktext": part.levels,
        },
        "showscale": bool(count),
    }


def _shaded(_: Panel, part: Shaded) -> Trace:
    return {
        "type": "contour",
        "x": part.x,
        "y": part.y,
        "z": (~part.inside).astype(float),
        "contours": {"type": "constraint", "operation": ">", "value": 0.5},  # shades the rest
        "fillcolor": "rgba(60, 60, 60, 0.35)",
        "line": {"color": GREY, "width": 1},
        "hoverinfo": "skip",
    }


def _cells(_: Panel, part: Cells) -> Trace:
    return {
        "type": "heatmap",
        "z": [[None if math.isnan(shade) else round(shade, 4) for shade in r] for r in part.shades],
        "zmin": 0,
        "zmax": 1,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[place / (len(HEAT) - 1), colour] for place, colour in enumerate(HEAT)],
        "showscale": bool(part.scale),
        "colorbar": {
            "tickvals": [shade for shade, _ in part.scale],
            "ticktext": [text for _, text in part.scale],
        },
        "customdata": [[html_lines(text) for text in row] for row in part.hovers],
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": True,
    }


def _cell_texts(part: Cells) -> list[Trace]:
    return [
        {
            "x": int(column),
            "y": int(row),
            "text": part.texts[row][column],
            "showarrow": False,
            "font": {"color": "white" if part.shades[row, column] > DARK_FROM else INK, "size": 13},
        }
        for row, column in np.ndindex(part.shades.shape)
        if part.texts[row][column]
    ]


_DRAW: dict[type[Part], Callable[..., Trace]] = {
    Line: _line,
    Points: _points,
    Interval: _interval,
    Bars: _bars,
    Contours: _contours,
    Shaded: _shaded,
    Cells: _cells,
}
