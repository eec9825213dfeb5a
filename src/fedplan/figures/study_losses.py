"""Two panels of a study: the pilots' losses with the descent fitted to them, and training's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.losses import curve_of, seed_lines, thinned
from fedplan.figures.spec import Interval, Line, Panel, Part, rule, spot
from fedplan.figures.style import INK, ORANGE, Look, series_looks
from fedplan.figures.units import NO_UNIT, Axis, fit_axis, number, round_axis

if TYPE_CHECKING:
    from fedplan.convergence.descent import Descent
    from fedplan.core.fleet import FloatArray
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Curve
    from fedplan.planning.descent_plan import Forecast

_FIT_POINTS = 60
_LEVELS = 60  # losses at which the mean of several runs is taken
_MARKERS = 8  # of a line, so that lines are told apart without their colours
# An axis is at most so many times as long as what was measured: predictions may be far out.
_FURTHEST = 6.0
_MANY = 1e6  # rounds that are not written out


def pilot_panel(
    pilots: Sequence[RunRecord], target_loss: float, descent: Descent | None = None
) -> Panel | None:
    """Pilots, and what the descent says of each setting; None where no pilot has any loss."""
    drawable = [run for run in pilots if run.final_loss is not None]
    if not drawable:
        return None
    curves = [curve_of(run) for run in drawable]
    fits = [
        _fit(run, float(losses[0]), target_loss, descent)
        for run, (_, losses) in zip(drawable, curves, strict=True)
    ]
    longest = float(max(at[-1] for at, _ in curves))
    arrivals = [float(at[-1]) for at, _ in fits if at.size] or [longest]
    # The typical arrival is shown; a pilot that would take for ever does not squash the rest.
    rounds = round_axis(max(longest, min(median(arrivals), _FURTHEST * longest)))
    looks = series_looks(range(len(drawable))).values()
    parts: list[Part] = []
    for name, curve, fit, look in zip(_names(drawable), curves, fits, looks, strict=True):
        parts += _pilot_lines(name, thinned(curve), fit, look)
    words = "Training loss of every pilot over its rounds"
    if any(at.size for at, _ in fits):
        nothing, name = np.empty(0), "fitted, to the target"
        parts.append(Line(x=nothing, y=nothing, colour=INK, width=1.3, dash="dash", name=name))
        words += "; dashed as fitted, down to the target"
    return Panel(
        name="pilots",
        title="Pilots, and the descent fitted to them" if descent else "Pilots",
        x=rounds,
        y=_loss_axis(curves, target_loss),
        parts=(*parts, rule(rounds, target_loss, f"target {target_loss:g}")),
        legend="inside",
        words=f"{words}.",
    )


def _loss_axis(curves: Sequence[Curve], target_loss: float) -> Axis:
    losses = [float(loss) for _, seen in curves for loss in seen]
    return fit_axis("training loss", NO_UNIT, [*losses, target_loss], log=True)


def _names(runs: Sequence[RunRecord]) -> list[str]:
    """K and E of each; with the seed too where only that tells two pilots apart."""
    settings = [f"K={run.clients_per_round:,}, E={run.local_steps:,}" for run in runs]
    return [
        name if settings.count(name) == 1 else f"{name}, seed {run.seed}"
        for name, run in zip(settings, runs, strict=True)
    ]


def _pilot_lines(name: str, curve: Curve, fit: Curve, look: Look) -> list[Line]:
    measured = Line(
        x=curve[0],
        y=curve[1],
        name=name,
        colour=look.colour,
        look=look,
        every=max(1, curve[0].size // _MARKERS),
        layer=2,
        hover=f"{name}, round {{x}}: {{y}}",
    )
    fitted = Line(
        x=fit[0],
        y=fit[1],
        group=name,
        colour=look.colour,
        width=1.3,
        dash="dash",
        layer=1,
        hover=f"{name}, fitted, round {{x}}: {{y}}",
    )
    return [measured, fitted] if fit[0].size else [measured]


def _fit(run: RunRecord, start: float, target_loss: float, descent: Descent | None) -> Curve:
    """The fitted losses from the first one of a pilot down to the target; nothing without a fit."""
    if descent is None or start <= target_loss:
        return np.empty(0), np.empty(0)
    losses = np.geomspace(start, target_loss, _FIT_POINTS)
    rounds = descent.rounds(*run.setting.pair, losses)
    reached = np.isfinite(rounds)
    losses, rounds = losses[reached], rounds[reached]
    # Far above the target the form may turn round; what is drawn is where it falls to the target.
    falls = np.append(np.diff(rounds) > 0, np.ones(min(rounds.size, 1), dtype=bool))
    kept = np.minimum.accumulate(falls[::-1])[::-1]
    return rounds[kept], losses[kept]


def training_panel(
    runs: Sequence[RunRecord], target_loss: float, forecast: Forecast | None = None
) -> Panel | None:
    """Runs of the plan and the predicted arrival; None where no run has any loss."""
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        return None
    curves = [curve_of(run) for run in drawable]
    longest = max(1.0, *(float(at[-1]) for at, _ in curves))
    ends = [longest]
    if forecast is not None:
        ends.append(min(forecast.rounds_interval[1], _FURTHEST * longest))
    rounds = round_axis(max(ends))
    target = rule(rounds, target_loss, f"target {target_loss:g}")
    arrivals = _arrivals(runs, target_loss, forecast, rounds)
    words = "Training loss over the rounds, one line for each seed."
    if forecast is not None:
        names = "; ".join(part.name for part in arrivals if part.name)
        words += f" Arrival at the target, {names}."
    return Panel(
        name="training",
        title=f"Training with K={runs[0].clients_per_round:,}, E={runs[0].local_steps:,}",
        x=rounds,
        y=_loss_axis(curves, target_loss),
        parts=(*_training_lines(drawable, curves, target_loss), target, *arrivals),
        legend="inside",
        words=words,
    )


def _training_lines(
    runs: Sequence[RunRecord], curves: Sequence[Curve], target_loss: float
) -> list[Line]:
    mean_at, mean = _mean(runs, target_loss)
    sound = sum(run.status != "diverged" for run in runs)
    name = "the run" if sound == 1 else f"{sound} runs, one for each seed"
    lines = seed_lines(runs, curves, name, in_front=mean.size > 0)
    if mean.size:
        words = "mean, round {x}: {y}"
        lines.append(Line(x=mean_at, y=mean, name="their mean", width=2.4, layer=1, hover=words))
    return lines


def _arrivals(
    runs: Sequence[RunRecord], target_loss: float, forecast: Forecast | None, rounds: Axis
) -> list[Part]:
    """When training was to arrive at the target, and when it did on average."""
    parts: list[Part] = []
    if forecast is not None:
        low, high = forecast.rounds_interval
        expected = float(forecast.prediction.expected_rounds)
        name = f"predicted: {_rounds(math.ceil(expected))} ({_rounds(low)} to {_rounds(high)})"
        beyond = 2 * rounds.high  # it is seen to go on
        hover = f"{name} rounds"
        parts.append(
            Interval(
                low=min(low, beyond),
                high=min(high, beyond),
                at=target_loss,
                colour=ORANGE,
                width=3.5,
                name=name,
                layer=3,
                hover=hover,
            )
        )
        if rounds.has(expected):
            look = Look(colour=ORANGE, symbol="line-ns", size=16.0, layer=3)
            parts.append(spot(expected, target_loss, look, group=name, hover=hover))
    arrived = [run.num_rounds for run in runs if run.status == "target"]
    if arrived:
        name = f"measured: {number(fmean(arrived))}"
        look = Look(colour=INK, symbol="circle", size=9.0, layer=4)
        parts.append(spot(fmean(arrived), target_loss, look, name=name, hover=f"{name} rounds"))
    return parts


def _rounds(value: float) -> str:
    if math.isinf(value):
        return "never"
    return number(value) if value > _MANY else f"{value:,.0f}"


def _mean(runs: Sequence[RunRecord], target_loss: float) -> Curve:
    """When a loss was first reached, on average over the runs that reached the target.

    Over all where none did; so the line ends where they arrived on average. Of a single run empty.
    """
    arrived = [run for run in runs if run.status == "target"]
    averaged = [thinned(curve_of(r)) for r in arrived or runs if r.status != "diverged"]
    if len(averaged) < 2:
        return np.empty(0), np.empty(0)
    floor = target_loss if arrived else float(max(losses.min() for _, losses in averaged))
    top = float(min(losses[0] for _, losses in averaged))
    if not 0 < floor < top:
        return np.empty(0), np.empty(0)
    levels = np.geomspace(top, floor, _LEVELS)
    return np.mean([_first_at(curve, levels) for curve in averaged], axis=0), levels


def _first_at(curve: Curve, levels: FloatArray) -> FloatArray:
    """When a run first came down to each level: between the evaluations before and after."""
    at, losses = curve
    after = np.searchsorted(-np.minimum.accumulate(losses), -levels)
    before = np.maximum(after - 1, 0)
    fall = losses[before] - losses[after]
    left = (levels - losses[after]) / np.where(fall > 0, fall, 1.0)
    return np.asarray(at[after] - left * (at[after] - at[before]))
