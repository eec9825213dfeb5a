"""The figures of studies' outcomes."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedplan.core.objective import Objective
from fedplan.core.records import RunRecord
from fedplan.errors import InputError
from fedplan.figures import (
    Figure,
    Panel,
    TurnBill,
    convergence_data,
    sweep_figure_data,
    turns_figure_data,
)
from fedplan.figures.axes import count_axis
from fedplan.figures.losses import ROUND, changes, loss_panel, over_cost, seed_lines
from fedplan.figures.spec import Line
from fedplan.figures.style import BLUE, PALE
from fedplan.figures.turns import MOST_ROUNDS, bill_panels
from fedplan.participation import Turns
from fedplan.studies.compare import Comparison
from fedplan.studies.outcome import Outcome, Question, decisions_of
from fedplan.studies.stored import Recalled
from fedplan.studies.sweep import Sweep
from fedplan.words import counted


def has_losses(outcome: Outcome) -> bool:
    """Whether there is anything to draw."""
    trained = outcome.measured.runs if outcome.measured else ()
    return any(run.final_loss is not None for run in (*outcome.pilots, *trained))


def outcome_figure(experiment: Question, outcome: Outcome) -> Figure:
    """Losses, decisions, who trains when and the bill, as far as the study got."""
    target, objective = experiment.stop.target_loss, experiment.objective
    measured = outcome.measured
    if target is None:
        raise AssertionError("what was planned has a target")
    if measured is None:  # the paper's pilots led nowhere, or have not ended
        name = f"{experiment.name}: pilots"
        return convergence_data(outcome.pilots, title=name, note=outcome.message)
    runs = [run for run in measured.runs if run.final_loss is not None]
    if not runs:
        raise InputError("a figure of a study needs at least one loss to draw, but got none.")
    first = [_loss_panel(runs, objective, target, outcome)]
    if len({one.local_steps for one in decisions_of(measured.runs[0])}) > 1:
        first.append(_steps_panel(runs))
    bills = paid_lines(outcome) + [
        TurnBill.of(f"{one.name} (expected)", one.prediction.expected_rounds, one.prediction)
        for one in outcome.alternatives
    ]
    rows: tuple[tuple[Panel, ...], ...] = (tuple(first),)
    if outcome.groups and outcome.alternatives:
        order = _first_turns(outcome)
        rows += turns_figure_data(outcome.groups, order, bills, unit=objective.unit).rows
    elif bills:
        rows += (bill_panels(bills, objective.unit),)
    height = sum(max(panel.height for panel in row) for row in rows)
    title = _title(experiment, outcome)
    return Figure(title=title, rows=rows, size=(11.5, height + 0.5), note=outcome.message)


def _loss_panel(
    runs: Sequence[RunRecord], objective: Objective, target_loss: float, outcome: Outcome
) -> Panel:
    """The loss over the cost so far, with marks where the course re-planned."""
    over, told = over_cost(objective), outcome.forecast
    curves = [over.curve(run) for run in runs]
    # The first run is in front: the decisions shown are its own.
    lines = [
        *seed_lines(runs[1:], curves[1:], "other seeds", in_front=True),
        *seed_lines(runs[:1], curves[:1], f"seed {runs[0].seed}", in_front=False),
        *changes(runs[0], curves[0], decisions_of(runs[0])),
    ]
    panel = loss_panel(
        over,
        curves,
        lines,
        target_loss=target_loss,
        predicted=None if told is None else told.interval_of(told.bill.cost),
    )
    return replace(
        panel,
        name="training",
        title="Loss, for what had been paid by then",
        own_legend=True,
        words=f"Training loss over cost, {len(runs)} run{'' if len(runs) == 1 else 's'}, down to "
        f"the target {target_loss:g}.",
    )


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


def paid_lines(outcome: Outcome) -> list[TurnBill]:
    """The lines of the bill: all in, and its parts if there were pilots."""
    measured, all_in = outcome.measured, outcome.all_in
    if measured is None or all_in is None:
        return []
    if not outcome.pilots:
        return [TurnBill.of("trained, all in", measured.rounds, all_in)]
    piloted = sum(run.num_rounds for run in outcome.pilots)
    return [
        TurnBill.of("all in", piloted + measured.rounds, all_in),
        TurnBill.of("pilots", piloted, outcome.pilots_bill),
        TurnBill.of("training", measured.rounds, measured.bill),
    ]


def _title(experiment: Question, outcome: Outcome) -> str:
    measured, setting = outcome.measured, outcome.setting
    if measured is None or setting is None:
        return experiment.name
    who = setting.label if setting.groups is None else counted(setting.groups, "group")
    end = counted(measured.rounds, "round")
    if measured.reached:
        end = f"loss {experiment.stop.target_loss:g} after {end}"
    return f"{experiment.name}, course {outcome.course}: {who}, {end}"


def _first_turns(outcome: Outcome) -> list[int]:
    """Which group trains in each of the first rounds: two cycles, or fewer."""
    law = outcome.setting.participation if outcome.setting else None
    if not isinstance(law, Turns):
        return []
    return [law.turn(round_) for round_ in range(1, min(2 * law.cycle, MOST_ROUNDS) + 1)]


def sweep_figure(sweep: Sweep, name: str, note: str = "") -> Figure:
    """The cost of every setting of a grid, relative to the best."""
    return sweep_figure_data(
        {cell.setting: cell.cost for cell in sweep.cells},
        best=None if sweep.best is None else sweep.best.setting,
        reached={cell.setting: f"{cell.reached}/{cell.seeds}" for cell in sweep.cells},
        by_groups=any(cell.groups is not None for cell in sweep.cells),
        name=name,
        note=note,
    )


def comparison_figure(comparison: Comparison, name: str, unit: str) -> Figure | None:
    """The bill of every course that trained, beginning with the reference."""
    rows = sorted(comparison.rows, key=lambda row: row.course != comparison.against)
    bills = [
        TurnBill.of(
            row.course if row.arrived else f"{row.course} ({row.reached} of {row.seeds} arrived)",
            row.rounds,
            row,
        )
        for row in rows
        if math.isfinite(row.cost)
    ]
    if not bills:
        return None
    panels = bill_panels(bills, unit)
    title = f"{name}: all in, from the first round on"
    return Figure(title=title, rows=(panels,), size=(11.5, panels[0].height + 0.5))


def recalled_figure(found: Recalled) -> Figure:
    """The figure of a stored study or sweep, or else the losses of its runs."""
    question, outcome, sweep = found.question, found.outcome, found.sweep
    if question is not None and outcome is not None and has_losses(outcome):
        return outcome_figure(question, outcome)
    if sweep is not None and sweep.cells:
        return sweep_figure(sweep, found.entry.name, sweep.message)
    if not any(run.final_loss is not None for run in found.records):
        raise InputError(
            f"{found.entry.name} has no run with a loss yet: there is nothing to draw."
        )
    return convergence_data(found.records, title=found.entry.name, note=found.reason)
