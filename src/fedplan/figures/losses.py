"""Loss curves of runs: where runs were evaluated, over rounds, seconds or joules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedplan.figures.spec import Line
from fedplan.figures.style import BLUE, PALE, VERMILLION

if TYPE_CHECKING:
    from fedplan.core.fleet import FloatArray
    from fedplan.core.records import RoundRecord, RunRecord

    Value = Callable[[RoundRecord], float | None]
    Curve = tuple[FloatArray, FloatArray]

Against = Literal["round", "time", "energy"]

_MOST_POINTS = 1000  # of a line; more cannot be told apart


def loss_of(record: RoundRecord) -> float | None:
    """The loss after a round, where it was evaluated."""
    return record.loss


def curve_of(run: RunRecord, against: Against = "round", value: Value = loss_of) -> Curve:
    """Rounds, seconds or joules at which a run was evaluated, and the values there."""
    if against == "round":
        at = np.array([record.round for record in run.rounds], dtype=np.float64)
    else:
        name = "seconds" if against == "time" else "joules"
        at = np.cumsum([getattr(record, name) for record in run.rounds])
    values = np.array([value(record) for record in run.rounds], dtype=np.float64)  # None is NaN
    found = ~np.isnan(values)
    return at[found], values[found]


def thinned(curve: Curve) -> Curve:
    """No more points than can be told apart, both ends among them."""
    at, values = curve
    if at.size <= _MOST_POINTS:
        return curve
    kept = np.linspace(0, at.size - 1, _MOST_POINTS).round().astype(np.int64)
    return at[kept], values[kept]


def grid_of(curves: Sequence[Curve], points: int, *, whole: bool) -> FloatArray:
    """Places from 0 to where half of the curves have ended; of rounds, whole ones."""
    end = sorted(float(at[-1]) for at, _ in curves)[(len(curves) - 1) // 2]
    grid = np.linspace(0.0, end, points)
    return np.unique(grid.round()) if whole else grid


def seed_lines(
    runs: Sequence[RunRecord], curves: Sequence[Curve], name: str, *, in_front: bool
) -> list[Line]:
    """One line for each run; those that diverged stand out, and have a name of their own.

    in_front : whether a mean or the like is drawn in front of them, so that they step back.
    """
    lines = []
    for run, curve in zip(runs, curves, strict=True):
        x, y = thinned(curve)
        has_diverged = run.status == "diverged"
        lines.append(
            Line(
                x=x,
                y=y,
                name="diverged" if has_diverged else name,
                colour=VERMILLION if has_diverged else PALE if in_front else BLUE,
                width=0.8 if in_front or has_diverged else 2.0,
                layer=2 if has_diverged else 0,
                hover=f"seed {run.seed}, {{x}}: {{y}}",
            )
        )
    return lines
