"""Convergence: mean loss and accuracy of several (K, E), over rounds and over seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.axes import fit_axis
from fedplan.figures.lines import known, line_with_spread, lines_figure
from fedplan.figures.losses import ROUND, TIME, grid_of, loss_of
from fedplan.figures.spec import Figure, Line, Panel, rule
from fedplan.figures.style import line_looks
from fedplan.words import NO_UNIT

if TYPE_CHECKING:
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Curve, Over, Value
    from fedplan.figures.style import Look

_POINTS = 400  # of a line


def sound_runs(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Those that have a loss to show: all that did not diverge."""
    return [run for run in runs if run.status != "diverged" and run.final_loss is not None]


def convergence_data(
    runs: Sequence[RunRecord], *, title: str, target_loss: float | None = None, note: str = ""
) -> Figure:
    """Data of the figure: the mean of each (K, E) over its seeds, and one standard deviation.

    Runs that diverged are left out. A run that has ended keeps its last value, and a line ends
    where half of its runs have. Accuracy and seconds have panels where the runs have any.

    >>> from fedplan.core.records import RoundRecord, RunRecord
    >>> from fedplan.participation import uniform
    >>> def run(seed, losses):
    ...     return RunRecord(setting=uniform(2, 5), seed=seed, status="rounds",
    ...         rounds=tuple(RoundRecord(round=r, loss=loss, accuracy=None, cohort=(), seconds=0.0,
    ...             joules=0.0) for r, loss in enumerate(losses)))
    >>> data = convergence_data([run(0, [2.0, 1.0]), run(1, [2.0, 2.0])], title="demo")
    >>> (line,) = data.panels[0].lines
    >>> line.name, line.y.tolist(), line.high.round(3).tolist()
    ('K=2, E=5', [2.0, 1.5], [2.0, 2.207])
    """
    sound = sound_runs(runs)
    if not sound:
        raise InputError("a figure of convergence needs a run with a loss, but got none.")
    overs = [ROUND, TIME] if any(run.time_s for run in sound) else [ROUND]
    panels = [_panel(sound, "training loss", loss_of, over, target_loss) for over in overs]
    if any(record.accuracy is not None for run in sound for record in run.rounds):
        panels += [_panel(sound, "accuracy", lambda r: r.accuracy, over) for over in overs]
    return lines_figure(title, panels, len(overs), note)


def _panel(
    runs: Sequence[RunRecord],
    label: str,
    value: Value,
    over: Over,
    target_loss: float | None = None,
) -> Panel:
    groups: dict[str, list[Curve]] = {}
    for run in runs:
        if (curve := over.curve(run, value))[0].size:
            groups.setdefault(run.label, []).append(curve)
    curves = dict(sorted(groups.items(), key=lambda item: _by_number(item[0])))
    looks = line_looks([*curves])
    lines = [_mean(name, looks[name], found, over) for name, found in curves.items()]
    xs, ys = known(lines)
    x, is_loss = over.axis(max(xs)), label == "training loss"
    target = [] if target_loss is None else [rule(x, target_loss, f"target {target_loss:g}")]
    ys += [] if target_loss is None else [target_loss]
    return Panel(
        x=x,
        # A band may reach below 0, where a logarithmic axis has no place for it.
        y=fit_axis(label, NO_UNIT, [y for y in ys if y > 0] if is_loss else ys, log=is_loss),
        parts=(*lines, *target),
    )


def _mean(name: str, look: Look, curves: Sequence[Curve], over: Over) -> Line:
    grid = grid_of(curves, over, _POINTS)
    values = np.stack([np.interp(grid, at, seen) for at, seen in curves])
    around = values.std(axis=0, ddof=1) if len(curves) > 1 else None
    return line_with_spread(name, look, grid, values.mean(axis=0), around, "band")


def _by_number(label: str) -> tuple[tuple[int, ...], str]:
    """Labels by the numbers in them, as a reader would order them."""
    return tuple(int(word.replace(",", "")) for word in re.findall(r"[\d,]*\d", label)), label
