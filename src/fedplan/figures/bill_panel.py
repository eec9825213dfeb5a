"""The bill's data: what pilots and training cost, as predicted and as measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fedplan.figures.units import NO_UNIT, Axis, energy_unit, number, quantity, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.theory.cost import Objective
    from fedplan.theory.descent_plan import Forecast

_FURTHEST = 6.0  # times what was paid: how far what was predicted may stretch the axis
_ROOM = 1.45  # times the furthest end: the axis leaves room for what is written there


class Totals(Protocol):
    """What anything cost: a prediction, or what was measured."""

    @property
    def time_s(self) -> float:
        """Seconds."""

    @property
    def energy_j(self) -> float:
        """Joules."""

    @property
    def cost(self) -> float:
        """Both, in the objective's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillBar:
    """One bar; `interval` is that of a predicted cost."""

    name: str
    time_s: float
    energy_j: float
    cost: float
    interval: tuple[float, float] | None = None

    @property
    def predicted(self) -> bool:
        """Whether nobody has paid it yet."""
        return self.interval is not None

    def text(self, *, with_energy: bool) -> str:
        """What is written at the bar: the cost, then seconds and joules."""
        totals = [quantity(self.time_s, time_unit(self.time_s))]
        if with_energy:
            totals.append(quantity(self.energy_j, energy_unit(self.energy_j)))
        shown = number(self.cost)
        if self.interval is not None:
            low, high = self.interval
            shown += f" ({number(low)} to {'endless' if math.isinf(high) else number(high)})"
        return f"{shown}\n{', '.join(totals)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BillPanel:
    """The bars, from top to bottom."""

    title: str
    cost: Axis
    bars: tuple[BillBar, ...]

    def text(self, bar: BillBar) -> str:
        """What is written at a bar; joules only where any bar has some."""
        text = bar.text(with_energy=any(bar.energy_j for bar in self.bars))
        return f"→ {text}" if self.goes_on(bar) else text

    def end(self, bar: BillBar) -> float:
        """Where a bar, or its interval, ends as drawn."""
        return min(self._furthest(bar), self.cost.high / _ROOM)

    def goes_on(self, bar: BillBar) -> bool:
        """Whether a bar, or its interval, is longer than drawn."""
        return self._furthest(bar) > self.cost.high

    def _furthest(self, bar: BillBar) -> float:
        return max(bar.cost, *(bar.interval or (0.0, 0.0)))


def bill_panel(
    objective: Objective,
    *,
    pilots: Totals,
    forecast: Forecast | None = None,
    training: Totals | None = None,
    reached: bool = True,
) -> BillPanel:
    """Pilots and one training; `reached` says whether that got to the target."""
    bars = [_bar("pilots", pilots)]
    if forecast is not None:
        expected = forecast.prediction
        bars.append(_bar("training,\npredicted", expected, forecast.interval(expected.cost)))
    if training is not None:
        bars.append(_bar("training,\nmeasured" if reached else "training,\nnot reached", training))
    return BillPanel(title="The bill", cost=_axis(bars, objective), bars=tuple(bars))


def _bar(name: str, totals: Totals, interval: tuple[float, float] | None = None) -> BillBar:
    return BillBar(
        name=name,
        time_s=float(totals.time_s),
        energy_j=float(totals.energy_j),
        cost=float(totals.cost),
        interval=None if interval is None else (float(interval[0]), float(interval[1])),
    )


def _axis(bars: Sequence[BillBar], objective: Objective) -> Axis:
    largest = max(bar.cost for bar in bars if not bar.predicted)
    predicted = [min(bar.interval[1], _FURTHEST * largest) for bar in bars if bar.interval]
    high = _ROOM * max([largest, *predicted])
    return Axis(
        label=f"cost ({objective.unit})",
        unit=NO_UNIT,
        log=False,
        low=0.0,
        high=high or 1.0,
        all_zero=not high,
    )
