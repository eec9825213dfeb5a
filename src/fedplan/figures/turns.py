"""Figures of who trains when, by turns or uniformly, and of what each costs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.plan import GroupCost, Plan
from fedplan.errors import InputError
from fedplan.figures.axes import bar_axis
from fedplan.figures.spec import Boxes, Categories, Figure, Line, Panel, Texts, bars
from fedplan.figures.style import BLUE, GREY, PALE, group_colours
from fedplan.participation.turns import order_of_turns
from fedplan.words import (
    NO_UNIT,
    Unit,
    energy_unit,
    number,
    quantity,
    ratio_label,
    seconds,
    time_unit,
)

MOST_ROUNDS, _FEWER_ROUNDS = 60, 24  # of the timeline, and on a phone: more cannot be told apart
# Times the longest bar: the axis leaves room for what is written at its end.
_ROOM, _BILL_ROOM = 1.55, 2.1
_NARROW = 16  # letters of a line that leave room for bars on a phone
_MOST_NAMED = 20  # groups that each have a name beside their row; of more, some have
_THICK = 0.74
_PERCENT = Unit(name="%", size=0.01)


class _Totals(Protocol):
    """What anything cost: seconds, joules, and both in the objective's unit."""

    @property
    def time_s(self) -> float: ...
    @property
    def energy_j(self) -> float: ...
    @property
    def cost(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBill:
    """What training to the target takes in one way, in expected rounds and in total."""

    name: str
    rounds: float
    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, name: str, rounds: float, totals: _Totals) -> TurnBill:
        """The bill of what cost this much."""
        return cls(
            name=name,
            rounds=rounds,
            time_s=totals.time_s,
            energy_j=totals.energy_j,
            cost=totals.cost,
        )


def turns_figure_data(
    groups: Sequence[GroupCost],
    order: Sequence[int],
    bills: Sequence[TurnBill],
    *,
    unit: str = "s",
    title: str = "",
    note: str = "",
    narrow: bool = False,
) -> Figure:
    """Data of the figure: who trains when, what the groups are, and what it all costs.

    order : which of `groups` trains in each of the first rounds: one to two cycles are enough.
    bills : that of taking turns, then those it is compared with; the second one's mean round is
        what uniform sampling is drawn with.
    unit : of the costs.
    narrow : for a phone: one panel below the other, two bills, and no sizes of groups.

    >>> from types import SimpleNamespace
    >>> groups = [SimpleNamespace(clients=3, data_share=0.7, frequency=0.75, time_s=2.0),
    ...     SimpleNamespace(clients=2, data_share=0.3, frequency=0.25, time_s=9.0)]
    >>> bills = [TurnBill(name="turns", rounds=80, time_s=300.0, energy_j=3.0, cost=300.0),
    ...     TurnBill(name="uniform (K=2)", rounds=60, time_s=480.0, energy_j=4.0, cost=480.0)]
    >>> turns_figure_data(groups, [0, 0, 1, 0], bills).panels[0].title
    'In the same 15 s: 4 rounds in turns, 1 of uniform (K=2)'
    """
    if not groups or not order or len(bills) < 2:
        raise InputError(
            "a figure of turns needs groups, the order of their rounds, and two bills to compare, "
            f"but got {len(groups)} groups, {len(order)} rounds and {len(bills)} bills."
        )
    if not all(0 <= group < len(groups) for group in order):
        raise InputError(f"order must name groups 0 to {len(groups) - 1}, but got {max(order)}.")
    ranked = sorted(range(len(groups)), key=lambda group: groups[group].time_s)
    rows = _rows(len(groups), _broken(bills[1].name, narrow=narrow))
    row_of = {group: row for row, group in enumerate(ranked)}
    fastest_first = [groups[group] for group in ranked]
    places = [row_of[group] for group in order[: _FEWER_ROUNDS if narrow else MOST_ROUNDS]]
    timeline = _timeline(fastest_first, places, bills[1], rows)
    if narrow:
        panels = [timeline, *bill_panels(bills[:2], unit, narrow=True)]
        shown: tuple[tuple[Panel, ...], ...] = tuple((panel,) for panel in panels)
    else:
        sizes = (_sizes(fastest_first, rows, what) for what in ("devices", "share of data"))
        shown = ((timeline, *sizes), bill_panels(bills, unit))
    return Figure(
        title=title or f"{len(groups)} groups of devices take turns",
        rows=shown,
        size=(11.5, sum(row[0].height for row in shown) + 0.4 + (0.4 if note else 0.0)),
        note=note,
    )


def plan_turns_data(plan: Plan, *, narrow: bool = False) -> Figure:
    """The same of a plan by turns, beside its alternatives."""
    if plan.prediction is None or not plan.groups:
        raise InputError("a figure of turns is for a plan by turns, and this one is not.")
    order = first_turns(plan)
    priced = {"in turns": plan.prediction} | {o.name: o.prediction for o in plan.alternatives}
    bills = [TurnBill.of(name, one.expected_rounds, one) for name, one in priced.items()]
    count = "1 group" if len(plan.groups) == 1 else f"{len(plan.groups):,} groups take turns"
    title = f"{count}; {plan.prediction.local_steps:,} local steps"
    return turns_figure_data(plan.groups, order, bills, unit=plan.unit, title=title, narrow=narrow)


def first_turns(plan: Plan) -> tuple[int, ...]:
    """Which group trains in each of the rounds that the figure shows: two cycles, or fewer."""
    return order_of_turns(plan.visits, min(2 * sum(plan.visits), MOST_ROUNDS))


def _rows(count: int, uniform: str) -> Categories:
    """The groups, the fastest on top; then, apart, uniform sampling."""
    names = [f"{rank}" if is_named else "" for rank, is_named in enumerate(_named(count), 1)]
    if count > 1:
        names[0], names[-1] = "fastest  1", f"slowest  {count}"
    return Categories(names=(*names, *[""] * _every(count), uniform), label="group")


def _every(count: int) -> int:
    """How many rows share the height that one with a name has."""
    return -(-count // _MOST_NAMED)


def _named(count: int) -> list[bool]:
    """Which groups have a name and their sizes written beside their row."""
    every = _every(count)
    return [
        rank in (1, count) or (rank % every == 0 and count - rank >= every)
        for rank in range(1, count + 1)
    ]


def _height(rows: Categories) -> float:
    """Inches of a panel with these rows; many rows share what is enough for those with names."""
    return 0.9 + 0.34 * min(len(rows.names), _MOST_NAMED + 2)


def _timeline(
    groups: Sequence[GroupCost], places: Sequence[int], uniform: TurnBill, rows: Categories
) -> Panel:
    """Each round a bar as long as it takes, in the row of its group."""
    ends = np.cumsum([groups[place].time_s for place in places])
    starts = np.concatenate([[0.0], ends[:-1]])
    span, at = float(ends[-1]), np.array(places, dtype=np.float64)
    unit = time_unit(span)
    colours, words = group_colours(len(groups)), [_words(*one) for one in enumerate(groups, 1)]
    rounds = bars(
        at,
        ends,
        starts,
        _THICK,
        colours=tuple(colours[place] for place in places),
        edge="white",
        hover=tuple(f"round {n:,}, {words[place]}" for n, place in enumerate(places, 1)),
    )
    length = uniform.time_s / uniform.rounds
    fits = int(span / length + 1e-9)
    others = _uniform_rounds(length, span, len(rows.names) - 1, uniform.name)
    same = f"In the same {quantity(span, unit)}"
    title = f"{same}: {len(places)} rounds in turns, {fits} of {uniform.name}"
    return Panel(
        name="turns",
        title=title,
        x=bar_axis("time from the start", 1.005 * span, unit),
        y=rows,
        parts=(_steps(ends, at), rounds, others),
        width=5.0,
        height=_height(rows),
        words=f"{title}. The slower a group, the longer its rounds.",
    )


def _steps(ends: FloatArray, at: FloatArray) -> Line:
    """From round to round, so that one sees whose turn comes next."""
    down = np.sign(np.diff(at)) * _THICK / 2
    nothing = np.full(down.size, np.nan)
    times = np.column_stack([ends[:-1], ends[:-1], nothing]).ravel()
    rows = np.column_stack([at[:-1] + down, at[1:] - down, nothing]).ravel()
    return Line(x=times, y=rows, colour="#B4B4B4", width=0.9, layer=-1)


def _words(rank: int, group: GroupCost) -> str:
    return (
        f"group {rank}: {group.clients:,} devices, {group.data_share:.1%} of the data\n"
        f"{seconds(group.time_s)}, in {group.frequency:.1%} of rounds"
    )


def _uniform_rounds(length: float, span: float, row: int, name: str) -> Boxes:
    """Rounds that wait for their slowest device; the one that does not end in time is pale."""
    starts = np.arange(0.0, span * (1.0 - 1e-9), length)
    is_whole = starts + length <= span * (1.0 + 1e-9)
    return bars(
        np.full(starts.size, row),
        np.minimum(starts + length, span),
        starts,
        _THICK,
        colours=tuple(GREY if whole else "#D2D2D2" for whole in is_whole),
        edge="white",
        hover=f"{name}: {seconds(length)} a round on average",
    )


def _sizes(groups: Sequence[GroupCost], rows: Categories, what: str) -> Panel:
    """How many devices each group has, or which share of the data."""
    is_share = what != "devices"
    values = np.array([g.data_share if is_share else float(g.clients) for g in groups])
    unit = _PERCENT if is_share else NO_UNIT
    texts = tuple(
        (f"{value:.0%}" if is_share else f"{value:,.0f}") if is_named else ""
        for value, is_named in zip(values, _named(len(groups)), strict=True)
    )
    at = np.arange(len(groups), dtype=np.float64)
    colours = tuple(group_colours(len(groups)))
    return Panel(
        x=bar_axis(what, _ROOM * float(values.max()), unit),
        y=rows,
        parts=(
            bars(at, values, thickness=0.5, colours=colours),
            Texts(x=values, y=at, texts=texts),
        ),
        shares_y=True,
        height=_height(rows),
    )


def bill_panels(bills: Sequence[TurnBill], unit: str, *, narrow: bool = False) -> tuple[Panel, ...]:
    """Time, energy and cost to the target, a bar for each way; no energy where there is none.

    narrow : each panel is to stand alone, with room for names of several lines.
    """
    names = tuple(
        f"{_broken(bill.name, narrow=narrow)}\n{number(bill.rounds)} rounds" for bill in bills
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
                x=bar_axis(name, _BILL_ROOM * max(values), of),
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


def _broken(name: str, *, narrow: bool = False) -> str:
    """A name on several lines: what is in brackets on one of its own, or none of them long."""
    if narrow:
        return "\n".join(textwrap.wrap(name, _NARROW))
    return name.replace(" (", "\n(")
