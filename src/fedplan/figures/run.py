"""The run figure: how the loss fell over rounds, seconds and joules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.losses import curve_of, grid_of, seed_lines
from fedplan.figures.spec import Figure, Line, Panel, Part, rule, spot
from fedplan.figures.style import VERMILLION, Look
from fedplan.figures.units import (
    NO_UNIT,
    bar_axis,
    energy_unit,
    fit_axis,
    round_axis,
    time_unit,
)

if TYPE_CHECKING:
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Against, Curve
    from fedplan.figures.units import Axis, Unit

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
    units: dict[Against, Unit] = {"round": NO_UNIT}
    if (longest_s := max(run.time_s for run in runs)) > 0:
        units["time"] = time_unit(longest_s)
    if (largest_j := max(run.energy_j for run in runs)) > 0:
        units["energy"] = energy_unit(largest_j)
    target = [] if target_loss is None else [target_loss]
    losses = [float(loss) for run in drawable for loss in curve_of(run)[1]]
    loss = fit_axis("training loss", NO_UNIT, [*losses, *target])
    panels = tuple(_panel(drawable, loss, target, *item) for item in units.items())
    setting = f"K={drawable[0].clients_per_round:,}, E={drawable[0].local_steps:,}"
    size = (_WIDTHS[len(panels)], 4.4)
    return Figure(title=f"{name}: {setting}", rows=(panels,), size=size, note=note)


def _panel(
    runs: Sequence[RunRecord], loss: Axis, target: Sequence[float], against: Against, unit: Unit
) -> Panel:
    curves = [curve_of(run, against) for run in runs]
    high = max(float(at[-1]) for at, _ in curves)
    is_round = against == "round"
    x = round_axis(high) if is_round else bar_axis(against, 1.02 * high, unit)
    lines = _lines([*zip(runs, curves, strict=True)], is_round=is_round)
    levels = [rule(x, level, f"target {level:g}", "dash") for level in target]
    return Panel(x=x, y=loss, parts=(*lines, *levels), shares_y=not is_round)


def _lines(runs: Sequence[tuple[RunRecord, Curve]], *, is_round: bool) -> list[Part]:
    """One line for each run, and their median in front of them where there are enough."""
    median = _median(runs, is_round=is_round)
    sound = [run for run, _ in runs if run.status != "diverged"]
    name = f"seed {sound[0].seed}" if len(sound) == 1 else f"{len(sound)} runs, one for each seed"
    records, curves = [run for run, _ in runs], [curve for _, curve in runs]
    lines = seed_lines(records, curves, name, in_front=bool(median))
    cross = Look(colour=VERMILLION, symbol="x", size=6.0, layer=2)
    ends = [
        spot(at[-1], losses[-1], cross, name="diverged")
        for run, (at, losses) in runs
        if run.status == "diverged"
    ]
    return [*lines, *ends, *median]


def _median(runs: Sequence[tuple[RunRecord, Curve]], *, is_round: bool) -> list[Line]:
    """A run that has ended keeps its last loss, one that diverged counts as infinite.

    The line ends where half of the runs have.
    """
    if len(runs) < _LEAST_FOR_A_MEDIAN:
        return []
    grid = grid_of([curve for _, curve in runs], _POINTS, whole=is_round)
    losses = [
        np.interp(grid, at, seen, right=np.inf if run.status == "diverged" else None)
        for run, (at, seen) in runs
    ]
    middle = np.median(losses, axis=0)
    reached = np.isfinite(middle)
    if grid[-1] == 0 or not reached.any():
        return []
    x, y = grid[reached], middle[reached]
    return [Line(x=x, y=y, name="median", width=2.4, layer=3, hover="median: {y}")]
