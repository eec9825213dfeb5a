"""Two panels' data: the pilots' losses with the descent fitted to them, and those of training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.run import RunLine, loss_line, round_axis
from fedplan.figures.units import NO_UNIT, Axis, fit_axis, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.records import RunRecord
    from fedplan.theory.descent import Descent
    from fedplan.theory.descent_plan import Forecast
    from fedplan.theory.fleet import FloatArray

_FIT_POINTS = 60
_LEVELS = 60  # losses at which the mean of several runs is taken
# An axis is at most so many times as long as what was measured: predictions may be far out.
_FURTHEST = 6.0
_MANY = 1e6  # rounds that are not written out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PilotLine:
    """One pilot: its losses, and the fitted ones down to the target; empty without a fit."""

    name: str
    measured: RunLine
    fit_at: FloatArray
    fit: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PilotPanel:
    """Loss against rounds of the pilots, as measured and as fitted."""

    title: str
    rounds: Axis
    loss: Axis
    lines: tuple[PilotLine, ...]
    target_loss: float

    @property
    def fitted(self) -> bool:
        """Whether there are fitted lines."""
        return any(line.fit.size for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Rounds until the target, as predicted: the median, and the ends of the interval."""

    low: float
    median: float
    high: float

    @property
    def name(self) -> str:
        """What the legend calls it."""
        low, centre, high = (
            number(rounds) if rounds > _MANY else f"{rounds:,.0f}"
            for rounds in (self.low, math.ceil(self.median), self.high)
        )
        return f"predicted: {centre} ({low} to {'never' if math.isinf(self.high) else high})"

    def within(self, furthest: float) -> tuple[float, float, float]:
        """Low, median and high as far as an axis goes."""
        return min(self.low, furthest), min(self.median, furthest), min(self.high, furthest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingPanel:
    """Loss against rounds of training, and when it was to arrive at the target.

    mean_at, mean : when a loss was first reached, averaged over the runs that reached the target
        (over all where none did), so that the line ends where they arrived on average; empty of a
        single run.
    measured : that average; None where no run reached the target.
    """

    title: str
    rounds: Axis
    loss: Axis
    lines: tuple[RunLine, ...]
    mean_at: FloatArray
    mean: FloatArray
    target_loss: float
    predicted: Arrival | None
    measured: float | None

    @property
    def run_name(self) -> str:
        """What the legend calls a line."""
        sound = sum(not line.diverged for line in self.lines)
        return "the run" if sound == 1 else f"{sound} runs, one a seed"

    @property
    def measured_name(self) -> str:
        """What the legend calls the arrival that was measured."""
        return f"measured: {number(self.measured or math.nan)}"


def pilot_panel(
    pilots: Sequence[RunRecord], target_loss: float, descent: Descent | None = None
) -> PilotPanel | None:
    """Pilots, and what the descent says of each setting; None where no pilot has any loss."""
    drawable = [run for run in pilots if run.final_loss is not None]
    if not drawable:
        return None
    names = _pilot_names(drawable)
    lines = [
        _pilot_line(name, run, target_loss, descent)
        for name, run in zip(names, drawable, strict=True)
    ]
    longest = float(max(line.measured.at[-1] for line in lines))
    arrivals = [float(line.fit_at[-1]) for line in lines if line.fit.size] or [longest]
    losses = [float(loss) for line in lines for loss in line.measured.losses]
    return PilotPanel(
        title="Pilots, and the descent fitted to them" if descent else "Pilots",
        # The typical arrival is shown; a pilot that would take for ever does not squash the rest.
        rounds=round_axis(max(longest, min(median(arrivals), _FURTHEST * longest))),
        loss=fit_axis("training loss", NO_UNIT, [*losses, target_loss], log=True),
        lines=tuple(lines),
        target_loss=target_loss,
    )


def _pilot_names(runs: Sequence[RunRecord]) -> list[str]:
    """K and E of each; with the seed too where only that tells two pilots apart."""
    settings = [f"K={run.clients_per_round:,}, E={run.local_steps:,}" for run in runs]
    return [
        name if settings.count(name) == 1 else f"{name}, seed {run.seed}"
        for name, run in zip(settings, runs, strict=True)
    ]


def _pilot_line(
    name: str, run: RunRecord, target_loss: float, descent: Descent | None
) -> PilotLine:
    measured = loss_line(run)
    start = float(measured.losses[0])
    if descent is None or start <= target_loss:
        none = np.empty(0)
        return PilotLine(name=name, measured=measured, fit_at=none, fit=none)
    losses = np.geomspace(start, target_loss, _FIT_POINTS)
    rounds = descent.rounds(run.clients_per_round, run.local_steps, losses)
    reached = np.isfinite(rounds)
    losses, rounds = losses[reached], rounds[reached]
    # Far above the target the form may turn round; what is drawn is where it falls to the target.
    falls = np.append(np.diff(rounds) > 0, np.ones(min(rounds.size, 1), dtype=bool))
    kept = np.minimum.accumulate(falls[::-1])[::-1]
    return PilotLine(name=name, measured=measured, fit_at=rounds[kept], fit=losses[kept])


def training_panel(
    runs: Sequence[RunRecord], target_loss: float, forecast: Forecast | None = None
) -> TrainingPanel | None:
    """Runs of the plan and the predicted arrival; None where no run has any loss."""
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        return None
    lines = [loss_line(run) for run in drawable]
    arrived = [run.num_rounds for run in runs if run.status == "target"]
    predicted = None
    if forecast is not None:
        low, high = forecast.rounds_interval
        predicted = Arrival(low=low, median=float(forecast.prediction.expected_rounds), high=high)
    longest = max(1.0, *(float(line.at[-1]) for line in lines))
    ends = [longest] if predicted is None else [longest, min(predicted.high, _FURTHEST * longest)]
    mean_at, mean = _mean(drawable, target_loss)
    losses = [float(loss) for line in lines for loss in line.losses]
    return TrainingPanel(
        title=f"Training with K={runs[0].clients_per_round:,}, E={runs[0].local_steps:,}",
        rounds=round_axis(max(ends)),
        loss=fit_axis("training loss", NO_UNIT, [*losses, target_loss], log=True),
        lines=tuple(lines),
        mean_at=mean_at,
        mean=mean,
        target_loss=target_loss,
        predicted=predicted,
        measured=fmean(arrived) if arrived else None,
    )


def _mean(runs: Sequence[RunRecord], target_loss: float) -> tuple[FloatArray, FloatArray]:
    arrived = [run for run in runs if run.status == "target"]
    averaged = [loss_line(r) for r in arrived or runs if r.status != "diverged"]
    if len(averaged) < 2:
        return np.empty(0), np.empty(0)
    floor = target_loss if arrived else float(max(line.losses.min() for line in averaged))
    top = float(min(line.losses[0] for line in averaged))
    if not 0 < floor < top:
        return np.empty(0), np.empty(0)
    levels = np.geomspace(top, floor, _LEVELS)
    return np.mean([_first_at(line, levels) for line in averaged], axis=0), levels


def _first_at(line: RunLine, levels: FloatArray) -> FloatArray:
    """When a run first came down to each level: between the evaluations before and after."""
    after = np.searchsorted(-np.minimum.accumulate(line.losses), -levels)
    before = np.maximum(after - 1, 0)
    fall = line.losses[before] - line.losses[after]
    left = (levels - line.losses[after]) / np.where(fall > 0, fall, 1.0)
    return np.asarray(line.at[after] - left * (line.at[after] - line.at[before]))
