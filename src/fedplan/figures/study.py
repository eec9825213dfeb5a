"""The study figure: losses for what was paid, what was decided, who trained, and the bill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.losses import seed_lines
from fedplan.figures.spec import Figure, Interval, Line, Panel, Part, Points, rule
from fedplan.figures.style import BLUE, INK, ORANGE, PALE, Look
from fedplan.figures.turn_bills import TurnBill, bill_panels
from fedplan.figures.turns import turns_figure_data
from fedplan.figures.units import (
    NO_UNIT,
    Axis,
    bar_axis,
    count_axis,
    fit_axis,
    round_axis,
    time_unit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.core.course import Decision
    from fedplan.core.objective import Objective
    from fedplan.core.plan import Alternative
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Curve
    from fedplan.figures.turns import Group

_FURTHEST = 2.0  # times what was paid: how far what was foretold may stretch the axis


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
class Paid:
    """One line of the bill: what it was for, its rounds, and what it cost."""

    name: str
    rounds: float
    totals: Totals

    @property
    def row(self) -> TurnBill:
        """As the bars have it."""
        paid = self.totals
        return TurnBill(
            name=self.name,
            rounds=self.rounds,
            time_s=paid.time_s,
            energy_j=paid.energy_j,
            cost=paid.cost,
        )


def study_figure_data(
    runs: Sequence[RunRecord],
    objective: Objective,
    *,
    name: str,
    target_loss: float,
    paid: Sequence[Paid],
    decisions: Sequence[Decision] = (),
    expected_cost: tuple[float, float] | None = None,
    groups: Sequence[Group] = (),
    order: Sequence[int] = (),
    alternatives: Sequence[Alternative] = (),
    note: str = "",
) -> Figure:
    """Data of the study figure; what the study did not come to has no panel.

    name : of the study, for the title.
    paid : the lines of the bill, everything together first.
    decisions : of the first run, where its course made any.
    expected_cost : between which two costs the rounds foretold the end.
    groups, order : those that took turns, and whose turn the first rounds were.
    alternatives : what other settings would have cost.
    """
    drawable = [run for run in runs if run.final_loss is not None]
    if not drawable:
        raise InputError("a figure of a study needs at least one loss to draw, but got none.")
    first = [_loss_panel(drawable, objective, target_loss, decisions, expected_cost)]
    if len({one.local_steps for one in decisions}) > 1:
        first.append(_steps_panel(drawable))
    bills = [line.row for line in paid] + [_expected(one) for one in alternatives]
    rows: tuple[tuple[Panel, ...], ...] = (tuple(first),)
    if groups and alternatives:
        turns = turns_figure_data(groups, order, bills, unit=objective.unit)
        rows += turns.rows
    elif bills:
        rows += (bill_panels(bills, objective.unit),)
    height = sum(max(panel.height for panel in row) for row in rows)
    return Figure(title=name, rows=rows, size=(11.5, height + 0.5), note=note)


def _expected(other: Alternative) -> TurnBill:
    found = other.prediction
    return TurnBill(
        name=f"{other.name} (expected)",
        rounds=found.expected_rounds,
        time_s=found.time_s,
        energy_j=found.energy_j,
        cost=found.cost,
    )


def _loss_panel(
    runs: Sequence[RunRecord],
    objective: Objective,
    target_loss: float,
    decisions: Sequence[Decision],
    expected_cost: tuple[float, float] | None,
) -> Panel:
    """The loss over what had been paid by then, and where the course changed its mind."""
    curves = [_over_cost(run, objective) for run in runs]
    longest = max(float(at[-1]) for at, _ in curves)
    ends = (expected_cost or (0.0, 0.0))[1]
    high = 1.02 * max(longest, min(ends, _FURTHEST * longest))
    x = _cost_axis(objective.unit, high)
    losses = [float(loss) for _, seen in curves for loss in seen]
    parts: list[Part] = [*_runs(runs, curves), rule(x, target_loss, f"target {target_loss:g}")]
    if expected_cost is not None:
        low, top = (min(end, 2 * high) for end in expected_cost)  # it is seen to go on
        foretold = "the end, as foretold"
        parts.append(
            Interval(
                low=low, high=top, at=target_loss, colour=ORANGE, width=3.5, name=foretold, layer=3
            )
        )
    parts += _changes(runs[0], curves[0], decisions)
    return Panel(
        name="training",
        title="Loss, for what had been paid by then",
        x=x,
        y=fit_axis("training loss", NO_UNIT, [*losses, target_loss], log=True),
        parts=tuple(parts),
        legend="inside",
        words=f"Training loss over cost, {len(runs)} run{'' if len(runs) == 1 else 's'}, down to "
        f"the target {target_loss:g}.",
    )


def _cost_axis(unit: str, high: float) -> Axis:
    if unit == "s":
        return bar_axis("time", high, time_unit(high))
    return bar_axis(f"cost ({unit})", high)


def _over_cost(run: RunRecord, objective: Objective) -> Curve:
    """What had been paid at each evaluation, and the loss there."""
    each = [objective.of_round(one.seconds, one.joules, len(one.cohort)) for one in run.rounds]
    at = np.cumsum(np.array(each, dtype=np.float64))
    losses = np.array([one.loss for one in run.rounds], dtype=np.float64)  # None is NaN
    found = ~np.isnan(losses)
    return at[found], losses[found]


def _runs(runs: Sequence[RunRecord], curves: Sequence[Curve]) -> list[Line]:
    """One line for each run, the first in front: the decisions shown are its own."""
    lines = seed_lines(runs[1:], curves[1:], "other seeds", in_front=True) if runs[1:] else []
    return [*lines, *seed_lines(runs[:1], curves[:1], f"seed {runs[0].seed}", in_front=False)]


def _changes(run: RunRecord, curve: Curve, decisions: Sequence[Decision]) -> list[Points]:
    """Where a run went on with another setting: at the loss after the round before."""
    evaluated = [one.round for one in run.rounds if one.loss is not None]
    at, losses = curve
    found = []
    for decision in decisions:
        place = int(np.searchsorted(evaluated, decision.round)) - 1
        if decision.round > 1 and place >= 0:
            who = f"{decision.groups} groups, " if decision.groups else ""
            words = f"from round {decision.round:,}: {who}{decision.local_steps:,} local steps"
            found.append((float(at[place]), float(losses[place]), words))
    if not found:
        return []
    xs, ys, words_of = zip(*found, strict=True)
    return [
        Points(
            x=np.array(xs),
            y=np.array(ys),
            look=Look(colour=INK, symbol="diamond", size=6.0, layer=4),
            layer=4,
            name="re-planned",
            hover=words_of,
        )
    ]


def _steps_panel(runs: Sequence[RunRecord]) -> Panel:
    """Local steps of every round."""
    lines, longest = [], 1
    seen: list[int] = []
    for place, run in reversed(list(enumerate(runs))):
        used = [(one.round, one.setting.local_steps) for one in run.rounds if one.setting]
        if not used:
            continue
        rounds, steps = np.array(used, dtype=np.float64).T
        lines.append(
            Line(
                x=np.repeat(rounds, 2) - np.tile([1.0, 0.0], rounds.size),
                y=np.repeat(steps, 2),
                colour=PALE if place else BLUE,
                width=0.8 if place else 2.0,
                hover=f"seed {run.seed}, round {{x}}: {{y}} local steps",
            )
        )
        seen += (int(steps.min()), int(steps.max()))
        longest = max(longest, run.num_rounds)
    return Panel(
        name="steps",
        title="Local steps, as the rounds told",
        x=round_axis(float(longest)),
        y=count_axis("local steps E", min(seen), max(seen)),
        parts=tuple(lines),
        words=f"Local steps from round to round, {min(seen):,} to {max(seen):,}.",
    )
