"""Parts of every drawing for the screen: the layout, axes and marks."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from fedplan.figures.style import GREY, GRID, INK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.figures.frontier import FrontierFigure, Mark
    from fedplan.figures.style import Look
    from fedplan.figures.units import Axis
    from fedplan.theory.frontier import FrontierPoint

_NOTE_WIDTH = 150  # characters of a note that fit on one line
_CHARACTER, _PANEL = (8.0, 22.0), (450.0, 330.0)  # usual width and height, in pixels
_POSITIONS = (
    "middle right",
    "top right",
    "top center",
    "bottom left",
    "bottom center",
    "middle left",
    "top left",
    "bottom right",
)
_NUMBER = ",~r"  # thousands separated, no exponent, no trailing zeros


def new_figure(
    titles: Sequence[str],
    title: str,
    note: str,
    *,
    rows: int = 1,
    height: int = 600,
    **subplots: Any,
) -> Any:
    """A plotly figure with one panel a title, side by side or in several rows."""
    from plotly.subplots import make_subplots

    columns = -(-len(titles) // rows)
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=titles, **subplots)
    lines = [f"<b>{title}</b>" if title else "", *textwrap.wrap(note, _NOTE_WIDTH)]
    text = "<br>".join([lines[0], *(f"<sub>{line}</sub>" for line in lines[1:])])
    figure.update_layout(
        template="plotly_white",
        height=height,
        font={"family": "system-ui, sans-serif", "size": 14, "color": INK},
        title={"text": text, "x": 0.01, "y": 0.97, "yanchor": "top", "font": {"size": 19}},
        margin={"l": 70, "r": 30, "t": 90 + 20 * (len(lines) - 1), "b": 60},
        legend={"orientation": "h", "yanchor": "top", "y": -0.18, "x": 0.0},
        hoverlabel={"align": "left"},
    )
    return figure


def axis_layout(axis: Axis) -> dict[str, Any]:
    """What plotly needs to show an axis as it is."""
    low, high = (math.log10(axis.low), math.log10(axis.high)) if axis.log else (axis.low, axis.high)
    slack = 1e-6 * (high - low)  # or rounding hides a mark that stands right at an end
    layout: dict[str, Any] = {
        "title": {"text": axis.label},
        "type": "log" if axis.log else "linear",
        "range": [low - slack, high + slack],
        "tickformat": _NUMBER,
        "showline": True,
        "linecolor": GREY,
        "gridcolor": GRID,
        "zeroline": False,
    }
    if axis.log:
        layout["dtick"] = "D2" if axis.has_few_decades else 1  # 1, 2, 5, 10, or powers of 10
    if axis.ticks is not None:
        layout |= {"tickvals": axis.ticks, "dtick": None}
    if axis.all_zero:
        layout["tickvals"] = [0]
    return layout


def inner_legend(figure: Any, name: str, row: int, col: int) -> None:
    """A legend in the upper right of a panel, for the traces that name it."""
    panel = figure.get_subplot(row, col)
    figure.update_layout(
        {
            name: {
                "x": panel.xaxis.domain[1],
                "y": panel.yaxis.domain[1],
                "xanchor": "right",
                "yanchor": "top",
                "bgcolor": "rgba(255, 255, 255, 0.7)",
                "font": {"size": 12},
                "tracegroupgap": 0,
            }
        }
    )


def mark_trace(place: tuple[float, float], look: Look, **settings: Any) -> Any:
    """One setting, above everything else."""
    from plotly.graph_objects import Scatter

    marker = {
        "symbol": look.symbol,
        "size": 1.35 * look.size,
        "color": look.colour,
        "line": {"color": "white", "width": 1},
    }
    return Scatter(
        x=[place[0]], y=[place[1]], mode="markers", marker=marker, cliponaxis=False, **settings
    )


def text_position(mark: Mark, data: FrontierFigure) -> str:
    """Where plotly should put a mark's label: where it covers least, by a guess at sizes.

    Plotly measures text only in the browser, so a panel of usual size is assumed.
    """
    width, height = len(mark.label) * _CHARACTER[0] / _PANEL[0], _CHARACTER[1] / _PANEL[1]
    gap_x, gap_y = 12 / _PANEL[0], 16 / _PANEL[1]
    across, up = data.time.share(mark.time_s), data.energy.share(mark.energy_j)
    items: tuple[Mark | FrontierPoint, ...] = (*data.marks, *data.points)
    others = [
        (data.time.share(item.time_s), data.energy.share(item.energy_j))
        for item in items
        if item is not mark
    ]

    def covered(position: str) -> float:
        vertical, side = position.split()
        left = across + {"right": gap_x, "center": -width / 2, "left": -gap_x - width}[side]
        bottom = up - height / 2 + {"top": gap_y, "middle": 0.0, "bottom": -gap_y}[vertical]
        outside = max(-left, left + width - 1, -bottom, bottom + height - 1, 0.0)
        return 1000 * outside + sum(
            left <= x <= left + width and bottom <= y <= bottom + height for x, y in others
        )

    return min(_POSITIONS, key=covered)
