"""Figures of who trains when, by turns or uniformly, and of what each costs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.plan import GroupCost, Plan
from fedplan.errors import InputError
from fedplan.figures.axes import bar_axis
from fedplan.figures.spec import Boxes, Categories, Figure, Line, Panel, Texts, bars
from fedplan.figures.style import BLUE, GREY, GRID, PALE, group_colours
from fedplan.participation.turns import order_of_turns
from fedplan.words import (
    NO_UNIT,
    Unit,
    counted,
    energy_unit,
    number,
    quantity,
    ratio_label,
    seconds,
    time_unit,
)

MOST_ROUNDS = 60  # of the timeline: more cannot be told apart
_MOST_ROWS = 20  # of the timeline; with more groups, those of similar speed share a row
# Times the longest bar: the axis leaves room for what is written at its end.
_ROOM, _BILL_ROOM = 1.55, 2.6
_LETTERS = 21  # in one line of a name
_THICK = 0.74
_EDGE = 0.6  # between rounds; thin, so that the shortest ones stay visible
_PERCENT = Unit(name="%", size=0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBill:
    """What training to the target takes with one setting: expected rounds, and totals."""

    name: str
    rounds: float
    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, name: str, rounds: float, totals: Any) -> TurnBill:
        """The bill of anything that has `time_s`, `energy_j` and `cost`."""
        paid = {key: getattr(totals, key) for key in ("time_s", "energy_j", "cost")}
        return cls(name=name, rounds=rounds, **paid)


def turns_figure_data(
    groups: Sequence[GroupCost],
    order: Sequence[int],
    bills: Sequence[TurnBill],
    *,
    unit: str = "s",
    title: str = "",
    note: str = "",
) -> Figure:
    """Data of the figure: who trains when, what the groups are, and what it all costs.

    order : which of `groups` trains in each of the first rounds: one to two cycles are enough.
    bills : that of taking turns, then those it is compared with; the second one's mean round is
        what uniform sampling is drawn with.
    unit : of the costs.

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
    rank_of = {group: rank for rank, group in enumerate(ranked)}
    fastest_first = [groups[group] for group in ranked]
    # The first group of each row, and where the last row ends.
    cuts = np.append(np.arange(0, len(groups), -(-len(groups) // _MOST_ROWS)), len(groups))
    rows = _rows(cuts, bills[1].name)
    ranks = np.array([rank_of[group] for group in order[:MOST_ROUNDS]])
    sizes = (_sizes(fastest_first, cuts, rows, what) for what in ("devices", "share of data"))
    shown = (
        (_timeline(fastest_first, ranks, cuts, bills[1], rows), *sizes),
        bill_panels(bills, unit),
    )
    return Figure(
        title=title or f"{len(groups)} groups of devices take turns",
        rows=shown,
        size=(11.5, sum(row[0].height for row in shown) + 0.4 + (0.4 if note else 0.0)),
        note=note,
    )


def plan_turns_data(plan: Plan, *, most_bills: int | None = None) -> Figure:
    """The same for a plan by turns, next to its alternatives or the first of them."""
    if plan.prediction is None or not plan.groups:
        raise InputError("a figure of turns is for a plan by turns, and this one is not.")
    priced = {"in turns": plan.prediction} | {o.name: o.prediction for o in plan.alternatives}
    bills = [TurnBill.of(name, one.expected_rounds, one) for name, one in priced.items()]
    count = "1 group" if len(plan.groups) == 1 else f"{len(plan.groups):,} groups take turns"
    title = f"{count}; {counted(plan.prediction.local_steps, 'local step')}"
    bills, order = bills[:most_bills], first_turns(plan)
    return turns_figure_data(plan.groups, order, bills, unit=plan.unit, title=title)


def first_turns(plan: Plan) -> tuple[int, ...]:
    """Which group trains in each of the rounds that the figure shows: two cycles, or fewer."""
    return order_of_turns(plan.visits, min(2 * sum(plan.visits), MOST_ROUNDS))


def _rows(cuts: IntArray, uniform: str) -> Categories:
    """The groups, the fastest on top; then, apart, uniform sampling."""
    ends = zip((cuts[:-1] + 1).tolist(), cuts[1:].tolist(), strict=True)
    names = [f"{low}" if low == high else f"{low} to {high}" for low, high in ends]
    if len(names) > 1:
        names[0], names[-1] = f"fastest  {names[0]}", f"slowest  {names[-1]}"
    return Categories(names=(*names, "", _broken(uniform)), label="group")


def _height(rows: Categories) -> float:
    """Inches of a panel with these rows."""
    return 0.9 + 0.34 * len(rows.names)


def _timeline(
    groups: Sequence[GroupCost],
    ranks: IntArray,
    cuts: IntArray,
    uniform: TurnBill,
    rows: Categories,
) -> Panel:
    """Each round a bar as long as it takes, in the row of its group."""
    at = np.searchsorted(cuts, ranks, "right").astype(np.float64) - 1.0
    ends = np.cumsum([groups[rank].time_s for rank in ranks])
    starts = np.concatenate([[0.0], ends[:-1]])
    span = float(ends[-1])
    unit = time_unit(span)
    colours = group_colours(len(groups))
    rounds = bars(
        at,
        ends,
        starts,
        _THICK,
        colours=tuple(colours[rank] for rank in ranks),
        edge="white",
        edge_width=_EDGE,
        hover=tuple(
            f"round {place:,}, {_words(rank + 1, groups[rank])}"
            for place, rank in enumerate(ranks, 1)
        ),
    )
    length = uniform.time_s / uniform.rounds
    others = _uniform_rounds(length, span, len(rows.names) - 1, uniform.name)
    fits = int(span / length + 1e-9)
    same, shown = f"In the same {quantity(span, unit)}", len(set(ranks.tolist()))
    rest = f" {shown} of {len(groups)} groups have had a turn." if shown < len(groups) else ""
    title = f"{same}: {len(ranks)} rounds in turns, {fits} of {uniform.name}"
    return Panel(
        name="turns",
        title=title,
        x=bar_axis("time from the start", 1.005 * span, unit),
        y=rows,
        parts=(_steps(rounds.right, at), rounds, others),
        width=5.0,
        height=_height(rows),
        words=f"{title}. The slower a group, the longer its rounds.{rest}",
    )


def _steps(ends: FloatArray, at: FloatArray) -> Line:
    """Lines from round to round, which show whose turn comes next."""
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
        colours=tuple(GREY if whole else GRID for whole in is_whole),
        edge="white",
        edge_width=_EDGE,
        hover=f"{name}: {seconds(length)} per round on average",
    )


def _sizes(groups: Sequence[GroupCost], cuts: IntArray, rows: Categories, what: str) -> Panel:
    """How many devices the groups of each row have, or which share of the data."""
    is_share = what != "devices"
    each = np.array([group.data_share if is_share else group.clients for group in groups])
    values = np.add.reduceat(each.astype(float), cuts[:-1])
    texts = tuple(f"{value:.0%}" if is_share else f"{value:,.0f}" for value in values)
    colours = group_colours(len(groups))
    at = np.arange(values.size, dtype=np.float64)
    return Panel(
        x=bar_axis(what, _ROOM * float(values.max()), _PERCENT if is_share else NO_UNIT),
        y=rows,
        parts=(
            bars(
                at,
                values,
                thickness=0.5,
                colours=tuple(colours[middle] for middle in (cuts[:-1] + cuts[1:]) // 2),
            ),
            Texts(x=values, y=at, texts=texts),
        ),
        shares_y=True,
        height=_height(rows),
    )


def bill_panels(bills: Sequence[TurnBill], unit: str) -> tuple[Panel, ...]:
    """Time, energy and cost to the target, a bar for each way; no energy where there is none."""
    names = tuple(f"{_broken(bill.name)}\n{number(bill.rounds)} rounds" for bill in bills)
    first, rows = bills[0], Categories(names=names)
    columns: list[tuple[str, Unit, list[float]]] = [
        ("time to target", time_unit(first.time_s), [bill.time_s for bill in bills]),
        ("energy to target", energy_unit(first.energy_j), [bill.energy_j for bill in bills]),
        ("cost", Unit(name=unit, size=1.0), [bill.cost for bill in bills]),
    ]
    tall = 0.12 + 0.21 * max(name.count("\n") + 1 for name in names)  # inches of a name
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
        words = [f"{bill.name}: {text}" for bill, text in zip(bills, texts, strict=True)]
        hover = tuple(one.replace(": ", f"\n{name}: ") for one in words)
        ends, colours = np.array(values), (BLUE, *[PALE] * (len(bills) - 1))
        panels.append(
            Panel(
                name="bill",
                x=bar_axis(name, _BILL_ROOM * max(values), of),
                y=rows,
                parts=(
                    bars(at, ends, colours=colours, hover=hover),
                    Texts(x=ends, y=at, texts=tuple(texts)),
                ),
                shares_y=bool(panels),
                height=1.0 + tall * len(bills),
                words="; ".join(words),
            )
        )
    return tuple(panels)


def _broken(name: str) -> str:
    """A name on lines that leave room for bars on a phone; what is in brackets stays together."""
    whole = re.sub(r"\(.*?\)", lambda found: found[0].replace(" ", "\0"), name)
    return "\n".join(textwrap.wrap(whole, _LETTERS)).replace("\0", " ")
