"""Figures of fits: pilots with their fitted curves, and what earlier runs say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedplan.convergence.bound import Bound, drift
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.histories import History, Learnt
from fedplan.convergence.joint_fit import CONFIDENCE
from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError
from fedplan.figures.axes import Axis, fit_axis
from fedplan.figures.spec import Categories, Figure, Line, Panel, Part, Points, interval, rule, spot
from fedplan.figures.style import BLUE, Look, series_looks
from fedplan.words import NO_UNIT, number

_MOST_CURVES = 8
_CURVE_POINTS = 80
_WIDEST = 4.0  # times the estimate; an interval beyond is drawn as open


@dataclass(frozen=True, slots=True, kw_only=True)
class FitInterval:
    """One coefficient and its interval; relative to the estimate too, infinite where open."""

    name: str
    estimate: float
    low: float
    high: float

    @property
    def relative(self) -> tuple[float, float, float]:
        """Low end, estimate and high end over the estimate; (0, 0, inf) for an estimate of 0."""
        if not self.estimate:
            return 0.0, 0.0, math.inf if self.high else 0.0
        return self.low / self.estimate, 1.0, self.high / self.estimate

    @property
    def label(self) -> str:
        """The numbers themselves: "a0 = 2,444 (1,900 to 3,100)"."""
        if math.isinf(self.high):
            ends = f"{number(self.low)} or more"
        else:
            ends = f"{number(self.low)} to {number(self.high)}"
        return f"{self.name} = {number(self.estimate)}\n({ends})"


def fit_figure_data(pilots: Sequence[Pilot], estimate: Estimate, num_clients: int) -> Figure:
    """Data of the fit figure; `estimate` is that of these pilots in a fleet of `num_clients`.

    Without a fit there are the pilots alone.
    """
    if not pilots:
        raise InputError("a fit needs pilots to draw, but got none.")
    upper, lower = pilots[0].upper_loss, pilots[0].lower_loss
    intervals = fit_intervals(estimate)
    panels = [_pilots_panel(pilots, estimate, num_clients)]
    if intervals:
        is_joint = estimate.method == "joint"
        title = f"{CONFIDENCE:.0%} intervals" if is_joint else "Range over pairs of pilots"
        panels.append(_intervals_panel(intervals, title))
    return Figure(
        title=f"Local steps a client needs from loss {upper:g} to {lower:g}: "
        f"{len(pilots)} pilots{' and the fit' if estimate.bound else ''}",
        rows=(tuple(panels),),
        size=(11.0, 4.6),
        note=estimate.message,
    )


def _pilots_panel(pilots: Sequence[Pilot], estimate: Estimate, num_clients: int) -> Panel:
    steps = fit_axis("local steps E", NO_UNIT, [pilot.local_steps for pilot in pilots])
    curves = _curves(pilots, estimate, num_clients, steps)
    points = _points_by_clients(
        [pilot.clients_per_round for pilot in pilots],
        [pilot.local_steps for pilot in pilots],
        [pilot.iterations for pilot in pilots],
    )
    measured, fitted = [part.y for part in points], [curve.y for curve in curves]
    shown = np.concatenate([*measured, *fitted]).tolist()
    return Panel(
        title="Pilots, fit, and all plausible fits (bands)" if curves else "Pilots",
        x=steps,
        y=fit_axis("local steps between the losses", NO_UNIT, shown),
        parts=(*points, *curves),  # a legend shows the points
        width=3.0,
    )


def _points_by_clients(
    clients: Sequence[int], steps: Sequence[float], values: Sequence[float], unit: str = ""
) -> list[Points]:
    """What was measured at each E, the trainings of one K together."""
    each, x, y = np.array(clients), np.array(steps, dtype=np.float64), np.array(values)
    return [
        Points(
            x=x[each == k],
            y=y[each == k],
            look=look,
            name=f"K={k:,}",
            layer=3,
            hover=f"K={k:,}, E={{x}}: {{y}} {unit}".rstrip(),
        )
        for k, look in series_looks(sorted(set(clients))).items()
    ]


def _intervals_panel(intervals: Sequence[FitInterval], title: str) -> Panel:
    ratio = _ratio_axis(intervals)
    rows = Categories(names=tuple(one.label for one in intervals))
    parts: list[Part] = [rule(1.0, rows, dash="dash")]
    dot = Look(colour=BLUE, symbol="circle", size=8.0, layer=2)
    for row, one in enumerate(intervals):
        low, centre, high = one.relative
        hover = one.label.replace("\n", " ")
        end = min(high, ratio.high)
        parts += interval(low, end, row, goes_on=end < high, hover=hover)
        parts.append(spot(centre, row, dot, hover=hover))
    return Panel(title=title, x=ratio, y=rows, parts=tuple(parts), width=2.0)


def _curves(
    pilots: Sequence[Pilot], estimate: Estimate, num_clients: int, axis: Axis
) -> list[Line]:
    """Local steps between the two losses at each K, over E, and what any plausible bound says."""
    if estimate.bound is None:
        return []
    clients = sorted({pilot.clients_per_round for pilot in pilots})
    looks = series_looks(clients)
    if len(clients) > _MOST_CURVES:  # evenly spread, both ends among them
        picks = np.linspace(0, len(clients) - 1, _MOST_CURVES).round().astype(int)
        clients = [clients[pick] for pick in picks]
    steps = np.geomspace(axis.low, axis.high, _CURVE_POINTS)
    plausible = [_in_units_of(bound, pilots, estimate, num_clients) for bound in estimate.plausible]
    curves = []
    for k in clients:
        centre = _iterations(estimate.bound, k, steps, num_clients)
        every = [centre, *(_iterations(bound, k, steps, num_clients) for bound in plausible)]
        curves.append(
            Line(
                x=steps,
                y=centre,
                low=np.min(every, axis=0),
                high=np.max(every, axis=0),
                colour=looks[k].colour,
                name=f"K={k:,}",
            )
        )
    return curves


def _iterations(
    bound: Bound, clients_per_round: int, steps: FloatArray | int, num_clients: int
) -> FloatArray:
    """E (R_b - R_a) by a bound, a0 + E^2 (b0 + c0 s(K)), in the pilots' own units."""
    return np.asarray(bound.a0 + steps**2 * drift(bound, clients_per_round, num_clients))


def _in_units_of(
    bound: Bound, pilots: Sequence[Pilot], estimate: Estimate, num_clients: int
) -> Bound:
    """A plausible bound in the pilots' units; pairs of pilots give a0 / b0 without them."""
    if estimate.method == "joint":
        return bound
    ratios = [
        pilot.iterations
        / _iterations(bound, pilot.clients_per_round, pilot.local_steps, num_clients)
        for pilot in pilots
    ]
    scale = float(np.mean(ratios))
    return Bound(a0=bound.a0 * scale, b0=bound.b0 * scale, c0=bound.c0 * scale)


def fit_intervals(estimate: Estimate) -> tuple[FitInterval, ...]:
    """The coefficients and their intervals; none without a fit."""
    if estimate.bound is None:
        return ()
    values = {name: getattr(estimate.bound, name) for name in estimate.intervals}
    ends = dict(estimate.intervals)
    if math.isfinite(estimate.ratio):
        values["a0 / b0"], ends["a0 / b0"] = estimate.ratio, estimate.ratio_interval
    return tuple(
        FitInterval(name=name, estimate=value, low=ends[name][0], high=ends[name][1])
        for name, value in values.items()
    )


def _ratio_axis(intervals: Sequence[FitInterval]) -> Axis:
    """From 0 to the furthest end that is not too far; the others are arrows."""
    highs = [one.relative[2] for one in intervals]
    furthest = max([2.0, *(high for high in highs if high <= _WIDEST)])
    return fit_axis("relative to the estimate", NO_UNIT, [0.0, furthest])


def learnt_figure_data(
    histories: Sequence[History], learnt: Learnt, note: str = ""
) -> Figure | None:
    """Data of the figure; None if no two runs have a loss in common.

    Each training is drawn at its mean local steps and clients.
    """
    found = [
        (round(float(one.clients.mean())), float(one.local_steps.mean()), float(reached[0]))
        for one in histories
        if learnt.loss is not None and (reached := one.rounds[one.losses <= learnt.loss]).size
    ]
    if not found:
        return None
    clients, steps, rounds = zip(*found, strict=True)
    grid = np.geomspace(min(steps) / 1.5, max(steps) * 1.5, _CURVE_POINTS)
    middle = float(np.exp(np.log(steps).mean()))
    low, centre, high = (
        learnt.rounds_at(middle) * (1.0 + end / grid) / (1.0 + end / middle)
        for end in (learnt.interval[0], learnt.saturation, learnt.interval[1])
    )
    curve = Line(
        x=grid,
        y=centre,
        low=np.minimum(low, high),
        high=np.maximum(low, high),
        colour=BLUE,
        name="all clients",
        hover="E={x}: {y} rounds of all clients",
    )
    points = _points_by_clients(clients, steps, rounds, "rounds")
    panel = Panel(
        x=fit_axis("local steps E", NO_UNIT, grid.tolist(), log=True),
        y=fit_axis("rounds", NO_UNIT, [*centre.tolist(), *rounds], log=True),
        parts=(curve, *points),
    )
    title = f"Rounds to loss {learnt.loss:.4g}: {len(found)} runs, and what all clients would take"
    return Figure(title=title, rows=((panel,),), size=(7.5, 4.6), note=note)
