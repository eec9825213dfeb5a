"""The sections of a study planned without pilots: who trains when, training, and the bill."""

from __future__ import annotations

from fedplan.core.plan import Plan
from fedplan.figures import convergence_data, plan_turns_data
from fedplan.figures.convergence import sound_runs
from fedplan.studies.building import Experiment
from fedplan.studies.workflow import Outcome
from fedplan.web.report.parts import (
    Section,
    amount,
    count,
    facts,
    figure,
    joules,
    run_table,
    seconds,
    section,
    share,
    wide_table,
)


def law_sections(experiment: Experiment, outcome: Outcome, plan: Plan) -> list[Section]:
    """Summary, groups, training and bill."""
    sections = [section("Summary", facts(_summary(experiment, outcome, plan)))]
    if plan.groups:
        picture = figure(
            plan_turns_data(plan),
            "Groups that take turns, beside uniform sampling",
            "Each bar is one round, as long as it takes; the bills are expected ones.",
        )
        sections.append(section("Who trains when", _groups(plan), picture))
    if (measured := outcome.measured) is not None and measured.runs:
        parts = [run_table("Runs with the plan", measured.runs)]
        if sound_runs(measured.runs):
            losses = convergence_data(measured.runs, title="Training")
            last = measured.runs[0].setting.participation.averaged
            words = "The loss of the global model after each round."
            if last > 1:
                words = f"The loss of the judged model: the average of the last {last:,}."
            parts.append(figure(losses, "Loss", words))
        sections.append(section("Training", parts))
    return sections


def _summary(experiment: Experiment, outcome: Outcome, plan: Plan) -> list[tuple[str, str]]:
    pairs = [("What was chosen", plan.message)]
    if (measured := outcome.measured) is not None:
        bill, unit = measured.bill, experiment.objective.unit
        paid = f"{count(measured.rounds)} rounds, {seconds(bill.time_s)}, {joules(bill.energy_j)}"
        pairs.append(("What it cost, from the first round", f"{paid}: {amount(bill.cost)} {unit}"))
    return pairs


def _groups(plan: Plan) -> str:
    head = ("group", "devices", "share of data", "share of rounds", "round", "energy", "cost")
    rows = [
        (
            f"{number:,}",
            f"{row.clients:,}",
            share(row.data_share),
            share(row.frequency),
            seconds(row.time_s),
            joules(row.energy_j),
            amount(row.cost),
        )
        for number, row in enumerate(plan.groups, 1)
    ]
    return wide_table("Groups, the fastest first", head, rows)
