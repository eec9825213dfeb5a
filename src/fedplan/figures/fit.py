"""The fit figure's data: what the pilots measured, the curves fitted, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.units import NO_UNIT, Axis, fit_axis, number
from fedplan.theory.convergence import Bound, drift
from fedplan.theory.joint_fit import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.theory.estimation import Estimate
    from fedplan.theory.fleet import FloatArray
    from fedplan.theory.joint_fit import Interval
    from fedplan.theory.pilots import Pilot

_MOST_CURVES = 8
_CURVE_POINTS = 80
_WIDEST = 4.0  # times the estimate; an interval beyond is drawn as open


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitCurve:
    """Local steps a client spends between the two losses at one K, over E.

    `low` and `high` are the least and the most that any plausible bound says.
    """

    clients_per_round: int
    local_steps: FloatArray
    iterations: FloatArray
    low: FloatArray
    high: FloatArray


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFigure:
    """Pilots and fit, ready to be drawn; without a fit there are no curves and no intervals."""

    title: str
    pilots_title: str
    pilots: tuple[Pilot, ...]
    steps: Axis
    iterations: Axis
    curves: tuple[FitCurve, ...]
    intervals_title: str
    intervals: tuple[FitInterval, ...]
    ratio: Axis
    note: str


def fit_figure_data(pilots: Sequence[Pilot], estimate: Estimate, num_clients: int) -> FitFigure:
    """Data of the fit figure; `estimate` is that of these pilots in a fleet of `num_clients`.

    >>> from fedplan import Pilot, estimate_bound
    >>> runs = [(3, 30, 40, 70), (20, 20, 60, 98), (20, 45, 40, 66), (3, 70, 30, 62)]
    >>> pilots = [Pilot(clients_per_round=k, local_steps=e, upper_loss=1.5, lower_loss=1.3,
    ...     rounds_to_upper=a, rounds_to_lower=b) for k, e, a, b in runs]
    >>> data = fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
    >>> [curve.clients_per_round for curve in data.curves], data.intervals[0].name
    ([3, 20], 'a0')
    """
    if not pilots:
        raise InputError("a fit needs pilots to draw, but got none.")
    steps = fit_axis("local steps E", NO_UNIT, [pilot.local_steps for pilot in pilots])
    curves = _curves(pilots, estimate, num_clients, steps)
    measured = [pilot.iterations for pilot in pilots]
    fitted = [float(value) for curve in curves for value in curve.iterations]
    upper, lower = pilots[0].upper_loss, pilots[0].lower_loss
    intervals = _intervals(estimate)
    return FitFigure(
        title=f"Local steps a client needs from loss {upper:g} to {lower:g}: "
        f"{len(pilots)} pilots{' and the fit' if curves else ''}",
        pilots_title="Pilots, fit, and all plausible fits (bands)" if curves else "Pilots",
        pilots=tuple(pilots),
        steps=steps,
        iterations=fit_axis("local steps between the losses", NO_UNIT, [*measured, *fitted]),
        curves=tuple(curves),
        intervals_title=f"{CONFIDENCE:.0%} intervals"
        if estimate.method == "joint"
        else "Range over pairs of pilots",
        intervals=intervals,
        ratio=_ratio_axis(intervals),
        note=estimate.message,
    )


def _curves(
    pilots: Sequence[Pilot], estimate: Estimate, num_clients: int, axis: Axis
) -> list[FitCurve]:
    if estimate.bound is None:
        return []
    clients = sorted({pilot.clients_per_round for pilot in pilots})
    if len(clients) > _MOST_CURVES:  # evenly spread, both ends among them
        picks = np.linspace(0, len(clients) - 1, _MOST_CURVES).round().astype(int)
        clients = [clients[pick] for pick in picks]
    steps = np.geomspace(axis.low, axis.high, _CURVE_POINTS)
    plausible = [_in_units_of(bound, pilots, estimate, num_clients) for bound in estimate.plausible]
    curves = []
    for k in clients:
        centre = _iterations(estimate.bound, k, steps, num_clients)
        others = [_iterations(bound, k, steps, num_clients) for bound in plausible]
        curves.append(
            FitCurve(
                clients_per_round=k,
                local_steps=steps,
                iterations=centre,
                low=np.min([centre, *others], axis=0),
                high=np.max([centre, *others], axis=0),
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


def _intervals(estimate: Estimate) -> tuple[FitInterval, ...]:
    if estimate.bound is None:
        return ()
    values = {name: getattr(estimate.bound, name) for name in estimate.intervals}
    ends: dict[str, Interval] = dict(estimate.intervals)
    if math.isfinite(estimate.ratio):
        values["a0 / b0"], ends["a0 / b0"] = estimate.ratio, estimate.ratio_interval
    return tuple(
        FitInterval(name=name, estimate=value, low=ends[name][0], high=ends[name][1])
        for name, value in values.items()
    )


def _ratio_axis(intervals: Sequence[FitInterval]) -> Axis:
    """From 0 to the furthest end that is not too far; the others are arrows."""
    highs = [interval.relative[2] for interval in intervals]
    furthest = max([2.0, *(high for high in highs if high <= _WIDEST)])
    return fit_axis("relative to the estimate", NO_UNIT, [0.0, furthest])
