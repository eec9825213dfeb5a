"""Drawing and saving: one call for every figure, and files that are whole or not there."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedplan.atomic import check_target, draft_of, unwritable
from fedplan.figures.bill_panel import BillPanel
from fedplan.figures.cost_panel import CostPanel
from fedplan.figures.fit import FitFigure
from fedplan.figures.frontier import FrontierFigure
from fedplan.figures.lines import LinesFigure
from fedplan.figures.loss_panels import PilotPanel, TrainingPanel
from fedplan.figures.plan import PlanFigure
from fedplan.figures.run import RunFigure
from fedplan.figures.study import StudyFigure
from fedplan.figures.sweep import SweepFigure

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure

Panel = PilotPanel | TrainingPanel | CostPanel | BillPanel  # of a study, each a figure by itself
FigureData = (
    PlanFigure
    | FrontierFigure
    | FitFigure
    | RunFigure
    | StudyFigure
    | SweepFigure
    | LinesFigure
    | Panel
)

SUFFIXES = (".png", ".svg", ".html")
_DPI = 160


def draw_print(data: FigureData) -> Figure:
    """The figure for print, as a matplotlib figure."""
    from fedplan.figures.print_parts import print_style

    with print_style():
        return _drawn_for_print(data)


def draw_screen(data: FigureData) -> Any:
    """The figure for the screen, as a plotly figure."""
    from fedplan.figures import (
        screen_fit,
        screen_lines,
        screen_plan,
        screen_run,
        screen_study,
        screen_sweep,
    )

    match data:
        case PlanFigure():
            return screen_plan.draw_plan(data)
        case FrontierFigure():
            return screen_plan.draw_frontier(data)
        case FitFigure():
            return screen_fit.draw_fit(data)
        case RunFigure():
            return screen_run.draw_run(data)
        case SweepFigure():
            return screen_sweep.draw_sweep(data)
        case StudyFigure():
            return screen_study.draw_study(data)
        case PilotPanel() | TrainingPanel() | CostPanel() | BillPanel():
            return screen_study.draw_panel(data)
        case LinesFigure():
            return screen_lines.draw_lines(data)


def save_figure(data: FigureData, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a .png, .svg or .html file; a failure leaves an old file as it was.

    The same data gives the same file. An .html is complete in itself: it works offline.
    """
    check_path(path)
    content = rendered(data, Path(path).suffix.lower())
    try:
        with draft_of(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise unwritable(path, SUFFIXES, f"cannot be written ({error.strerror})") from error


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no figure can be saved to, as far as that shows before drawing."""
    check_target(path, SUFFIXES)


def rendered(data: FigureData, suffix: str) -> bytes:
    """What a file of this ending holds."""
    if suffix == ".html":
        return _html(data)
    from fedplan.figures.print_parts import print_style

    buffer = io.BytesIO()
    with print_style():
        figure = _drawn_for_print(data)
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(buffer, format=suffix[1:], dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _drawn_for_print(data: FigureData) -> Figure:
    from fedplan.figures import (
        print_fit,
        print_lines,
        print_plan,
        print_run,
        print_study,
        print_sweep,
    )

    match data:
        case PlanFigure():
            return print_plan.draw_plan(data)
        case FrontierFigure():
            return print_plan.draw_frontier(data)
        case FitFigure():
            return print_fit.draw_fit(data)
        case RunFigure():
            return print_run.draw_run(data)
        case SweepFigure():
            return print_sweep.draw_sweep(data)
        case StudyFigure():
            return print_study.draw_study(data)
        case PilotPanel() | TrainingPanel() | CostPanel() | BillPanel():
            return print_study.draw_panel(data)
        case LinesFigure():
            return print_lines.draw_lines(data)


def _html(data: FigureData) -> bytes:
    page: str = draw_screen(data).to_html(
        include_plotlyjs=True,  # the whole library: no network needed
        div_id="fedplan-figure",  # otherwise random
        config={"displaylogo": False, "responsive": True},
    )
    head = f"<head><title>fedplan: {html.escape(data.title)}</title>"
    return page.replace("<head>", head, 1).encode()
