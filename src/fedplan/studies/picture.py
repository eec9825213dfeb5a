"""The figure of what a study has come to."""

from __future__ import annotations

from fedplan.figures import StudyFigure, study_figure_data
from fedplan.studies.building import Experiment
from fedplan.studies.workflow import Outcome


def has_losses(outcome: Outcome) -> bool:
    """Whether there is anything to draw."""
    runs = (*outcome.pilots, *(outcome.measured.runs if outcome.measured else ()))
    return any(run.final_loss is not None for run in runs)


def outcome_figure(experiment: Experiment, outcome: Outcome) -> StudyFigure:
    """Pilots and fit, training, cost of other settings and bill, as far as the study got."""
    if experiment.fleet is None or experiment.stop.target_loss is None:
        raise AssertionError("what was planned has devices and a target")
    measured = outcome.measured
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
