"""A study for print, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedplan.figures.bill_panel import BillPanel
from fedplan.figures.cost_panel import CostPanel
from fedplan.figures.loss_panels import PilotPanel, TrainingPanel
from fedplan.figures.print_cost import draw_cost
from fedplan.figures.print_parts import add_note, draw_mark, new_figure, set_up_axis
from fedplan.figures.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    VERMILLION,
    looks,
    series_looks,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fedplan.figures.bill_panel import BillBar
    from fedplan.figures.study import StudyFigure

_SMALL = 9.0  # of what is written in panels, in points
_MARKERS = 8  # of a line, so that lines are told apart without their colours


def draw_study(data: StudyFigure) -> Figure:
    """Two panels a row, a last one by itself all of its row."""
    heights = [4.3 if count == 2 else 2.8 for count in data.rows]
    figure = new_figure(width=11.5, height=sum(heights))
    figure.suptitle(data.title, x=0.01, ha="left", weight="bold", size=13)
    # Rows are laid out apart: what stands beside a panel takes no room from those above it.
    rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    panels = iter(data.panels)
    for row, count in zip(rows, data.rows, strict=True):
        for axes in row.subplots(1, count, squeeze=False)[0]:
            _draw_panel(row, axes, next(panels))
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
    add_note(figure, data.note)
    return figure


def draw_panel(panel: PilotPanel | TrainingPanel | CostPanel | BillPanel) -> Figure:
    """One panel by itself."""
    figure = new_figure(width=7.4, height=2.6 if isinstance(panel, BillPanel) else 4.2)
    _draw_panel(figure, figure.subplots(), panel)
    return figure


def _draw_panel(
    figure: Figure, axes: Axes, panel: PilotPanel | TrainingPanel | CostPanel | BillPanel
) -> None:
    match panel:
        case PilotPanel():
            _draw_pilots(axes, panel)
        case TrainingPanel():
            _draw_training(axes, panel)
        case CostPanel():
            _draw_cost(figure, axes, panel)
        case BillPanel():
            _draw_bill(axes, panel)


def _set_up_losses(axes: Axes, panel: PilotPanel | TrainingPanel) -> Artist:
    axes.set_title(panel.title)
    set_up_axis(axes, "x", panel.rounds)
    set_up_axis(axes, "y", panel.loss)
    name = f"target {panel.target_loss:g}"
    return axes.axhline(panel.target_loss, color=GREY, linestyle=":", linewidth=1.4, label=name)


def _add_legend(axes: Axes, handles: list[Any]) -> None:
    # Losses fall, so the upper right is free, but for runs of a round or two.
    legend = axes.legend(handles=handles, loc="upper right", fontsize=_SMALL, frameon=True)
    legend.get_frame().set(facecolor="white", alpha=0.75, linewidth=0)


def _draw_pilots(axes: Axes, panel: PilotPanel) -> None:
    target = _set_up_losses(axes, panel)
    handles: list[Artist] = []
    for line, look in zip(panel.lines, series_looks(range(len(panel.lines))).values(), strict=True):
        at, losses = line.measured.at, line.measured.losses
        handles += axes.plot(
            at,
            losses,
            color=look.colour,
            marker=look.marker,
            markersize=5,
            markevery=max(1, len(at) // _MARKERS),
            linewidth=1.6,
            label=line.name,
            zorder=4,
        )
        axes.plot(line.fit_at, line.fit, "--", color=look.colour, linewidth=1.3, zorder=3)
    if panel.fitted:
        handles += axes.plot([], [], "--", color=INK, linewidth=1.3, label="fitted, to the target")
    _add_legend(axes, [*handles, target])


def _draw_training(axes: Axes, panel: TrainingPanel) -> None:
    target = _set_up_losses(axes, panel)
    has_mean = panel.mean.size > 0
    handles: dict[str, Artist] = {}
    for line in panel.lines:
        name = "diverged" if line.diverged else panel.run_name
        thin = has_mean or line.diverged
        (handles[name],) = axes.plot(
            line.at,
            line.losses,
            label=name,
            color=VERMILLION if line.diverged else PALE if has_mean else BLUE,
            linewidth=0.8 if thin else 2.2,
            zorder=3,
        )
    shown = list(handles.values())
    if has_mean:
        shown += axes.plot(
            panel.mean_at, panel.mean, color=BLUE, linewidth=2.4, label="their mean", zorder=4
        )
    shown += [target, *_draw_arrival(axes, panel)]
    _add_legend(axes, shown)


def _draw_arrival(axes: Axes, panel: TrainingPanel) -> list[Any]:
    handles: list[Any] = []
    if (predicted := panel.predicted) is not None:
        low, median, high = predicted.within(2 * panel.rounds.high)  # beyond: it is seen to go on
        handles.append(
            axes.errorbar(
                median,
                panel.target_loss,
                xerr=[[median - low], [high - median]],
                fmt="|",
                color=ORANGE,
                markersize=16,
                markeredgewidth=2.6,
                elinewidth=3.5,
                capsize=6,
                capthick=2.0,
                label=predicted.name,
                zorder=5,
            )
        )
    if panel.measured is not None:
        handles += axes.plot(
            panel.measured,
            panel.target_loss,
            "o",
            color=INK,
            markeredgecolor="white",
            markersize=9,
            label=panel.measured_name,
            zorder=6,
        )
    return handles


def _draw_cost(figure: Figure, axes: Axes, panel: CostPanel) -> None:
    explained = draw_cost(figure, axes, panel)
    handles: dict[str, Artist] = {}
    for mark, look in zip(panel.marks, looks(panel.marks), strict=True):
        name = panel.explained(mark)
        if name not in handles:
            (handles[name],) = draw_mark(axes, [], [], look, label=name)
    axes.legend(
        handles=[*handles.values(), *explained],
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.16),
        ncols=2,
        fontsize=_SMALL,
        columnspacing=1.2,
    )


def _draw_bill(axes: Axes, panel: BillPanel) -> None:
    axes.set_title(panel.title)
    set_up_axis(axes, "x", panel.cost)
    rows = range(len(panel.bars))
    axes.set_yticks(rows, [bar.name for bar in panel.bars])
    axes.set_ylim(max(len(rows), 2) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    for row, bar in zip(rows, panel.bars, strict=True):
        _draw_bar(axes, row, bar, panel.end(bar))
        axes.annotate(
            panel.text(bar),
            (panel.end(bar), row),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=_SMALL,
        )


def _draw_bar(axes: Axes, row: int, bar: BillBar, end: float) -> None:
    # What is only predicted is hatched and pale, and its interval a whisker.
    face, edge = ("white", ORANGE) if bar.predicted else (BLUE, BLUE)
    length = min(bar.cost, end)
    axes.barh(
        row, length, height=0.55, color=face, edgecolor=edge, hatch="//" if bar.predicted else ""
    )
    if bar.interval is not None:
        low, high = (min(side, end) for side in bar.interval)
        xerr = [[length - low], [high - length]]
        axes.errorbar(length, row, xerr=xerr, color=INK, capsize=5, elinewidth=1.6)
