"""The run figure: how the loss fell over rounds, seconds and joules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.losses import ROUND, grid_of, loss_panel, measured_over, seed_lines
from fedplan.figures.spec import Figure, Line, Part, spot
from fedplan.figures.style import VERMILLION, Look

if TYPE_CHECKING:
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Curve, Over

_LEAST_FOR_A_MEDIAN = 3
_POINTS = 1000  # of the median
_WIDTHS = {1: 7.0, 2: 9.5, 3: 12.5}  # inches, by the number of panels


def run_figure_data(
    runs: Sequence[RunRecord], *, name: str, target_loss: float | None = None, note: str = ""
) -> Figure:
    """Data of the run figure; seconds and joules have panels where the runs have any.

    name : what was simulated, for the title.

    >>> from fedplan.core.records import RoundRecord, RunRecord
    >>> from fedplan.participation import uniform
    >>> rounds = [RoundRecord(round=r, loss=2.0 / (1 + r), accuracy=None, cohort=(), seconds=9.0,
    ...     joules=0.0) for r in range(4)]
    >>> run = RunRecord(setting=uniform(2, 5), seed=0, status="rounds",
    ...     rounds=tuple(rounds))
    >>> data = run_figure_data([run], name="demo")
    >>> data.title, [panel.x.label for panel in data.panels]
    ('demo: K=2, E=5', ['round', 'time (s)'])
    """
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        raise InputError("a figure of runs needs at least one loss to draw, but got none.")
    panels = []
    for over in measured_over(runs):
        curves = [over.curve(run) for run in drawable]
        panel = loss_panel(over, curves, _lines(drawable, curves, over), target_loss=target_loss)
        panels.append(replace(panel, shares_y=over is not ROUND))
    setting = f"K={drawable[0].clients_per_round:,}, E={drawable[0].local_steps:,}"
    size = (_WIDTHS[len(panels)], 4.4)
    return Figure(title=f"{name}: {setting}", rows=(tuple(panels),), size=size, note=note)


def _lines(runs: Sequence[RunRecord], curves: Sequence[Curve], over: Over) -> list[Part]:
    """One line for each run, and their median in front of them where there are enough."""
    median = _median(runs, curves, over)
    sound = [run for run in runs if run.status != "diverged"]
    name = f"seed {sound[0].seed}" if len(sound) == 1 else f"{len(sound)} runs, one for each seed"
    cross = Look(colour=VERMILLION, symbol="x", size=6.0, layer=2)
    ends = [
        spot(at[-1], losses[-1], cross, name="diverged")
        for run, (at, losses) in zip(runs, curves, strict=True)
        if run.status == "diverged"
    ]
    return [*seed_lines(runs, curves, name, in_front=bool(median)), *ends, *median]


def _median(runs: Sequence[RunRecord], curves: Sequence[Curve], over: Over) -> list[Line]:
    """A run that has ended keeps its last loss, one that diverged counts as infinite.

    The line ends where half of the runs have.
    """
    if len(runs) < _LEAST_FOR_A_MEDIAN:
        return []
    grid = grid_of(curves, over, _POINTS)
    losses = [
        np.interp(grid, at, seen, right=np.inf if run.status == "diverged" else None)
        for run, (at, seen) in zip(runs, curves, strict=True)
    ]
    middle = np.median(losses, axis=0)
    reached = np.isfinite(middle)
    if grid[-1] == 0 or not reached.any():
        return []
    x, y = grid[reached], middle[reached]
    return [Line(x=x, y=y, name="median", width=2.4, layer=3, hover="median: {y}")]
