"""Losses and accuracy of runs over rounds, seconds, joules or cost, singly or averaged."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fedplan.core.course import Decision
from fedplan.core.fleet import FloatArray
from fedplan.core.objective import Objective
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError
from fedplan.figures.axes import Axis, bar_axis, fit_axis
from fedplan.figures.spec import (
    Figure,
    Line,
    Panel,
    Part,
    Points,
    interval,
    known,
    line_with_spread,
    rule,
    spot,
)
from fedplan.figures.style import BLUE, INK, ORANGE, PALE, VERMILLION, Look, run_looks, series_looks
from fedplan.words import NO_UNIT, Unit, energy_unit, time_unit

Curve = tuple[FloatArray, FloatArray]
Value = Literal["loss", "accuracy"]
_MOST_POINTS = 400  # of a line; more cannot be told apart
_LEAST_FOR_A_MEDIAN = 3
_WIDTHS = {1: 7.0, 2: 9.5, 3: 12.5}  # inches of a run figure, by the number of panels
_FURTHEST = 2.0  # times the longest run: how far a predicted end may stretch the axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The x axis of losses: rounds, or a running sum over them."""

    name: str
    each: Callable[[RoundRecord], float] | None = None
    unit: Callable[[float], Unit] = lambda _: NO_UNIT

    def curve(self, run: RunRecord, value: Value = "loss") -> Curve:
        """Where a run was evaluated, and the values there."""
        if self.each is None:
            at = np.array([record.round for record in run.rounds], dtype=np.float64)
        else:
            at = np.cumsum([self.each(record) for record in run.rounds], dtype=np.float64)
        values = np.array([getattr(record, value) for record in run.rounds], dtype=np.float64)
        found = ~np.isnan(values)  # None becomes NaN
        return at[found], values[found]

    def axis(self, high: float) -> Axis:
        """From 0 to somewhat past `high`."""
        return bar_axis(self.name, 1.02 * high, self.unit(high), counts=self.each is None)


ROUND = Over(name="round")
TIME = Over(name="time", each=lambda record: record.seconds, unit=time_unit)
ENERGY = Over(name="energy", each=lambda record: record.joules, unit=energy_unit)


def over_cost(objective: Objective) -> Over:
    """Losses over what was paid."""

    def paid(record: RoundRecord) -> float:
        return float(objective.of_round(record.seconds, record.joules, len(record.cohort)))

    if objective.unit == "s":
        return Over(name="time", each=paid, unit=time_unit)
    return Over(name=f"cost ({objective.unit})", each=paid)


def _thinned(curve: Curve) -> Curve:
    """No more points than can be told apart, both ends among them."""
    size = curve[0].size
    kept = np.linspace(0, size - 1, min(size, _MOST_POINTS)).round().astype(np.int64)
    return curve[0][kept], curve[1][kept]


def _grid_of(curves: Sequence[Curve], over: Over) -> FloatArray:
    """Places from 0 to where half of the curves have ended; whole numbers for rounds."""
    end = sorted(float(at[-1]) for at, _ in curves)[(len(curves) - 1) // 2]
    grid = np.linspace(0.0, end, _MOST_POINTS)
    return np.unique(grid.round()) if over.each is None else grid


def seed_lines(
    runs: Sequence[RunRecord], curves: Sequence[Curve], name: str, *, in_front: bool
) -> list[Line]:
    """One line for each run; those that diverged stand out, and have a name of their own.

    in_front : whether a mean or the like is drawn in front of them, so that they step back.
    """
    lines = []
    for run, curve in zip(runs, curves, strict=True):
        x, y = _thinned(curve)
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


def loss_panel(
    over: Over,
    curves: Sequence[Curve],
    parts: Sequence[Part],
    *,
    target_loss: float | None,
    predicted: tuple[float, float] | None = None,
) -> Panel:
    """Losses, the target, and the interval in which the end was predicted."""
    longest = max(float(at[-1]) for at, _ in curves)
    levels = [float(loss) for _, seen in curves for loss in seen]
    levels += [] if target_loss is None else [target_loss]
    ends = predicted or (0.0, 0.0)
    x = over.axis(max(longest, min(ends[1], _FURTHEST * longest)))
    ruled = [] if target_loss is None else [rule(x, target_loss, f"target {target_loss:g}")]
    told: Sequence[Part] = ()
    if predicted is not None:
        at = min(levels) if target_loss is None else target_loss
        low, high = (min(end, x.ends[1]) for end in ends)
        style: dict[str, Any] = {"width": 3.5, "name": "the end, as predicted", "layer": 3}
        told = interval(low, high, at, ORANGE, goes_on=high < ends[1], **style)
    y = fit_axis("training loss", NO_UNIT, levels, log=True)
    return Panel(x=x, y=y, parts=(*parts, *ruled, *told))


def changes(
    run: RunRecord, curve: Curve, decisions: Sequence[Decision], colour: str = INK
) -> list[Points]:
    """Markers where a run changed its setting, at the loss after the round before."""
    evaluated = [one.round for one in run.rounds if one.loss is not None]
    anew = [one for one in decisions if one.round > max([1, *evaluated[:1]])]
    if not anew or not evaluated:
        return []
    before = np.searchsorted(evaluated, [one.round for one in anew]) - 1
    words = tuple(
        f"from round {one.round:,}: {f'{one.groups} groups, ' if one.groups else ''}"
        f"{one.local_steps:,} local steps"
        for one in anew
    )
    look = Look(colour=colour, symbol="diamond", size=6.0, layer=4)
    x, y = curve[0][before], curve[1][before]
    return [Points(x=x, y=y, look=look, layer=4, name="re-planned", hover=words)]


def compared_losses(
    runs: Mapping[str, RunRecord],
    over: Over,
    *,
    target_loss: float | None = None,
    predicted: tuple[float, float] | None = None,
) -> Figure:
    """A line for each run, by name, and where it was re-planned."""
    curves = {name: over.curve(run) for name, run in runs.items() if run.final_loss is not None}
    parts: list[Part] = []
    for (name, curve), (colour, dash) in zip(curves.items(), run_looks(), strict=False):
        x, y = _thinned(curve)
        hover = f"{name}\n{{x}}: {{y}}"
        parts.append(Line(x=x, y=y, name=name, colour=colour, dash=dash, hover=hover))
        parts += changes(runs[name], curve, runs[name].decisions, colour)
    nothing = (np.zeros(1), np.ones(1))
    panel = loss_panel(
        over, [*curves.values()] or [nothing], parts, target_loss=target_loss, predicted=predicted
    )
    return Figure(title="", rows=((panel,),), size=(7.4, 5.6))


def run_figure_data(
    runs: Sequence[RunRecord], *, name: str, target_loss: float | None = None, note: str = ""
) -> Figure:
    """Data of the run figure; seconds and joules have panels if the runs have any.

    name : what was simulated, for the title.

    >>> from fedplan.core.records import RoundRecord, RunRecord
    >>> from fedplan.participation import uniform
    >>> end = RoundRecord(round=1, loss=2.0, accuracy=None, cohort=(), seconds=9.0, joules=0.0)
    >>> run = RunRecord(setting=uniform(2, 5), seed=0, status="rounds", rounds=(end,))
    >>> data = run_figure_data([run], name="demo")
    >>> data.title, [panel.x.label for panel in data.panels]
    ('demo: K=2, E=5', ['round', 'time (s)'])
    """
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        raise InputError("a figure of runs needs at least one loss to draw, but got none.")
    measured = {TIME: any(run.time_s for run in runs), ENERGY: any(run.energy_j for run in runs)}
    panels = []
    for over in (ROUND, *(over for over, is_known in measured.items() if is_known)):
        curves = [over.curve(run) for run in drawable]
        panel = loss_panel(over, curves, _lines(drawable, curves, over), target_loss=target_loss)
        panels.append(replace(panel, shares_y=over is not ROUND))
    size = (_WIDTHS[len(panels)], 4.4)
    return Figure(
        title=f"{name}: {drawable[0].setting.label}", rows=(tuple(panels),), size=size, note=note
    )


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
    """The median line, which ends where half of the runs have.

    A run that has ended keeps its last loss, one that diverged counts as infinite.
    """
    if len(runs) < _LEAST_FOR_A_MEDIAN:
        return []
    grid = _grid_of(curves, over)
    losses = [
        np.interp(grid, *curve, right=np.inf if run.status == "diverged" else None)
        for run, curve in zip(runs, curves, strict=True)
    ]
    middle = np.median(losses, axis=0)
    x, y = grid[np.isfinite(middle)], middle[np.isfinite(middle)]
    if grid[-1] == 0 or not x.size:
        return []
    return [Line(x=x, y=y, name="median", width=2.4, layer=3, hover="median: {y}")]


def sound_runs(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs that have a loss to show and did not diverge."""
    return [run for run in runs if run.status != "diverged" and run.final_loss is not None]


def convergence_data(
    runs: Sequence[RunRecord], *, title: str, target_loss: float | None = None, note: str = ""
) -> Figure:
    """Data of the figure: the mean of each (K, E) over its seeds, and one standard deviation.

    Runs that diverged are left out. A run that has ended keeps its last value, and a line ends
    where half of its runs have. Accuracy and seconds have panels where the runs have any.
    """
    sound = sound_runs(runs)
    if not sound:
        raise InputError("a figure of convergence needs a run with a loss, but got none.")
    overs = [ROUND, TIME] if any(run.time_s for run in sound) else [ROUND]
    rows = [tuple(_mean_panel(sound, over, "loss", target_loss) for over in overs)]
    if any(record.accuracy is not None for run in sound for record in run.rounds):
        rows.append(tuple(_mean_panel(sound, over, "accuracy") for over in overs))
    size = (6.2 * len(overs), 0.9 + 3.5 * len(rows))
    return Figure(title=title, rows=tuple(rows), size=size, note=note)


def _mean_panel(
    runs: Sequence[RunRecord], over: Over, value: Value, target_loss: float | None = None
) -> Panel:
    """The mean of the runs of each setting that have any such value, and their deviation."""
    groups: dict[str, list[Curve]] = defaultdict(list)
    for run in runs:
        groups[run.label].append(over.curve(run, value))
    lines = []
    for name, look in series_looks(sorted(groups, key=_by_number)).items():
        if curves := [curve for curve in groups[name] if curve[0].size]:
            grid = _grid_of(curves, over)
            values = np.stack([np.interp(grid, *curve) for curve in curves])
            around = values.std(axis=0, ddof=1) if len(curves) > 1 else None
            lines.append(line_with_spread(name, look, grid, values.mean(axis=0), around))
    if value == "loss":
        # A band may reach below 0, where a logarithmic axis has no place for it.
        least = 0.0 if all((line.y > 0).all() for line in lines) else -np.inf
        sides = [(line.x, y[y > least]) for line in lines for y in (line.y, line.low, line.high)]
        return loss_panel(over, sides, lines, target_loss=target_loss)
    xs, ys = known(lines)
    y = fit_axis("accuracy", NO_UNIT, ys, log=False)
    return Panel(x=over.axis(max(xs)), y=y, parts=tuple(lines))


def _by_number(label: str) -> tuple[tuple[int, ...], str]:
    """Labels by the numbers in them, as a reader would order them."""
    return tuple(int(word.replace(",", "")) for word in re.findall(r"[\d,]*\d", label)), label
