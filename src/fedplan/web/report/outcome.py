"""The report's sections on a run: summary, decisions, who trains when, training, bill."""

from collections.abc import Iterable
from dataclasses import asdict

from fedplan.figures import alone, convergence_data
from fedplan.figures.losses import sound_runs
from fedplan.planning.explain import group_table
from fedplan.prices_and_limits import PRICES, STUDY_LIMITS, kebab
from fedplan.studies.accounts import bill_table, decision_table, run_table
from fedplan.studies.figures import has_losses, outcome_figure
from fedplan.studies.keys import ObjectiveTable
from fedplan.studies.outcome import Outcome, Question
from fedplan.studies.stored import Recalled
from fedplan.web.report.page import Facts, Part, Picture, Sections
from fedplan.web.report.runs import device_table
from fedplan.words import amount, joules, seconds, share

_NOT_BEGUN = "Training was not begun."


def outcome_sections(
    found: Recalled, question: Question, outcome: Outcome
) -> tuple[str, str, Sections]:
    """Status, message and sections."""
    shown = _pictures(question, outcome)
    decided: Part = _NOT_BEGUN
    trained: Part = _NOT_BEGUN
    if (measured := outcome.measured) is not None:
        decided = decision_table(measured.runs[0], in_full=True)
        trained = run_table(measured.runs, title="Training runs")
    sections: Sections = {
        "Summary": [_tiles(found, outcome), Facts({"What was asked": _asked(found, question)})],
        "What was decided": [decided, shown["steps"]],
    }
    if outcome.groups:
        title = "Groups at the beginning, the fastest first"
        sections["Who trains when"] = [group_table(outcome.groups, title=title), shown["turns"]]
    if outcome.pilots:
        # A pilot ends at a loss of its own, above the study's.
        pilots = run_table(outcome.pilots, title="The paper's pilots", target="loss")
        sections["Pilots"] = [pilots, _pilot_losses(outcome)]
    bill = bill_table(question, outcome)
    sections["Training"] = [trained, shown["training"]]
    sections["The bill"] = [bill if bill.rows else "Nothing was trained.", shown["bill"]]
    if found.devices is not None:
        sections["Devices"] = [device_table(found.devices)]
    return outcome.status, outcome.message, sections


def _tiles(found: Recalled, outcome: Outcome) -> Facts:
    tiles = {}
    if (setting := outcome.setting) is not None:
        if setting.groups is None:
            clients = f"{setting.clients_per_round:,} of {_num_clients(found):,}"
            tiles["clients per round (K)"] = clients
        else:
            tiles["groups of devices that take turns"] = f"{setting.groups:,}"
    measured, all_in = outcome.measured, outcome.all_in
    if measured is not None and all_in is not None and measured.reached:
        tiles["rounds to the target"] = amount(measured.rounds)
        tiles["all in, from the first round on"] = seconds(all_in.time_s)
        if all_in.energy_j:
            tiles["of the devices"] = joules(all_in.energy_j)
    if (part := outcome.pilots_share) is not None and outcome.pilots:
        tiles["of one training is what the pilots cost"] = share(part)
    return Facts(tiles, as_tiles=True)


def _num_clients(found: Recalled) -> int:
    if found.experiment is not None:
        return found.experiment.num_clients
    return len(found.devices.names) if found.devices else 0


def _asked(found: Recalled, question: Question) -> str:
    experiment = found.experiment
    if experiment is None:
        given = asdict(question.constraints).items()
        limits = ", ".join(f"{kebab(name)} {value:g}" for name, value in given if value)
        return (
            f"Bring the app's model on {_num_clients(found):,} nodes to a loss of "
            f"{question.stop.target_loss:g} within {question.stop.max_rounds:,} rounds, at the "
            f"lowest cost in {question.objective.unit}{', keeping to ' + limits if limits else ''}."
        )
    study, table = experiment.study, experiment.study.objective
    where = f"{experiment.num_clients:,} simulated clients"
    if experiment.federation is not None:
        where = f"the {experiment.num_clients:,} nodes of the federation {experiment.federation}"
    goal = "in the least time"
    if prices := _given(table, PRICES):
        goal = f"at the lowest cost in {experiment.objective.unit} ({prices})"
    elif weight := table.energy_weight:
        goal = f"at the lowest cost in seconds and joules (energy weight {weight:g})"
    limits = _given(table, STUDY_LIMITS)
    return (
        f"Bring {experiment.data_name}, learnt by {study.task.model} on {where}, to a training "
        f"loss of {experiment.stop.target_loss:g} within {experiment.stop.max_rounds:,} rounds, "
        f"{goal}{', keeping to ' + limits if limits else ''}."
    )


def _given(table: ObjectiveTable, names: Iterable[str]) -> str:
    """Those of these keys that have a value, with their values."""
    values = {kebab(name): getattr(table, name) for name in names}
    return ", ".join(f"{name} {value:g}" for name, value in values.items() if value)


def _pilot_losses(outcome: Outcome) -> Part:
    if not sound_runs(outcome.pilots):
        return None
    data = convergence_data(outcome.pilots, title="Pilots")
    return Picture(data, "Pilots", "Training loss of every pilot.")


def _pictures(question: Question, outcome: Outcome) -> dict[str, Part]:
    """The figures there are, by the section they stand in."""
    shown: dict[str, Part] = dict.fromkeys(("training", "steps", "turns", "bill"))
    if outcome.measured is None or not has_losses(outcome):
        return shown
    # Of several bills the last is kept, which has the cost; the table has the others.
    for panel in outcome_figure(question, outcome).panels:
        title = panel.title or f"The bill, {panel.x.label}"
        words = panel.words.removeprefix(f"{title}. ").rstrip(".")
        shown[panel.name] = Picture(alone(panel), title, f"{words}.")
    return shown
