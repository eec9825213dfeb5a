"""The figures of what studies have come to."""

from __future__ import annotations

import math

from fedplan.errors import InputError
from fedplan.figures import (
    Figure,
    TurnBill,
    convergence_data,
    study_figure_data,
    sweep_figure_data,
)
from fedplan.figures.turns import MOST_ROUNDS, bill_panels
from fedplan.participation import Turns
from fedplan.studies.compare import Comparison
from fedplan.studies.experiment import Experiment
from fedplan.studies.outcome import Outcome, decisions_of
from fedplan.studies.stored import Recalled
from fedplan.studies.sweep import Sweep


def has_losses(outcome: Outcome) -> bool:
    """Whether there is anything to draw."""
    trained = outcome.measured.runs if outcome.measured else ()
    return any(run.final_loss is not None for run in (*outcome.pilots, *trained))


def outcome_figure(experiment: Experiment, outcome: Outcome) -> Figure:
    """Losses, decisions, who trains when and the bill, as far as the study got."""
    if experiment.stop.target_loss is None:
        raise AssertionError("what was planned has a target")
    measured, expected = outcome.measured, outcome.forecast
    if measured is None:  # the paper's pilots led nowhere, or have not ended
        name = f"{experiment.study.name}: pilots"
        return convergence_data(outcome.pilots, title=name, note=outcome.message)
    return study_figure_data(
        measured.runs,
        experiment.objective,
        name=_title(experiment, outcome),
        target_loss=experiment.stop.target_loss,
        paid=paid_lines(outcome),
        decisions=decisions_of(measured.runs[0]),
        expected_cost=None if expected is None else expected.interval_of(expected.bill.cost),
        groups=outcome.groups,
        order=_first_turns(outcome),
        alternatives=outcome.alternatives,
        note=outcome.message,
    )


def paid_lines(outcome: Outcome) -> list[TurnBill]:
    """The lines of the bill: all in, and what that is made of where pilots are part of it."""
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


def _title(experiment: Experiment, outcome: Outcome) -> str:
    measured, setting = outcome.measured, outcome.setting
    if measured is None or setting is None:
        return experiment.study.name
    who = setting.label if setting.groups is None else f"{setting.groups} groups"
    end = f"{measured.rounds:,.0f} rounds"
    if measured.reached:
        end = f"loss {experiment.stop.target_loss:g} after {end}"
    return f"{experiment.study.name}, course {outcome.course}: {who}, {end}"


def _first_turns(outcome: Outcome) -> list[int]:
    """Which group trains in each of the first rounds: two cycles, or fewer."""
    law = outcome.setting.participation if outcome.setting else None
    if not isinstance(law, Turns):
        return []
    return [law.turn(round_) for round_ in range(1, min(2 * law.cycle, MOST_ROUNDS) + 1)]


def sweep_figure(sweep: Sweep, name: str, note: str = "") -> Figure:
    """What every setting of a grid costs, against the best."""
    return sweep_figure_data(
        {cell.setting: cell.cost for cell in sweep.cells},
        best=None if sweep.best is None else sweep.best.setting,
        reached={cell.setting: f"{cell.reached}/{cell.seeds}" for cell in sweep.cells},
        by_groups=any(cell.groups is not None for cell in sweep.cells),
        name=name,
        note=note,
    )


def comparison_figure(comparison: Comparison, name: str, unit: str) -> Figure | None:
    """The bill of every course that trained, the one they are held against first."""
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
    """Whatever a store has, drawn: a study, a sweep, or else the losses of its runs."""
    experiment, outcome, sweep = found.experiment, found.outcome, found.sweep
    if experiment is not None and outcome is not None and has_losses(outcome):
        return outcome_figure(experiment, outcome)
    if sweep is not None and sweep.cells:
        return sweep_figure(sweep, found.name, sweep.message)
    if not any(run.final_loss is not None for run in found.records):
        raise InputError(f"{found.name} has no run with a loss yet: there is nothing to draw.")
    return convergence_data(found.records, title=found.name, note=found.reason)
