"""The bill: what pilots and training cost, as predicted and as measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from fedplan.figures.spec import Categories, Interval, Panel, Part, Texts, bar
from fedplan.figures.style import BLUE, INK, ORANGE
from fedplan.figures.units import bar_axis, energy_unit, number, quantity, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.core.fleet import FloatArray
    from fedplan.core.objective import Objective
    from fedplan.figures.units import Axis
    from fedplan.planning.descent_plan import Forecast

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


class _Item(NamedTuple):
    """What a bar shows; `interval` is that of a cost nobody has paid yet."""

    name: str
    totals: Totals
    interval: tuple[float, float] | None = None

    @property
    def furthest(self) -> float:
        return float(max(self.totals.cost, *(self.interval or (0.0, 0.0))))


def bill_panel(
    objective: Objective,
    *,
    pilots: Totals,
    forecast: Forecast | None = None,
    training: Totals | None = None,
    reached: bool = True,
) -> Panel:
    """Pilots and one training; `reached` says whether that got to the target."""
    items = [_Item("pilots", pilots)]
    if forecast is not None:
        expected = forecast.prediction
        items.append(_Item("training,\npredicted", expected, forecast.interval(expected.cost)))
    if training is not None:
        name = "training,\nmeasured" if reached else "training,\nnot reached"
        items.append(_Item(name, training))
    paid = max(item.totals.cost for item in items if item.interval is None)
    predicted = [min(item.interval[1], _FURTHEST * paid) for item in items if item.interval]
    axis = bar_axis(f"cost ({objective.unit})", _ROOM * max([paid, *predicted]))
    has_energy = any(item.totals.energy_j for item in items)
    texts = tuple(_text(item, axis, has_energy) for item in items)
    ends = np.array([min(item.furthest, axis.high / _ROOM) for item in items])
    words = "; ".join(f"{item.name}: {text}" for item, text in zip(items, texts, strict=True))
    written = Texts(x=ends, y=np.arange(len(items), dtype=float), texts=texts)
    return Panel(
        name="bill",
        title="The bill",
        x=axis,
        y=Categories(names=tuple(item.name for item in items)),
        parts=(*_bars(items, ends, texts), written),
        height=2.8,
        words=words.replace(",\n", ", ").replace("\n", ", ") + ".",
    )


def _bars(items: Sequence[_Item], ends: FloatArray, texts: Sequence[str]) -> list[Part]:
    """The bars; what is only predicted is hatched and pale, and its interval a whisker."""
    parts: list[Part] = []
    for row, (item, end, text) in enumerate(zip(items, ends.tolist(), texts, strict=True)):
        length = min(float(item.totals.cost), end)
        if item.interval is None:
            parts.append(bar(row, length, BLUE, hover=text))
            continue
        parts.append(bar(row, length, "white", edge=ORANGE, hatched=True, hover=text))
        low, high = (min(side, end) for side in item.interval)
        parts.append(Interval(low=low, high=high, at=row, colour=INK, width=1.6, layer=1))
    return parts


def _text(item: _Item, axis: Axis, has_energy: bool) -> str:
    """What is written at a bar: the cost, then seconds and joules."""
    totals = [quantity(item.totals.time_s, time_unit(item.totals.time_s))]
    if has_energy:
        totals.append(quantity(item.totals.energy_j, energy_unit(item.totals.energy_j)))
    shown = number(item.totals.cost)
    if item.interval is not None:
        low, high = item.interval
        shown += f" ({number(low)} to {'endless' if math.isinf(high) else number(high)})"
    arrow = "→ " if item.furthest > axis.high else ""  # it is longer than drawn
    return f"{arrow}{shown}\n{', '.join(totals)}"
