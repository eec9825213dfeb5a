"""Drawing and saving: one call for every figure, and files that are whole or not there."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedplan.atomic import draft_of
from fedplan.errors import InputError, Problem
from fedplan.figures.fit import FitFigure
from fedplan.figures.frontier import FrontierFigure
from fedplan.figures.lines import LinesFigure
from fedplan.figures.plan import PlanFigure
from fedplan.figures.run import RunFigure
from fedplan.figures.study import StudyFigure

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure

FigureData = PlanFigure | FrontierFigure | FitFigure | RunFigure | StudyFigure | LinesFigure

SUFFIXES = (".png", ".svg", ".html")
_DPI = 160


def draw_print(data: FigureData) -> Figure:
    """The figure for print, as a matplotlib figure."""
    from fedplan.figures.print_parts import print_style

    with print_style():
        return _drawn_for_print(data)


def draw_screen(data: FigureData) -> Any:
    """The figure for the screen, as a plotly figure."""
    from fedplan.figures import screen_fit, screen_lines, screen_plan, screen_run, screen_study

    match data:
        case PlanFigure():
            return screen_plan.draw_plan(data)
        case FrontierFigure():
            return screen_plan.draw_frontier(data)
        case FitFigure():
            return screen_fit.draw_fit(data)
        case RunFigure():
            return screen_run.draw_run(data)
        case StudyFigure():
            return screen_study.draw_study(data)
        case LinesFigure():
            return screen_lines.draw_lines(data)


def save_figure(data: FigureData, path: str | os.PathLike[str]) -> None:
    """Draw a figure into a .png, .svg or .html file; a failure leaves an old file as it was.

    The same data gives the same file. An .html is complete in itself: it works offline.
    """
    check_path(path)
    content = _rendered(data, Path(path).suffix.lower())
    try:
        with draft_of(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise _unwritable(path, f"cannot be written ({error.strerror})") from error


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no figure can be saved to, as far as that shows before drawing."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise _unwritable(path, f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    try:
        target = Path(path).resolve()
        is_folder, has_folder = target.is_dir(), target.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a null byte
        raise _unwritable(path, f"is not a usable path ({error})") from error
    if is_folder:
        raise _unwritable(path, "is a folder")
    if not has_folder:
        raise _unwritable(path, f"is in a folder that does not exist: {target.parent}")


def _unwritable(path: str | os.PathLike[str], reason: str) -> InputError:
    remedy = "Give the path of a .png, .svg or .html file in a folder you can write to."
    return InputError(Problem(source=str(path), message=f"{reason}. {remedy}"))


def _rendered(data: FigureData, suffix: str) -> bytes:
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
    from fedplan.figures import print_fit, print_lines, print_plan, print_run, print_study

    match data:
        case PlanFigure():
            return print_plan.draw_plan(data)
        case FrontierFigure():
            return print_plan.draw_frontier(data)
        case FitFigure():
            return print_fit.draw_fit(data)
        case RunFigure():
            return print_run.draw_run(data)
        case StudyFigure():
            return print_study.draw_study(data)
        case LinesFigure():
            return print_lines.draw_lines(data)


def _html(data: FigureData) -> bytes:
    page: str = draw_screen(data).to_html(
        include_plotlyjs=True,  # the whole library: no network needed
        div_id="fedplan-figure",  # otherwise random
        config={"displaylogo": False, "responsive": True},
    )
    head = f"<head><title>fedplan: {data.title}</title>"
    return page.replace("<head>", head, 1).encode()
