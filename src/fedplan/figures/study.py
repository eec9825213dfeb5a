"""The study figure: losses for what was paid, what was decided, who trained, and the bill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.errors import InputError
from fedplan.figures.axes import count_axis
from fedplan.figures.losses import ROUND, changes, loss_panel, over_cost, seed_lines
from fedplan.figures.spec import Figure, Line, Panel
from fedplan.figures.style import BLUE, PALE
from fedplan.figures.turns import TurnBill, bill_panels, turns_figure_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.core.course import Decision
    from fedplan.core.objective import Objective
    from fedplan.core.plan import Alternative, GroupCost
    from fedplan.core.records import RunRecord
    from fedplan.figures.losses import Curve


def study_figure_data(
    runs: Sequence[RunRecord],
    objective: Objective,
    *,
    name: str,
    target_loss: float,
    paid: Sequence[TurnBill],
    decisions: Sequence[Decision] = (),
    expected_cost: tuple[float, float] | None = None,
    groups: Sequence[GroupCost] = (),
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
    bills = [*paid]
    for other in alternatives:
        found = other.prediction
        bills.append(TurnBill.of(f"{other.name} (expected)", found.expected_rounds, found))
    rows: tuple[tuple[Panel, ...], ...] = (tuple(first),)
    if groups and alternatives:
        turns = turns_figure_data(groups, order, bills, unit=objective.unit)
        rows += turns.rows
    elif bills:
        rows += (bill_panels(bills, objective.unit),)
    height = sum(max(panel.height for panel in row) for row in rows)
    return Figure(title=name, rows=rows, size=(11.5, height + 0.5), note=note)


def _loss_panel(
    runs: Sequence[RunRecord],
    objective: Objective,
    target_loss: float,
    decisions: Sequence[Decision],
    expected_cost: tuple[float, float] | None,
) -> Panel:
    """The loss over what had been paid by then, and where the course changed its mind."""
    over = over_cost(objective)
    curves = [over.curve(run) for run in runs]
    parts = [*_runs(runs, curves), *changes(runs[0], curves[0], decisions)]
    panel = loss_panel(
        over, curves, parts, target_loss=target_loss, foretold=expected_cost, log=True
    )
    return replace(
        panel,
        name="training",
        title="Loss, for what had been paid by then",
        own_legend=True,
        words=f"Training loss over cost, {len(runs)} run{'' if len(runs) == 1 else 's'}, down to "
        f"the target {target_loss:g}.",
    )


def _runs(runs: Sequence[RunRecord], curves: Sequence[Curve]) -> list[Line]:
    """One line for each run, the first in front: the decisions shown are its own."""
    lines = seed_lines(runs[1:], curves[1:], "other seeds", in_front=True) if runs[1:] else []
    return [*lines, *seed_lines(runs[:1], curves[:1], f"seed {runs[0].seed}", in_front=False)]


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
        x=ROUND.axis(longest),
        y=count_axis("local steps E", min(seen), max(seen)),
        parts=tuple(lines),
        words=f"Local steps from round to round, {min(seen):,} to {max(seen):,}.",
    )
