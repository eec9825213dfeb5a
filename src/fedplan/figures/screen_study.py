"""A study for the screen, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedplan.figures.bill_panel import BillPanel
from fedplan.figures.cost_panel import CostPanel
from fedplan.figures.loss_panels import PilotPanel, TrainingPanel
from fedplan.figures.screen_cost import add_cost
from fedplan.figures.screen_parts import axis_layout, inner_legend, new_figure
from fedplan.figures.style import BLUE, GREY, INK, ORANGE, PALE, VERMILLION, series_looks

if TYPE_CHECKING:
    from fedplan.figures.study import StudyFigure

Place = dict[str, int]

_ROW_HEIGHT = 420  # pixels
_MARKERS = 8  # of a line
_LAST = 2000  # in a legend; a trace without a rank has 1000


def draw_study(data: StudyFigure) -> Any:
    """Two panels a row, a last one by itself all of its row."""
    rows = data.rows
    titles = [panel.title for panel in data.panels]
    figure = new_figure(
        titles + [""] * (2 * len(rows) - len(titles)),
        data.title,
        data.note,
        rows=len(rows),
        height=180 + _ROW_HEIGHT * len(rows),
        specs=[[{}, {}] if count == 2 else [{"colspan": 2}, None] for count in rows],
        horizontal_spacing=0.17,
        vertical_spacing=0.14,
    )
    figure.update_layout(legend={"y": -0.09, "tracegroupgap": 0})
    for position, panel in enumerate(data.panels):
        _add_panel(figure, panel, {"row": 1 + position // 2, "col": 1 + position % 2})
    return figure


def draw_panel(panel: PilotPanel | TrainingPanel | CostPanel | BillPanel) -> Any:
    """One panel by itself."""
    height = 300 if isinstance(panel, BillPanel) else 460
    figure = new_figure([""], panel.title, "", height=height)
    _add_panel(figure, panel, {"row": 1, "col": 1})
    return figure


def _add_panel(
    figure: Any, panel: PilotPanel | TrainingPanel | CostPanel | BillPanel, place: Place
) -> None:
    match panel:
        case PilotPanel():
            _add_pilots(figure, panel, place)
        case TrainingPanel():
            _add_training(figure, panel, place)
        case CostPanel():
            add_cost(figure, panel, place, explain=True)
        case BillPanel():
            _add_bill(figure, panel, place)


def _set_up_losses(figure: Any, panel: PilotPanel | TrainingPanel, legend: str, at: Place) -> None:
    from plotly.graph_objects import Scatter

    figure.update_xaxes(axis_layout(panel.rounds), **at)
    figure.update_yaxes(axis_layout(panel.loss), **at)
    inner_legend(figure, legend, **at)
    figure.add_trace(
        Scatter(
            x=[panel.rounds.low, panel.rounds.high],
            y=[panel.target_loss] * 2,
            mode="lines",
            name=f"target {panel.target_loss:g}",
            legend=legend,
            legendrank=_LAST,
            line={"color": GREY, "dash": "dot", "width": 2},
            hoverinfo="skip",
        ),
        **at,
    )


def _add_pilots(figure: Any, panel: PilotPanel, place: Place) -> None:
    from plotly.graph_objects import Scatter

    legend = "legend2"
    _set_up_losses(figure, panel, legend, place)
    for line, look in zip(panel.lines, series_looks(range(len(panel.lines))).values(), strict=True):
        at = line.measured.at
        every = max(1, len(at) // _MARKERS)
        figure.add_trace(
            Scatter(
                x=at,
                y=line.measured.losses,
                mode="lines+markers",
                name=line.name,
                legend=legend,
                legendgroup=line.name,
                line={"color": look.colour, "width": 2},
                marker={
                    "symbol": look.symbol,
                    "opacity": 1.0,
                    "size": [8 if place_ % every == 0 else 0 for place_ in range(len(at))],
                },
                hovertemplate=f"{line.name}, round %{{x:,}}: %{{y:.4~g}}<extra></extra>",
            ),
            **place,
        )
        figure.add_trace(
            Scatter(
                x=line.fit_at,
                y=line.fit,
                mode="lines",
                name=f"{line.name}, fitted",
                legendgroup=line.name,
                showlegend=False,
                line={"color": look.colour, "width": 2, "dash": "dash"},
                hovertemplate=f"{line.name}, fitted, round %{{x:,.0f}}: %{{y:.4~g}}<extra></extra>",
            ),
            **place,
        )
    if panel.fitted:
        dashed = {"color": INK, "width": 2, "dash": "dash"}
        name = "fitted, to the target"
        figure.add_trace(
            Scatter(x=[None], y=[None], mode="lines", name=name, legend=legend, line=dashed),
            **place,
        )


def _add_training(figure: Any, panel: TrainingPanel, place: Place) -> None:
    from plotly.graph_objects import Scatter

    legend = "legend3"
    _set_up_losses(figure, panel, legend, place)
    has_mean, named = panel.mean.size > 0, set()
    for line in panel.lines:
        name = "diverged" if line.diverged else panel.run_name
        figure.add_trace(
            Scatter(
                x=line.at,
                y=line.losses,
                mode="lines",
                name=name,
                legend=legend,
                legendgroup=name,
                showlegend=name not in named,
                line={
                    "color": VERMILLION if line.diverged else PALE if has_mean else BLUE,
                    "width": 1 if has_mean else 2.5,
                },
                hovertemplate=f"seed {line.seed}, round %{{x:,}}: %{{y:.4~g}}<extra></extra>",
            ),
            **place,
        )
        named.add(name)
    if has_mean:
        figure.add_trace(
            Scatter(
                x=panel.mean_at,
                y=panel.mean,
                mode="lines",
                name="their mean",
                legend=legend,
                line={"color": BLUE, "width": 3.5},
                hovertemplate="mean, round %{x:,.1f}: %{y:.4~g}<extra></extra>",
            ),
            **place,
        )
    for trace in _arrival(panel, legend):
        figure.add_trace(trace, **place)


def _arrival(panel: TrainingPanel, legend: str) -> list[Any]:
    from plotly.graph_objects import Scatter

    traces = []
    if (predicted := panel.predicted) is not None:
        marker = {"symbol": "line-ns", "size": 18, "line": {"color": ORANGE, "width": 3}}
        traces.append(
            Scatter(
                x=predicted.within(2 * panel.rounds.high),  # beyond: it is seen to go on
                y=[panel.target_loss] * 3,
                mode="lines+markers",
                name=predicted.name,
                legend=legend,
                line={"color": ORANGE, "width": 5},
                marker=marker,
                hovertemplate="predicted: %{x:,.0f} rounds<extra></extra>",
            )
        )
    if panel.measured is not None:
        traces.append(
            Scatter(
                x=[panel.measured],
                y=[panel.target_loss],
                mode="markers",
                name=panel.measured_name,
                legend=legend,
                marker={"size": 12, "color": INK, "line": {"color": "white", "width": 1}},
                hovertemplate="measured: %{x:,.4~g} rounds<extra></extra>",
            )
        )
    return traces


def _add_bill(figure: Any, panel: BillPanel, place: Place) -> None:
    from plotly.graph_objects import Bar

    names = [bar.name.replace("\n", "<br>") for bar in panel.bars]
    figure.update_xaxes(axis_layout(panel.cost), **place)
    figure.update_yaxes(
        type="category",
        range=[max(len(names), 2) - 0.5, -0.5],
        showgrid=False,
        ticksuffix="  ",
        **place,
    )
    for bar, name in zip(panel.bars, names, strict=True):
        text = panel.text(bar).replace("\n", "<br>")
        end = panel.end(bar)
        length, (low, high) = min(bar.cost, end), bar.interval or (bar.cost, bar.cost)
        figure.add_trace(
            Bar(
                x=[length],
                y=[name],
                orientation="h",
                width=0.55,
                showlegend=False,
                marker={
                    "color": "white" if bar.predicted else BLUE,
                    "line": {"color": ORANGE if bar.predicted else BLUE, "width": 1.5},
                    "pattern": {"shape": "/" if bar.predicted else "", "fgcolor": GREY},
                },
                error_x={
                    "type": "data",
                    "array": [min(high, end) - length],
                    "arrayminus": [length - min(low, end)],
                    "visible": bar.predicted,
                    "color": INK,
                },
                hovertemplate=f"{text}<extra></extra>",
            ),
            **place,
        )
        figure.add_annotation(
            x=end, y=name, text=text, showarrow=False, xanchor="left", xshift=8,
            align="left", font={"size": 12}, **place,
        )  # fmt: skip
