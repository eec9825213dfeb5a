"""The run figure's data: how the loss fell over rounds, seconds and joules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.units import NO_UNIT, Axis, Unit, energy_unit, fit_axis, time_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fedplan.records import RunRecord
    from fedplan.theory.fleet import FloatArray

_LEAST_FOR_A_MEDIAN = 3
_MOST_POINTS = 1000  # of a line; more cannot be told apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunLine:
    """One run in one panel: where it was evaluated, and its loss there."""

    seed: int
    diverged: bool
    at: FloatArray
    losses: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunPanel:
    """Loss against one quantity.

    lines : the runs, in the order of their seeds as given.
    median_at, median : the median loss of all runs, empty where fewer than three, or not half of
        them, got anywhere; a run that has ended keeps its last loss, one that diverged counts as
        infinite, and the line ends where half of the runs have.
    """

    quantity: Axis
    lines: tuple[RunLine, ...]
    median_at: FloatArray
    median: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFigure:
    """Runs of one setting with different seeds, ready to be drawn; panels share the loss axis."""

    title: str
    panels: tuple[RunPanel, ...]
    loss: Axis
    target_loss: float | None
    note: str

    @property
    def run_name(self) -> str:
        """What the legend calls a line."""
        lines = [line for line in self.panels[0].lines if not line.diverged]
        return f"seed {lines[0].seed}" if len(lines) == 1 else f"{len(lines)} runs, one a seed"

    @property
    def target_name(self) -> str:
        """What the legend calls the target."""
        return f"target {self.target_loss:g}"


def run_figure_data(
    runs: Sequence[RunRecord], *, name: str, target_loss: float | None = None, note: str = ""
) -> RunFigure:
    """Data of the run figure; seconds and joules have panels where the runs have any.

    name : what was simulated, for the title.

    >>> from fedplan.records import RoundRecord, RunRecord
    >>> rounds = [RoundRecord(round=r, loss=2.0 / (1 + r), accuracy=None, cohort=(), seconds=9.0,
    ...     joules=0.0) for r in range(4)]
    >>> run = RunRecord(clients_per_round=2, local_steps=5, seed=0, status="rounds",
    ...     rounds=tuple(rounds))
    >>> data = run_figure_data([run], name="demo")
    >>> data.title, [panel.quantity.label for panel in data.panels]
    ('demo: K=2, E=5', ['round', 'time (s)'])
    """
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        raise InputError("a figure of runs needs at least one loss to draw, but got none.")
    first = drawable[0]
    longest_s, largest_j = (max(run.time_s for run in runs), max(run.energy_j for run in runs))
    panels = [_panel(drawable, "round", NO_UNIT, _rounds)]
    if longest_s > 0:
        panels.append(_panel(drawable, "time", time_unit(longest_s), _seconds))
    if largest_j > 0:
        panels.append(_panel(drawable, "energy", energy_unit(largest_j), _joules))
    losses = [float(loss) for line in panels[0].lines for loss in line.losses]
    if target_loss is not None:
        losses.append(target_loss)
    return RunFigure(
        title=f"{name}: K={first.clients_per_round:,}, E={first.local_steps:,}",
        panels=tuple(panels),
        loss=fit_axis("training loss", NO_UNIT, losses),
        target_loss=target_loss,
        note=note,
    )


def loss_line(run: RunRecord) -> RunLine:
    """The losses of a run against its rounds, no more of them than can be told apart."""
    return _thinned(_line(run, _rounds(run)))


def round_axis(high: float) -> Axis:
    """An axis of rounds, from 0 to somewhat past `high`."""
    return Axis(
        label="round", unit=NO_UNIT, log=False, low=0.0, high=1.02 * high or 1.0, counts=True
    )


def _rounds(run: RunRecord) -> FloatArray:
    return np.array([record.round for record in run.rounds], dtype=np.float64)


def _seconds(run: RunRecord) -> FloatArray:
    return np.cumsum([record.seconds for record in run.rounds])


def _joules(run: RunRecord) -> FloatArray:
    return np.cumsum([record.joules for record in run.rounds])


def _panel(
    runs: Sequence[RunRecord], name: str, unit: Unit, position: Callable[[RunRecord], FloatArray]
) -> RunPanel:
    lines = [_line(run, position(run)) for run in runs]
    high = max(float(line.at[-1]) for line in lines) / unit.size
    quantity = round_axis(high)
    if unit is not NO_UNIT:
        quantity = replace(quantity, label=f"{name} ({unit.name})", unit=unit, counts=False)
    median_at, median = _median(lines, whole=unit is NO_UNIT)
    return RunPanel(
        quantity=quantity,
        lines=tuple(_thinned(line) for line in lines),
        median_at=median_at,
        median=median,
    )


def _line(run: RunRecord, at: FloatArray) -> RunLine:
    evaluated = [place for place, loss in enumerate(run.losses) if loss is not None]
    return RunLine(
        seed=run.seed,
        diverged=run.status == "diverged",
        at=at[evaluated],
        losses=np.array([run.losses[place] for place in evaluated], dtype=np.float64),
    )


def _median(lines: Sequence[RunLine], *, whole: bool) -> tuple[FloatArray, FloatArray]:
    if len(lines) < _LEAST_FOR_A_MEDIAN:
        return np.empty(0), np.empty(0)
    end = sorted(float(line.at[-1]) for line in lines)[(len(lines) - 1) // 2]
    if end == 0:
        return np.empty(0), np.empty(0)
    grid = np.linspace(0.0, end, _MOST_POINTS)
    if whole:
        grid = np.unique(grid.round())
    losses = [
        np.interp(grid, line.at, line.losses, right=np.inf if line.diverged else None)
        for line in lines
    ]
    middle = np.median(losses, axis=0)
    return grid[np.isfinite(middle)], middle[np.isfinite(middle)]


def _thinned(line: RunLine) -> RunLine:
    if len(line.at) <= _MOST_POINTS:
        return line
    kept = np.linspace(0, len(line.at) - 1, _MOST_POINTS).round().astype(np.int64)
    return RunLine(
        seed=line.seed, diverged=line.diverged, at=line.at[kept], losses=line.losses[kept]
    )
