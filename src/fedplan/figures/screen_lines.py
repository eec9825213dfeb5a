"""Lines with their spread for the screen, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedplan.figures.screen_parts import axis_layout, new_figure
from fedplan.figures.style import GREY, line_looks

if TYPE_CHECKING:
    from fedplan.figures.lines import Line, LinePanel, LinesFigure, Spread
    from fedplan.figures.style import Look

_MARKERS = 10  # of a line at most


def draw_lines(data: LinesFigure) -> Any:
    """Panels in rows, and one legend below them all."""
    rows = -(-len(data.panels) // data.columns)
    figure = new_figure(
        [panel.title for panel in data.panels],
        data.title,
        data.note,
        rows=rows,
        height=200 + 400 * rows,
        horizontal_spacing=0.1,
        vertical_spacing=0.14,
    )
    named: set[tuple[str, str]] = set()
    for position, panel in enumerate(data.panels):
        row, column = divmod(position, data.columns)
        place = {"row": 1 + row, "col": 1 + column}
        figure.update_xaxes(axis_layout(panel.x), **place)
        figure.update_yaxes(axis_layout(panel.y), **place)
        legend = "legend" if data.one_legend or not position else f"legend{position + 1}"
        _place_legend(figure, legend, place, rows)
        for trace in _traces(panel, data.spread):
            shown = trace.showlegend is not False and (legend, trace.name) not in named
            trace.update(showlegend=shown, legend=legend)
            if shown:
                named.add((legend, trace.name))
            figure.add_trace(trace, **place)
    return figure


def _place_legend(figure: Any, legend: str, place: dict[str, int], rows: int) -> None:
    """Below all panels, from where this one begins."""
    start = 0.0 if legend == "legend" else figure.get_subplot(**place).xaxis.domain[0]
    figure.update_layout(
        {
            legend: {
                "orientation": "h",
                "yanchor": "top",
                "x": start,
                "y": -0.2 / rows,
                "itemsizing": "constant",
            }
        }
    )


def _traces(panel: LinePanel, spread: Spread) -> list[Any]:
    from plotly.graph_objects import Scatter

    looks = line_looks([line.name for line in panel.lines])
    traces = []
    for line in panel.lines:
        look = looks[line.name]
        if line.spread.size and spread == "band":
            traces.append(_band(panel, line, look))
        traces.append(_line(panel, line, look, spread))
    if panel.level is not None:
        level, name = panel.level
        traces.append(
            Scatter(
                x=[panel.x.low, panel.x.high],
                y=[panel.y.shown(level)] * 2,
                mode="lines",
                name=name,
                legendgroup=name,
                line={"color": GREY, "dash": "dot", "width": 2},
                hoverinfo="skip",
            )
        )
    return traces


def _band(panel: LinePanel, line: Line, look: Look) -> Any:
    from plotly.graph_objects import Scatter

    x, y, around = _shown(panel, line)
    low = np.maximum(y - around, panel.y.low) if panel.y.log else y - around
    return Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([y + around, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=look.colour,
        opacity=0.16,
        line={"width": 0},
        name=line.name,
        legendgroup=line.name,
        showlegend=False,
        hoverinfo="skip",
    )


def _line(panel: LinePanel, line: Line, look: Look, spread: Spread) -> Any:
    from plotly.graph_objects import Scatter

    x, y, around = _shown(panel, line)
    every = max(1, len(x) // _MARKERS) if spread == "band" else 1
    has_bars = spread == "bars" and around.size > 0
    texts = ["" for _ in x]
    texts[0], texts[-1] = line.ends
    return Scatter(
        x=x,
        y=y,
        mode="lines+markers+text" if any(texts) else "lines+markers",
        text=texts,
        textposition="top right",
        name=line.name,
        legendgroup=line.name,
        line={"color": look.colour, "width": 2},
        marker={
            "symbol": look.symbol,
            "opacity": 1.0,
            "size": [look.size if place % every == 0 else 0 for place in range(len(x))],
        },
        error_y={"type": "data", "array": around, "visible": has_bars, "thickness": 1.2},
        hovertemplate=f"{line.name}: %{{x:,.4~g}}, %{{y:,.4~g}}<extra></extra>",
    )


def _shown(panel: LinePanel, line: Line) -> tuple[Any, Any, Any]:
    size = panel.y.unit.size
    return line.x / panel.x.unit.size, line.y / size, line.spread / size
