"""The cost panel for the screen, with plotly: a map over (K, E), or a curve where one is fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedplan.figures.screen_parts import axis_layout, mark_trace
from fedplan.figures.style import BLUE, GREY, band_colours, level_label, looks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.figures.cost_panel import CostPanel

_POINTS = 90  # an axis of the map: smooth enough, and small enough to load at once


def add_cost(figure: Any, data: CostPanel, place: dict[str, int], *, explain: bool = False) -> None:
    """Add the panel at a place, its row and column; `explain` puts its marks into the legend."""
    places: Sequence[tuple[float, float]]
    if data.is_map:
        _add_map(figure, data, place)
        places = [(mark.local_steps, mark.clients_per_round) for mark in data.marks]
    else:
        _add_curve(figure, data, place)
        places = data.curve().places
    found = zip(data.marks, places, looks(data.marks), strict=True)
    named: set[str] = set()
    for mark, at, look in sorted(found, key=lambda drawn: drawn[2].layer):
        if data.has(mark):
            name = data.explained(mark)
            trace = mark_trace(
                at,
                look,
                name=name,
                legendgroup=mark.name,
                showlegend=explain and name not in named,
                hovertemplate=f"<b>{mark.legend}</b><extra></extra>",
            )
            named.add(name)
            figure.add_trace(trace, **place)


def _add_map(figure: Any, data: CostPanel, place: dict[str, int]) -> None:
    from plotly.graph_objects import Contour

    figure.update_xaxes(axis_layout(data.steps), **place)
    figure.update_yaxes(axis_layout(data.clients), **place)
    clients, steps, extra_cost = data.smooth(_POINTS)
    colours, count = band_colours(data.levels, data.scale), len(data.levels)
    figure.add_trace(
        Contour(
            x=steps.round(3),
            y=clients.round(3),
            z=data.bands(extra_cost).round(3),
            text=[[f"{data.quantity} {value:+.1%}" for value in row] for row in extra_cost],
            hovertemplate="K=%{y:,.0f}, E=%{x:,.0f}<br>%{text}<extra></extra>",
            contours={"start": 0, "end": max(count - 1, 0), "size": 1, "coloring": "fill"},
            # plotly gives the i-th of n + 1 fills the colour at i / n
            colorscale=[[rank / max(count, 1), c] for rank, c in enumerate(colours)]
            if count
            else [[0, colours[0]], [1, colours[0]]],
            line={"color": GREY, "width": 1},
            colorbar={
                **_beside(figure.get_subplot(**place)),
                "title": {"text": data.quantity},
                "outlinewidth": 1,
                "outlinecolor": GREY,
                "tickvals": list(range(count)),
                "ticktext": [level_label(level) for level in data.levels],
            },
            showscale=bool(count),
        ),
        **place,
    )
    _add_forbidden(figure, data, place)


def _beside(panel: Any) -> dict[str, float]:
    """Where the colour bar of a panel stands."""
    bottom, top = panel.yaxis.domain
    return {"x": panel.xaxis.domain[1] + 0.005, "y": (bottom + top) / 2, "len": top - bottom}


def _add_forbidden(figure: Any, data: CostPanel, place: dict[str, int]) -> None:
    from plotly.graph_objects import Contour

    if data.allowed.all():
        return
    figure.add_trace(
        Contour(
            x=data.local_steps,
            y=data.clients_per_round,
            z=data.allowed.astype(float),
            contours={"type": "constraint", "operation": ">", "value": 0.5},  # shades the rest
            fillcolor="rgba(60, 60, 60, 0.35)",
            line={"color": GREY, "width": 1},
            name="over a limit",
            showlegend=True,
            hoverinfo="skip",
        ),
        **place,
    )


def _add_curve(figure: Any, data: CostPanel, place: dict[str, int]) -> None:
    from plotly.graph_objects import Scatter

    curve = data.curve()
    figure.update_xaxes(axis_layout(curve.x), **place)
    figure.update_yaxes(axis_layout(curve.y), **place)
    figure.add_trace(
        Scatter(
            x=curve.values,
            y=curve.ratio,
            mode="lines+markers",
            line={"color": BLUE, "width": 2},
            marker={"size": 5},
            showlegend=False,
            hovertemplate="%{x:,}: %{y:.4g}<extra></extra>",
        ),
        **place,
    )
