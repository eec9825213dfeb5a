"""Convergence: mean loss and accuracy of several (K, E), over rounds and over seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.lines import Line, LinePanel, LinesFigure, known
from fedplan.figures.units import NO_UNIT, Unit, fit_axis, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.records import RoundRecord, RunRecord
    from fedplan.theory.fleet import FloatArray

    Value = Callable[[RoundRecord], float | None]

_POINTS = 400  # of a line


def convergence_data(
    runs: Sequence[RunRecord], *, title: str, target_loss: float | None = None, note: str = ""
) -> LinesFigure:
    """Data of the figure: a line a (K, E), the mean over its seeds, and one standard deviation.

    Runs that diverged are left out. A run that has ended keeps its last value, and a line ends
    where half of its runs have. Accuracy and seconds have panels where the runs have any.

    >>> from fedplan.records import RoundRecord, RunRecord
    >>> def run(seed, losses):
    ...     return RunRecord(clients_per_round=2, local_steps=5, seed=seed, status="rounds",
    ...         rounds=tuple(RoundRecord(round=r, loss=loss, accuracy=None, cohort=(), seconds=0.0,
    ...             joules=0.0) for r, loss in enumerate(losses)))
    >>> data = convergence_data([run(0, [2.0, 1.0]), run(1, [2.0, 2.0])], title="demo")
    >>> (line,) = data.panels[0].lines
    >>> line.name, line.y.tolist(), line.spread.round(3).tolist()
    ('K=2, E=5', [2.0, 1.5], [0.0, 0.707])
    """
    sound = [run for run in runs if run.status != "diverged" and run.final_loss is not None]
    if not sound:
        raise InputError("a figure of convergence needs a run with a loss, but got none.")
    longest_s = max(run.time_s for run in sound)
    against = [("round", NO_UNIT)] + ([("time", time_unit(longest_s))] if longest_s > 0 else [])
    values: list[tuple[str, Value]] = [("training loss", lambda record: record.loss)]
    if any(record.accuracy is not None for run in sound for record in run.rounds):
        values.append(("accuracy", lambda record: record.accuracy))
    level = None if target_loss is None else (target_loss, f"target {target_loss:g}")
    panels = [
        _panel(sound, label, value, quantity, unit, level if label == "training loss" else None)
        for label, value in values
        for quantity, unit in against
    ]
    return LinesFigure(
        title=title, panels=tuple(panels), columns=len(against), spread="band", note=note
    )


def _panel(
    runs: Sequence[RunRecord],
    label: str,
    value: Value,
    quantity: str,
    unit: Unit,
    level: tuple[float, str] | None,
) -> LinePanel:
    settings = sorted({(run.clients_per_round, run.local_steps) for run in runs})
    lines = []
    for setting in settings:
        group = [run for run in runs if (run.clients_per_round, run.local_steps) == setting]
        curves = [curve for run in group if (curve := _curve(run, value, unit))[0].size]
        if curves:
            name = f"K={setting[0]:,}, E={setting[1]:,}"
            lines.append(_mean(name, curves, whole=unit is NO_UNIT))
    xs, ys = known(lines)
    if level is not None:
        ys.append(level[0])
    is_loss = label == "training loss"
    return LinePanel(
        title="",
        x=replace(fit_axis(quantity, unit, [0.0, *xs], log=False), low=0.0, counts=unit is NO_UNIT),
        # A band may reach below 0, where a logarithmic axis has no place for it.
        y=fit_axis(label, NO_UNIT, [y for y in ys if y > 0] if is_loss else ys, log=is_loss),
        lines=tuple(lines),
        level=level,
    )


def _curve(run: RunRecord, value: Value, unit: Unit) -> tuple[FloatArray, FloatArray]:
    """Rounds or seconds at which a run was evaluated, and the values there."""
    places = np.cumsum([r.seconds for r in run.rounds])
    if unit is NO_UNIT:
        places = np.array([r.round for r in run.rounds], dtype=np.float64)
    found = [
        (at, v) for at, r in zip(places, run.rounds, strict=True) if (v := value(r)) is not None
    ]
    at, values = zip(*found, strict=True) if found else ((), ())
    return np.array(at, dtype=np.float64), np.array(values, dtype=np.float64)


def _mean(name: str, curves: Sequence[tuple[FloatArray, FloatArray]], *, whole: bool) -> Line:
    end = sorted(float(at[-1]) for at, _ in curves)[(len(curves) - 1) // 2]
    grid = np.linspace(0.0, end, _POINTS)
    if whole:
        grid = np.unique(grid.round())
    values = np.stack([np.interp(grid, at, seen) for at, seen in curves])
    spread = values.std(axis=0, ddof=1) if len(curves) > 1 else np.empty(0)
    return Line(name=name, x=grid, y=values.mean(axis=0), spread=spread)
