"""Pilots and fit for the screen, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedplan.figures.screen_parts import axis_layout, new_figure
from fedplan.figures.style import BLUE, GREY, series_looks

if TYPE_CHECKING:
    from fedplan.figures.fit import FitFigure


def draw_fit(data: FitFigure) -> Any:
    """Pilots and curves on the left, intervals on the right."""
    figure = new_figure(
        [data.pilots_title, data.intervals_title if data.intervals else "no fit, so no intervals"],
        data.title,
        data.note,
        column_widths=[0.6, 0.4],
        horizontal_spacing=0.18,
    )
    _add_pilots(figure, data)
    _add_intervals(figure, data)
    return figure


def _add_pilots(figure: Any, data: FitFigure) -> None:
    from plotly.graph_objects import Scatter

    panel = {"row": 1, "col": 1}
    figure.update_xaxes(axis_layout(data.steps), **panel)
    figure.update_yaxes(axis_layout(data.iterations), **panel)
    looks = series_looks(pilot.clients_per_round for pilot in data.pilots)
    for curve in data.curves:
        colour, group = looks[curve.clients_per_round].colour, f"K={curve.clients_per_round:,}"
        both_ways = {
            "x": np.concatenate([curve.local_steps, curve.local_steps[::-1]]),
            "y": np.concatenate([curve.high, curve.low[::-1]]),
        }
        shared = {"legendgroup": group, "showlegend": False, "hoverinfo": "skip", "mode": "lines"}
        figure.add_trace(
            Scatter(
                **both_ways,
                **shared,
                fill="toself",
                fillcolor=colour,
                opacity=0.15,
                line={"width": 0},
            ),
            **panel,
        )
        line = {"color": colour, "width": 2}
        figure.add_trace(
            Scatter(x=curve.local_steps, y=curve.iterations, line=line, **shared), **panel
        )
    for clients, look in looks.items():
        pilots = [pilot for pilot in data.pilots if pilot.clients_per_round == clients]
        figure.add_trace(
            Scatter(
                x=[pilot.local_steps for pilot in pilots],
                y=[pilot.iterations for pilot in pilots],
                mode="markers",
                name=f"K={clients:,}",
                legendgroup=f"K={clients:,}",
                marker={"symbol": look.symbol, "size": 11, "color": look.colour},
                hovertemplate=f"K={clients:,}, E=%{{x:,}}: %{{y:,.4~g}}<extra></extra>",
            ),
            **panel,
        )


def _add_intervals(figure: Any, data: FitFigure) -> None:
    from plotly.graph_objects import Scatter

    panel = {"row": 1, "col": 2}
    if not data.intervals:
        figure.update_xaxes(visible=False, **panel)
        figure.update_yaxes(visible=False, **panel)
        return
    figure.update_xaxes(axis_layout(data.ratio), **panel)
    rows = list(range(len(data.intervals)))
    figure.update_yaxes(
        tickvals=rows,
        ticktext=[interval.label.replace("\n", "<br>") for interval in data.intervals],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        **panel,
    )
    figure.add_vline(x=1.0, line_dash="dash", line_color=GREY, line_width=1, **panel)
    for row, interval in zip(rows, data.intervals, strict=True):
        low, centre, high = interval.relative
        closed = data.ratio.has(high)
        figure.add_trace(
            Scatter(
                x=[low, centre, high if closed else data.ratio.high],
                y=[row] * 3,
                mode="lines+markers",
                line={"color": BLUE, "width": 3},
                marker={
                    "symbol": ["line-ns", "circle", "line-ns" if closed else "triangle-right"],
                    "size": [12, 12, 12],
                    "color": BLUE,
                    "opacity": 1.0,
                    "line": {"color": BLUE, "width": [2, 0, 2 if closed else 0]},
                },
                cliponaxis=False,
                showlegend=False,
                hovertemplate=interval.label.replace("\n", " ") + "<extra></extra>",
            ),
            **panel,
        )
