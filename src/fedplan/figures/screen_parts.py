"""Every kind of part as plotly traces and annotations."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.figures.axes import Axis
from fedplan.figures.spec import (
    STEP,
    Boxes,
    Categories,
    Line,
    Map,
    Panel,
    Part,
    Points,
    Shaded,
    Texts,
)
from fedplan.figures.style import BAND_OPACITY, GREY
from fedplan.words import few_digits

Trace = dict[str, Any]

CLEAR = "rgba(0,0,0,0)"
_LARGER = 1.35  # a marker on the screen, over one in print


def traces_of(panel: Panel, part: Part) -> list[Trace]:
    """What plotly draws of a part; the last is the one that a legend shows."""
    draw = _DRAW.get(type(part))
    return [] if draw is None else [*_bands(panel, part), draw(panel, part)]


def notes_of(panel: Panel) -> list[Trace]:
    """Texts, which plotly writes over the traces."""
    return [
        {
            "x": _place(panel.x, x),
            "y": _place(panel.y, y),
            "text": html_lines(f"<b>{text}</b>" if part.bold else text),
            "showarrow": False,
            "xanchor": {1: "left", 0: "center", -1: "right"}[np.sign(part.side[0])],
            "yanchor": {1: "bottom", 0: "middle", -1: "top"}[np.sign(part.side[1])],
            "xshift": float(STEP[0] * part.side[0]),
            "yshift": float(STEP[1] * part.side[1]),
            "align": "left",
            "font": {"size": 12, "color": part.colour},
        }
        for part in panel.parts
        if isinstance(part, Texts)
        for x, y, text in zip(part.x.tolist(), part.y.tolist(), part.texts, strict=True)
        if text
    ]


def html_lines(text: str) -> str:
    """A text of several lines as plotly wants it."""
    return text.replace("\n", "<br>")


def _place(axis: Axis | Categories, value: float) -> float:
    """Where a text stands: plotly wants the logarithm where an axis has one."""
    shown = value / axis.unit.size
    return math.log10(shown) if isinstance(axis, Axis) and axis.log else shown


def _numbers(values: FloatArray) -> list[float | None]:
    """Few digits, and nothing if there is no number."""
    return [None if math.isnan(value) else few_digits(value) for value in values.tolist()]


def _shown(panel: Panel, x: FloatArray, y: FloatArray) -> Trace:
    return {"x": _numbers(x / panel.x.unit.size), "y": _numbers(y / panel.y.unit.size)}


def _hover(panel: Panel, part: Part) -> Trace:
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
    if part.low.size and not part.has_band:
        up = panel.y.unit.size
        above, below = _numbers((part.high - part.y) / up), _numbers((part.y - part.low) / up)
        line["error_y"] = {"type": "data", "array": above, "arrayminus": below, "thickness": 1.2}
    return line if part.x.size else line | {"x": [None], "y": [None]}  # to be in the legend


def _bands(panel: Panel, part: Part) -> list[Trace]:
    """What lies behind a line."""
    if not isinstance(part, Line) or not part.has_band:
        return []
    low = part.low
    if isinstance(panel.y, Axis) and panel.y.log:
        low = np.maximum(low, panel.y.ends[0])
    around = np.concatenate([part.x, part.x[::-1]]), np.concatenate([part.high, low[::-1]])
    style = {
        "fill": "toself",
        "fillcolor": part.colour,
        "opacity": BAND_OPACITY,
        "line": {"width": 0},
    }
    shown = _shown(panel, *around)
    return [{"type": "scatter", **shown, "mode": "lines", **style, "hoverinfo": "skip"}]


def _points(panel: Panel, part: Points) -> Trace:
    look = part.look
    return {
        "type": "scatter",
        **_shown(panel, part.x, part.y),
        "mode": "markers",
        "marker": {
            "symbol": look.symbol,
            "size": _LARGER * look.size,
            "color": "white" if part.hollow else look.colour,
            "opacity": 1.0,
            "line": {"color": part.rim, "width": 3 if look.is_stroke else 1},
        },
        "cliponaxis": False,
        **({"customdata": [list(key) for key in part.keys]} if part.keys else {}),
        **_hover(panel, part),
    }


def _boxes(panel: Panel, part: Boxes) -> Trace:
    corner = _shown(panel, part.left, part.bottom)
    size = _shown(panel, part.right - part.left, part.top - part.bottom)
    one_or_each = [part.colours] * part.left.size if isinstance(part.colours, str) else part.colours
    return {
        "type": "bar",
        "x": corner["x"],
        "offset": 0,
        "width": size["x"],
        "base": corner["y"],
        "y": size["y"],
        "marker": {
            "color": [colour or CLEAR for colour in one_or_each],
            "line": {"color": part.edge or CLEAR, "width": part.edge_width if part.edge else 0},
            "pattern": {"shape": "/" if part.hatched else "", "fgcolor": GREY},
        },
        **_hover(panel, part),
    }


def _map(panel: Panel, part: Map) -> Trace:
    count, last = len(part.colours) - 1, max(len(part.colours) - 1, 1)
    colours = part.colours if count else part.colours * 2
    value = f"<br>{part.quantity} %{{customdata:+.1%}}<extra>"
    return {
        "type": "contour",
        "x": part.x.round(3).tolist(),
        "y": part.y.round(3).tolist(),
        "z": part.steps.round(2).tolist(),
        "customdata": part.values.round(3).tolist(),
        "hovertemplate": _hover(panel, part)["hovertemplate"].replace("<extra>", value),
        "contours": {"start": 0, "end": max(count - 1, 0), "size": 1, "coloring": "fill"},
        # plotly gives the i-th of n + 1 fills the colour at i / n
        "colorscale": [[rank / last, colour] for rank, colour in enumerate(colours)],
        "line": {"color": GREY, "width": 1},
        "showscale": False,
    }


def _shaded(_: Panel, part: Shaded) -> Trace:
    return {
        "type": "contour",
        "x": part.x.tolist(),
        "y": part.y.tolist(),
        "z": (~part.inside).astype(int).tolist(),
        "contours": {"type": "constraint", "operation": ">", "value": 0.5},  # shades the rest
        "fillcolor": "rgba(60, 60, 60, 0.35)",
        "line": {"color": GREY, "width": 1},
        "hoverinfo": "skip",
    }


_DRAW: dict[type[Part], Callable[..., Trace]] = {
    Line: _line,
    Points: _points,
    Boxes: _boxes,
    Map: _map,
    Shaded: _shaded,
}
