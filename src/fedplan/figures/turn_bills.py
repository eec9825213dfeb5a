"""Bills beside each other: what training by turns takes, and what other ways would take."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.spec import Categories, Panel, Texts, bar
from fedplan.figures.style import BLUE, PALE
from fedplan.figures.sweep import ratio_label
from fedplan.figures.units import Unit, bar_axis, energy_unit, number, quantity, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOM = 2.1  # times the longest bar: the axis leaves room for what is written at its end
_NARROW = 16  # letters of a line that leave room for bars on a phone


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBill:
    """What training to the target takes in one way, in expected rounds and in total."""

    name: str
    rounds: float
    time_s: float
    energy_j: float
    cost: float


def bill_panels(bills: Sequence[TurnBill], unit: str, *, narrow: bool = False) -> tuple[Panel, ...]:
    """Time, energy and cost to the target, a bar for each way; no energy where there is none.

    narrow : each panel is to stand alone, with room for names of several lines.
    """
    names = tuple(
        f"{broken(bill.name, narrow=narrow)}\n{number(bill.rounds)} rounds" for bill in bills
    )
    rows = Categories(names=names)
    tall = max(0.4, 0.19 * max(name.count("\n") + 1 for name in names))  # inches of a name
    columns: list[tuple[str, Unit, list[float]]] = [
        ("time to target", time_unit(bills[0].time_s), [bill.time_s for bill in bills])
    ]
    if any(bill.energy_j for bill in bills):
        energies = [bill.energy_j for bill in bills]
        columns.append(("energy to target", energy_unit(energies[0]), energies))
    columns.append(("cost", Unit(name=unit, size=1.0), [bill.cost for bill in bills]))
    at = np.arange(len(bills), dtype=np.float64)
    panels = []
    for place, (name, of, values) in enumerate(columns):
        best, ends = values[0], np.array(values)
        # A unit of cost may be words: it stands at the axis alone.
        words = [number(value) if name == "cost" else quantity(value, of) for value in values]
        texts = [
            words[rank] + (f"  ({ratio_label(value / best)})" if rank and best else "")
            for rank, value in enumerate(values)
        ]
        bars = [
            bar(rank, values[rank], PALE if rank else BLUE, hover=f"{bill.name}: {texts[rank]}")
            for rank, bill in enumerate(bills)
        ]
        panels.append(
            Panel(
                name="bill",
                x=bar_axis(name, _ROOM * float(ends.max()), of),
                y=rows,
                parts=(*bars, Texts(x=ends, y=at, texts=tuple(texts))),
                shares_y=place > 0 and not narrow,
                height=(0.6 + 0.7 * len(bills)) if narrow else 1.0 + tall * len(bills),
                words="; ".join(
                    f"{bill.name}: {text}" for bill, text in zip(bills, texts, strict=True)
                ),
            )
        )
    return tuple(panels)


def broken(name: str, *, narrow: bool = False) -> str:
    """A name on several lines: what is in brackets on one of its own, or none of them long."""
    if narrow:
        return "\n".join(textwrap.wrap(name, _NARROW))
    return name.replace(" (", "\n(")
