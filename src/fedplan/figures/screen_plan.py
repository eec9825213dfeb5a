"""Plan and frontier for the screen, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedplan.figures.screen_cost import add_cost
from fedplan.figures.screen_parts import axis_layout, mark_trace, new_figure, text_position
from fedplan.figures.style import BLUE, GREY, PALE, looks
from fedplan.figures.units import energy_unit, quantity, time_unit

if TYPE_CHECKING:
    from fedplan.figures.frontier import FrontierFigure, Mark
    from fedplan.figures.plan import PlanFigure
    from fedplan.theory.frontier import FrontierPoint

_AFTER_THE_REST = 1001  # plotly ranks a trace without a rank 1000


def draw_plan(data: PlanFigure) -> Any:
    """Frontier on the left, extra cost on the right, one legend below both."""
    frontier, cost = data.frontier, data.cost
    figure = new_figure(
        [frontier.title, cost.title], data.title, frontier.note, horizontal_spacing=0.1
    )
    _add_frontier(figure, frontier)
    add_cost(figure, cost, {"row": 1, "col": 2})
    return figure


def draw_frontier(data: FrontierFigure) -> Any:
    """The frontier alone."""
    figure = new_figure([""], data.title, data.note)
    _add_frontier(figure, data)
    return figure


def _add_frontier(figure: Any, data: FrontierFigure) -> None:
    panel = {"row": 1, "col": 1}
    figure.update_xaxes(axis_layout(data.time), **panel)
    figure.update_yaxes(axis_layout(data.energy), **panel)
    for trace in (_line(data), *_dots(data), *_limits(data)):
        figure.add_trace(trace, **panel)
    ranked = list(enumerate(zip(data.marks, looks(data.marks), strict=True)))
    # Later traces are drawn on top, but the legend keeps the order of the marks.
    for rank, (mark, look) in sorted(ranked, key=lambda item: item[1][1].layer):
        place = data.time.pinned(mark.time_s), data.energy.pinned(mark.energy_j)
        beyond = "" if data.shows(mark) else f" {data.whereabouts(mark)}"
        trace = mark_trace(
            place,
            look,
            name=mark.legend + beyond,
            legendgroup=mark.name,
            legendrank=_AFTER_THE_REST + rank,
            hovertemplate=f"<b>{mark.legend}</b><br>{_totals(mark)}<extra></extra>",
        )
        if not mark.remark:
            text = f"<b>{mark.label}</b>" if mark.role == "chosen" else mark.label
            trace.update(mode="markers+text", text=[text], textposition=text_position(mark, data))
        figure.add_trace(trace, **panel)


def _line(data: FrontierFigure) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=[data.time.shown(point.time_s) for point in data.points],
        y=[data.energy.shown(point.energy_j) for point in data.points],
        mode="lines",
        line={"color": PALE, "width": 2},
        hoverinfo="skip",
        showlegend=False,
    )


def _dots(data: FrontierFigure) -> list[Any]:
    """The points: first those that no energy weight selects, then on top those that one does."""
    from plotly.graph_objects import Scatter

    dots = []
    for selected, face, edge, name in (
        (False, "white", PALE, "frontier, selected by no energy weight"),
        (True, BLUE, BLUE, "frontier"),
    ):
        points = [p for p in data.points if (p.energy_weight_from is not None) == selected]
        trace = Scatter(
            x=[data.time.shown(point.time_s) for point in points],
            y=[data.energy.shown(point.energy_j) for point in points],
            mode="markers",
            name=name,
            marker={"size": 8, "color": face, "line": {"color": edge, "width": 1.5}},
            text=[_point_text(point) for point in points],
            hovertemplate="%{text}<extra></extra>",
            showlegend=bool(points),
        )
        dots.append(trace)
    return dots


def _limits(data: FrontierFigure) -> list[Any]:
    from plotly.graph_objects import Scatter

    lines = []
    time, energy = data.time, data.energy
    if data.deadline_s is not None and time.has(data.deadline_s):
        at = time.shown(data.deadline_s)
        name = f"deadline: {quantity(data.deadline_s, time.unit)}"
        lines.append(([at, at], [energy.low, energy.high], name, "dash"))
    if data.energy_budget_j is not None and energy.has(data.energy_budget_j):
        at = energy.shown(data.energy_budget_j)
        name = f"energy budget: {quantity(data.energy_budget_j, energy.unit)}"
        lines.append(([time.low, time.high], [at, at], name, "dot"))
    return [
        Scatter(x=x, y=y, mode="lines", name=name, line={"color": GREY, "dash": dash})
        for x, y, name, dash in lines
    ]


def _point_text(point: FrontierPoint) -> str:
    weights = "selected by no energy weight"
    if point.energy_weight_from is not None and point.energy_weight_to is not None:
        weights = (
            f"cheapest for energy weights {point.energy_weight_from:.3g} "
            f"to {point.energy_weight_to:.3g}"
        )
    setting = f"<b>K={point.clients_per_round:,}, E={point.local_steps:,}</b>"
    return f"{setting}<br>{_totals(point)}<br>{weights}"


def _totals(item: Mark | FrontierPoint) -> str:
    time = quantity(item.time_s, time_unit(item.time_s))
    return f"{time}, {quantity(item.energy_j, energy_unit(item.energy_j))}"
