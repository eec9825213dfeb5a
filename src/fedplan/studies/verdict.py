"""Verdict: how the training of a study ended, in words."""

import math
from collections.abc import Sequence
from itertools import groupby

from fedplan.core.records import RunRecord
from fedplan.studies.experiment import Experiment
from fedplan.studies.outcome import (
    Bill,
    Forecast,
    Measured,
    Question,
    Status,
    decisions_of,
    runs_within,
)
from fedplan.words import amount, counted, joules, number, seconds

_LIMITS = {
    "deadline_s": ("deadline", "s"),
    "energy_budget_j": ("energy budget", "J"),
    "max_rounds": ("limit", "rounds"),
}
_MOST_STEPS = 6  # numbers of local steps that are written out


def verdict(
    experiment: Experiment, measured: Measured, all_in: Bill, forecast: Forecast | None
) -> tuple[Status, str]:
    """How training ended, and what to change if it did not end well."""
    if not measured.reached:
        return _failure(experiment, measured.runs)
    return arrived(experiment, measured, all_in, forecast)


def arrived(
    experiment: Question, measured: Measured, all_in: Bill, forecast: Forecast | None
) -> tuple[Status, str]:
    """How a training ended that reached its target with at least one seed."""
    runs = measured.runs
    target = f"loss {experiment.stop.target_loss:g}"
    if not any(run.num_rounds for run in runs):
        return "nothing to learn", (
            f"The loss before training is {runs[0].final_loss:.4g}, and the target "
            f"{experiment.stop.target_loss:g} is no lower. Lower target-loss."
        )
    if len(runs) == 1:
        words = f"Reached {target} after {counted(measured.rounds, 'round')}"
    else:
        words = (
            f"{measured.reached} of {len(runs)} runs reached {target}, after "
            f"{measured.rounds:,.0f} rounds on average"
        )
    words += f": {course_words(runs[0])}. {_paid(experiment, all_in)}"
    words += _as_predicted(measured, forecast) + _limits_kept(experiment, measured)
    lost = next((run for run in runs if run.status == "hopeless"), None)
    if lost is not None:
        words += f" Seed {lost.seed} gave up: {lost.message}"
    return ("reached" if measured.reached == len(runs) else "not reached"), words


def course_words(run: RunRecord) -> str:
    """Who trained, and with how many local steps from first to last.

    >>> from fedplan.participation import uniform
    >>> course_words(RunRecord(setting=uniform(5, 20), seed=0, status="target", rounds=()))
    '5 clients per round, 20 local steps'
    """
    made = decisions_of(run)
    law = made[-1].participation  # real devices may be measured by another one first
    settled = [one for one in made if one.participation == law]
    if settled[0].groups is None:
        who = f"{counted(settled[0].clients_per_round or 0, 'client')} per round"
        if law != "uniform":
            who += f" ({law})"
    else:
        counts = [f"{groups:,}" for groups, _ in groupby(one.groups for one in settled) if groups]
        who = f"{_arrows(counts)} group{'' if counts == ['1'] else 's took turns'}"
    steps = [f"{steps:,}" for steps, _ in groupby(one.local_steps for one in made)]
    if len(steps) == 1:
        return f"{who}, {counted(made[0].local_steps, 'local step')}"
    return f"{who}; local steps went {_arrows(steps)}"


def _arrows(values: Sequence[str]) -> str:
    if len(values) > _MOST_STEPS:
        values = [*values[: _MOST_STEPS - 2], "...", values[-1]]
    return " -> ".join(values)


def _paid(experiment: Question, bill: Bill) -> str:
    """The whole bill: seconds and joules, and the cost if that is another number."""
    totals = seconds(bill.time_s)
    if bill.energy_j:
        totals += f" and {joules(bill.energy_j)}"
    unit = experiment.objective.unit
    cost = "" if unit == "s" else f", or {number(bill.cost)} {unit}"
    return f"All in, from the first round on, it took {totals}{cost}."


def _as_predicted(measured: Measured, forecast: Forecast | None) -> str:
    if forecast is None:
        return ""
    low, high = forecast.interval
    expected = f" By round {forecast.round:,.0f} it expected {low:,.0f} to {high:,.0f} rounds, and "
    if low <= measured.rounds <= high:
        return f"{expected}was right."
    return f"{expected}took {'fewer' if measured.rounds < low else 'more'}."


def _failure(experiment: Experiment, runs: Sequence[RunRecord]) -> tuple[Status, str]:
    stop, endings = experiment.stop, {run.status for run in runs}
    if endings == {"diverged"}:
        rate = experiment.study.training.learning_rate
        return "diverged", f"Training diverged: lower learning-rate (now {rate:g})."
    lost = next((run for run in runs if run.status == "hopeless"), None)
    if lost is not None:
        after = f"{counted(lost.num_rounds, 'round')}: {course_words(lost)}. {lost.message}"
        return "hopeless", f"Training was given up after {after}"
    lowest = min(run.final_loss or math.inf for run in runs)
    limits = {
        "rounds": f" in {counted(stop.max_rounds, 'round')}",
        "time": f" in {stop.max_time_s:,.6g} s (max-time-s)",
        "energy": f" with {stop.max_energy_j:,.6g} J (max-energy-j)",
    }
    ended = [status for status in limits if status in endings]
    return "not reached", (
        f"Training did not reach loss {stop.target_loss:g}"
        f"{' or'.join(limits[status] for status in ended)}: {course_words(runs[0])}; the best run "
        f"ended at {lowest:.4g}. Allow more {' and '.join(ended) or 'rounds'}, or raise "
        "target-loss."
    )


def _limits_kept(experiment: Question, measured: Measured) -> str:
    """How many runs kept each limit that the study has."""
    sentences = []
    for name, kept in runs_within(experiment.constraints, measured.runs).items():
        what, unit = _LIMITS[name]
        limit = f"the {what} of {amount(getattr(experiment.constraints, name))} {unit}"
        if kept == len(measured.runs):
            sentences.append(f" {'Each' if kept > 1 else 'It'} kept {limit}.")
        else:
            sentences.append(f" {kept} of {len(measured.runs)} kept {limit}.")
    return "".join(sentences)
