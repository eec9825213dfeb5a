"""Bills beside each other: what training in one way takes, and what other ways would take."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fedplan.figures.axes import bar_axis
from fedplan.figures.spec import Categories, Panel, Texts, bars
from fedplan.figures.style import BLUE, PALE
from fedplan.words import Unit, energy_unit, number, quantity, ratio_label, time_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOM = 2.1  # times the longest bar: the axis leaves room for what is written at its end
_NARROW = 16  # letters of a line that leave room for bars on a phone


class Totals(Protocol):
    """What anything cost."""

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
class TurnBill:
    """What training to the target takes in one way, in expected rounds and in total."""

    name: str
    rounds: float
    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, name: str, rounds: float, totals: Totals) -> TurnBill:
        """The bill of what cost this much."""
        return cls(
            name=name,
            rounds=rounds,
            time_s=totals.time_s,
            energy_j=totals.energy_j,
            cost=totals.cost,
        )


def bill_panels(bills: Sequence[TurnBill], unit: str, *, narrow: bool = False) -> tuple[Panel, ...]:
    """Time, energy and cost to the target, a bar for each way; no energy where there is none.

    narrow : each panel is to stand alone, with room for names of several lines.
    """
    names = tuple(
        f"{broken(bill.name, narrow=narrow)}\n{number(bill.rounds)} rounds" for bill in bills
    )
    first, rows = bills[0], Categories(names=names)
    columns: list[tuple[str, Unit, list[float]]] = [
        ("time to target", time_unit(first.time_s), [bill.time_s for bill in bills]),
        ("energy to target", energy_unit(first.energy_j), [bill.energy_j for bill in bills]),
        ("cost", Unit(name=unit, size=1.0), [bill.cost for bill in bills]),
    ]
    tall = max(0.4, 0.19 * max(name.count("\n") + 1 for name in names))  # inches of a name
    height = (0.6 + 0.7 * len(bills)) if narrow else 1.0 + tall * len(bills)
    at = np.arange(len(bills), dtype=np.float64)
    panels: list[Panel] = []
    for name, of, values in columns:
        if name == "energy to target" and not any(values):
            continue
        # A unit of cost may be words: it stands at the axis alone.
        texts = [number(value) if name == "cost" else quantity(value, of) for value in values]
        if best := values[0]:
            texts[1:] = [
                f"{text}  ({ratio_label(value / best)})"
                for text, value in zip(texts[1:], values[1:], strict=True)
            ]
        words = tuple(f"{bill.name}: {text}" for bill, text in zip(bills, texts, strict=True))
        ends, colours = np.array(values), (BLUE, *[PALE] * (len(bills) - 1))
        panels.append(
            Panel(
                name="bill",
                x=bar_axis(name, _ROOM * max(values), of),
                y=rows,
                parts=(
                    bars(at, ends, colours=colours, hover=words),
                    Texts(x=ends, y=at, texts=tuple(texts)),
                ),
                shares_y=bool(panels) and not narrow,
                height=height,
                words="; ".join(words),
            )
        )
    return tuple(panels)


def broken(name: str, *, narrow: bool = False) -> str:
    """A name on several lines: what is in brackets on one of its own, or none of them long."""
    if narrow:
        return "\n".join(textwrap.wrap(name, _NARROW))
    return name.replace(" (", "\n(")
