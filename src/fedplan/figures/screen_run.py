"""Runs for the screen, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedplan.figures.screen_parts import axis_layout, new_figure
from fedplan.figures.style import BLUE, GREY, PALE, VERMILLION

if TYPE_CHECKING:
    from fedplan.figures.run import RunFigure, RunLine, RunPanel


def draw_run(data: RunFigure) -> Any:
    """Panels side by side, with one loss axis."""
    figure = new_figure(
        ["" for _ in data.panels], data.title, data.note, shared_yaxes=True, horizontal_spacing=0.03
    )
    named: set[str] = set()
    for column, panel in enumerate(data.panels, start=1):
        place = {"row": 1, "col": column}
        figure.update_xaxes(axis_layout(panel.quantity), **place)
        figure.update_yaxes(axis_layout(data.loss), **place)
        if column > 1:
            figure.update_yaxes(title=None, **place)
        for trace in _traces(panel, data):
            trace.update(showlegend=trace.name not in named)
            named.add(trace.name)
            figure.add_trace(trace, **place)
    return figure


def _traces(panel: RunPanel, data: RunFigure) -> list[Any]:
    from plotly.graph_objects import Scatter

    has_median = panel.median.size > 0
    traces = [_run_trace(line, panel, data, has_median=has_median) for line in panel.lines]
    if has_median:
        traces.append(
            Scatter(
                x=[panel.quantity.shown(value) for value in panel.median_at],
                y=panel.median,
                mode="lines",
                name="median",
                legendgroup="median",
                line={"color": BLUE, "width": 3},
                hovertemplate="median: %{y:.4~g}<extra></extra>",
            )
        )
    if data.target_loss is not None:
        traces.append(
            Scatter(
                x=[panel.quantity.low, panel.quantity.high],
                y=[data.target_loss] * 2,
                mode="lines",
                name=data.target_name,
                legendgroup="target",
                line={"color": GREY, "dash": "dash", "width": 1.5},
                hoverinfo="skip",
            )
        )
    return traces


def _run_trace(line: RunLine, panel: RunPanel, data: RunFigure, *, has_median: bool) -> Any:
    from plotly.graph_objects import Scatter

    name = "diverged" if line.diverged else data.run_name
    colour = VERMILLION if line.diverged else PALE if has_median else BLUE
    return Scatter(
        x=[panel.quantity.shown(value) for value in line.at],
        y=line.losses,
        mode="lines",
        name=name,
        legendgroup=name,
        line={"color": colour, "width": 1 if has_median else 2},
        hovertemplate=f"seed {line.seed}: %{{y:.4~g}}<extra></extra>",
    )
