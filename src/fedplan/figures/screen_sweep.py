"""A sweep for the screen, with plotly: a heat map over (K, E)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedplan.figures.screen_parts import new_figure
from fedplan.figures.style import DARK_FROM, GREY, HEAT, INK, VERMILLION
from fedplan.figures.sweep import ratio_label

if TYPE_CHECKING:
    from fedplan.figures.sweep import SweepFigure


def draw_sweep(data: SweepFigure) -> Any:
    """One cell a setting, light where it is cheap; the numbers under the pointer."""
    figure = new_figure([""], data.title, data.note)
    axis = {"type": "category", "showgrid": False, "linecolor": GREY}
    steps = [f"{e:,}" for e in data.local_steps]
    clients = [f"{k:,}" for k in data.clients_per_round]
    figure.update_xaxes(axis | {"title": {"text": "local steps E"}, "categoryarray": steps})
    figure.update_yaxes(axis | {"title": {"text": "clients per round K"}, "categoryarray": clients})
    figure.add_trace(_heat(data, steps, clients))
    # All at once: plotly takes minutes to add a thousand one by one.
    figure.update_layout(annotations=_texts(data))
    if data.best is not None:
        row, column = data.best
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": VERMILLION, "width": 3},
        )
    return figure


def _texts(data: SweepFigure) -> list[dict[str, Any]]:
    shade = data.shade
    return [
        {
            "x": column,  # a place among the categories: their names may look like numbers
            "y": row,
            "text": data.labels[row][column],
            "showarrow": False,
            "font": {"color": "white" if shade[row, column] > DARK_FROM else INK, "size": 13},
        }
        for row, column in np.ndindex(data.ratio.shape)
        if data.labels[row][column]
    ]


def _heat(data: SweepFigure, steps: list[str], clients: list[str]) -> Any:
    from plotly.graph_objects import Heatmap

    def said(ratio: float) -> str:
        if np.isnan(ratio):
            return "not tried"
        return "a seed did not reach the target" if np.isinf(ratio) else ratio_label(ratio)

    return Heatmap(
        x=steps,
        y=clients,
        z=[[None if np.isnan(shade) else round(shade, 4) for shade in row] for row in data.shade],
        zmin=0,
        zmax=1,
        xgap=2,
        ygap=2,
        colorscale=[[place / (len(HEAT) - 1), colour] for place, colour in enumerate(HEAT)],
        showscale=data.best is not None,
        colorbar={
            "tickvals": [shade for shade, _ in data.ticks],
            "ticktext": [text for _, text in data.ticks],
        },
        customdata=[[said(float(ratio)) for ratio in row] for row in data.ratio],
        hovertemplate="K=%{y}, E=%{x}<br>%{customdata}<extra></extra>",
        hoverongaps=True,
    )
