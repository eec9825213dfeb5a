"""Curves: mean loss and test accuracy against time, as a table that figures are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fedplan.core.records import RoundRecord, RunRecord
from fedplan_reproduction.grid import TrainedGrid

_POINTS = 60  # of a line
Value = Callable[[RoundRecord], float | None]
_QUANTITIES: Mapping[str, Value] = {
    "ab": lambda record: record.loss,
    "de": lambda record: record.test_accuracy,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A point of a line: the mean over the seeds, and their standard deviation.

    panel : "a" and "b" have the loss, "d" and "e" the accuracy on test samples; "a" and "d" of
        different E, "b" and "e" of different K.
    """

    panel: str
    line: str
    seconds: float
    value: float
    sd: float


def curve_points(grid: TrainedGrid, others: Mapping[str, Sequence[RunRecord]]) -> list[CurvePoint]:
    """All panels: the lines of the grid, and `others` by their names in each."""
    over_steps = [run for run in grid.shown if run.clients_per_round == grid.shown_clients]
    over_clients = [run for run in grid.shown if run.local_steps == grid.shown_steps]
    points = []
    for panels, value in _QUANTITIES.items():
        for panel, runs in zip(panels, (over_steps, over_clients), strict=True):
            pairs = sorted({run.setting.pair for run in runs})
            lines = {
                f"K={k}, E={e}": [run for run in runs if run.setting.pair == (k, e)]
                for k, e in pairs
            }
            for line, own in {**lines, **others}.items():
                points += _mean_line(panel, line, own, value)
    return points


def _mean_line(panel: str, line: str, runs: Sequence[RunRecord], value: Value) -> list[CurvePoint]:
    """One line; a run that has ended keeps its last value, and the line ends where half have."""
    seen = [curve for run in runs if len((curve := _curve(run, value))[0]) > 1]
    if not seen:
        return []
    end = float(np.median([times[-1] for times, _ in seen]))
    grid = np.linspace(0.0, end, _POINTS)
    values = np.stack([np.interp(grid, times, found) for times, found in seen])
    sd = values.std(axis=0, ddof=1) if len(seen) > 1 else np.zeros(_POINTS)
    return [
        CurvePoint(panel=panel, line=line, seconds=float(x), value=float(y), sd=float(spread))
        for x, y, spread in zip(grid, values.mean(axis=0), sd, strict=True)
    ]


def _curve(run: RunRecord, value: Value) -> tuple[list[float], list[float]]:
    times = accumulate(record.seconds for record in run.rounds)
    seen = [
        (time, found)
        for time, record in zip(times, run.rounds, strict=True)
        if (found := value(record)) is not None
    ]
    return [time for time, _ in seen], [found for _, found in seen]
