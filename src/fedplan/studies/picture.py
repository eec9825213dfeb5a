"""The figures of what studies have come to."""

from __future__ import annotations

from fedplan.errors import InputError
from fedplan.figures import (
    Figure,
    convergence_data,
    plan_turns_data,
    study_figure_data,
    sweep_figure_data,
)
from fedplan.figures.convergence import sound_runs
from fedplan.studies.building import Experiment
from fedplan.studies.recalling import Recalled
from fedplan.studies.sweep import Sweep
from fedplan.studies.workflow import Outcome


def has_losses(outcome: Outcome) -> bool:
    """Whether there is anything to draw."""
    trained = outcome.measured.runs if outcome.measured else ()
    if outcome.plan is not None:
        return bool(outcome.plan.groups or sound_runs(trained))
    runs = (*outcome.pilots, *trained)
    return any(run.final_loss is not None for run in runs)


def outcome_figure(experiment: Experiment, outcome: Outcome) -> Figure:
    """Pilots and fit, training, cost of other settings and bill, as far as the study got."""
    if experiment.fleet is None or experiment.stop.target_loss is None:
        raise AssertionError("what was planned has devices and a target")
    measured = outcome.measured
    if outcome.plan is not None:
        if outcome.plan.groups:
            return plan_turns_data(outcome.plan)
        runs = () if measured is None else measured.runs
        return convergence_data(runs, title=experiment.study.name, note=outcome.message)
    return study_figure_data(
        experiment.fleet,
        experiment.objective,
        name=experiment.study.name,
        target_loss=experiment.stop.target_loss,
        constraints=experiment.constraints,
        pilots=outcome.pilots,
        pilots_bill=outcome.pilots_bill,
        descent=outcome.descent,
        setting=outcome.setting,
        forecast=outcome.forecast,
        runs=() if measured is None else measured.runs,
        training_bill=None if measured is None else measured.bill,
        note=outcome.message,
    )


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
