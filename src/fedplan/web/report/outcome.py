"""The sections of a study that was run: summary, decisions, who trains when, training, bill."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fedplan.core.course import Decision
from fedplan.core.plan import GroupCost
from fedplan.figures import alone, convergence_data
from fedplan.figures.convergence import sound_runs
from fedplan.figures.turn_bills import Totals
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import has_losses, outcome_figure, paid_lines
from fedplan.studies.keys import LIMIT_KEYS, PRICE_KEYS, ObjectiveTable
from fedplan.studies.outcome import Bill, Outcome, decisions_of
from fedplan.studies.verdict import course_words
from fedplan.web.report.parts import (
    Facts,
    Part,
    Picture,
    Sections,
    Table,
    amount,
    count,
    joules,
    listing,
    run_table,
    seconds,
    share,
    span,
    whole,
)

_NOT_BEGUN = "Training was not begun."


def outcome_sections(experiment: Experiment, outcome: Outcome) -> tuple[str, str, Sections]:
    """Status, message and sections."""
    shown = _pictures(experiment, outcome)
    sections: Sections = {
        "Summary": [_tiles(experiment, outcome), _answers(experiment, outcome)],
        "What was decided": [_decided(outcome), shown["steps"]],
    }
    if outcome.groups:
        sections["Who trains when"] = [_groups(outcome), shown["turns"]]
    if outcome.pilots:
        # A pilot ends at a loss of its own, above the study's.
        pilots = run_table("The paper's pilots", outcome.pilots, target="loss")
        sections["Pilots"] = [pilots, _pilot_losses(outcome)]
    sections["Training"] = [*_training(experiment, outcome), shown["training"]]
    sections["The bill"] = [_bill(experiment, outcome), shown["bill"]]
    return outcome.status, outcome.message, sections


def _tiles(experiment: Experiment, outcome: Outcome) -> Facts:
    tiles = {}
    if (setting := outcome.setting) is not None:
        if setting.groups is None:
            clients = f"{setting.clients_per_round:,} of {experiment.num_clients:,}"
            tiles["clients per round (K)"] = clients
        else:
            tiles["groups of devices that take turns"] = f"{setting.groups:,}"
    measured, all_in = outcome.measured, outcome.all_in
    if measured is not None and all_in is not None and measured.reached:
        tiles["rounds to the target"] = count(measured.rounds)
        tiles["all in, from the first round on"] = seconds(all_in.time_s)
        if all_in.energy_j:
            tiles["of the devices"] = joules(all_in.energy_j)
    if (part := outcome.pilots_share) is not None and outcome.pilots:
        tiles["of one training is what the pilots cost"] = share(part)
    return Facts(tiles, as_tiles=True)


def _answers(experiment: Experiment, outcome: Outcome) -> Facts:
    return Facts(
        {
            "What was asked": _asked(experiment),
            "What was done": _done(outcome),
            "What it cost": _paid(experiment, outcome),
            "Was the forecast right": _right(outcome),
        }
    )


def _asked(experiment: Experiment) -> str:
    study, table = experiment.study, experiment.study.objective
    where = f"{experiment.num_clients:,} simulated clients"
    if experiment.federation is not None:
        where = f"the {experiment.num_clients:,} nodes of the federation {experiment.federation}"
    goal = "in the least time"
    if prices := _given(table, PRICE_KEYS):
        goal = f"at the lowest cost in {experiment.objective.unit} ({prices})"
    elif weight := table.energy_weight:
        goal = f"at the lowest cost in seconds and joules (energy weight {weight:g})"
    limits = _given(table, LIMIT_KEYS)
    return (
        f"Bring {experiment.data_name}, learnt by {study.task.model} on {where}, to a training "
        f"loss of {experiment.stop.target_loss:g} within {experiment.stop.max_rounds:,} rounds, "
        f"{goal}{', keeping to ' + limits if limits else ''}."
    )


def _given(table: ObjectiveTable, names: Iterable[str]) -> str:
    """Those of these keys that have a value, with their values."""
    values = {name.replace("_", "-"): getattr(table, name) for name in names}
    return ", ".join(f"{name} {value:g}" for name, value in values.items() if value)


def _done(outcome: Outcome) -> str:
    if outcome.setting is None or outcome.measured is None:
        begun = "has not begun yet" if outcome.status == "unfinished" else "was not begun"
        return f"Training {begun}: {outcome.message}"
    words = course_words(outcome.measured.runs[0])
    return f"Course {outcome.course}: {words}. {outcome.why}".rstrip()


def _paid(experiment: Experiment, outcome: Outcome) -> str:
    unit = experiment.objective.unit
    measured, all_in = outcome.measured, outcome.all_in
    if measured is None or all_in is None:
        if not outcome.pilots:
            return "Nothing: nothing was trained."
        return f"The pilots: {_totals(outcome.pilots_bill)}. Training was not begun."
    over = "those that reached the target" if measured.reached else "all, for none has arrived"
    words = f"{_totals(all_in)}, or {amount(all_in.cost)} {unit}, every round from the first on"
    if outcome.pilots:
        words += f"; {_totals(outcome.pilots_bill)} of it are the pilots'"
    return f"{words}. Of a training it is the average over {over}."


def _totals(bill: Bill) -> str:
    energy = f" and {joules(bill.energy_j)}" if bill.energy_j else ""
    return seconds(bill.time_s) + energy


def _right(outcome: Outcome) -> str:
    expected, measured = outcome.forecast, outcome.measured
    if expected is None:
        return "Nothing was foretold."
    words = (
        f"by round {whole(expected.round)}, {whole(expected.rounds)} rounds were expected "
        f"({span(expected.interval)})"
    )
    if measured is None or not measured.reached:
        return f"{words}; no run has reached the target, so there is nothing to compare."
    verdict = "Yes" if outcome.as_predicted else "No"
    return f"{verdict}: {words}, and {count(measured.rounds)} were needed on average."


def _decided(outcome: Outcome) -> Part:
    if outcome.measured is None:
        return _NOT_BEGUN
    run = outcome.measured.runs[0]
    columns: dict[str, Callable[[Decision], str]] = {
        "from round": lambda one: f"{one.round:,}",
        "participation": lambda one: one.participation,
        "groups or K": lambda one: f"{one.groups or one.clients_per_round or 0:,}",
        "local steps": lambda one: f"{one.local_steps:,}",
        "saturation": lambda one: amount(one.saturation),
        "rounds expected": lambda one: (
            whole(one.expected_rounds) + (f" ({span(one.interval)})" if one.interval else "")
        ),
        "why": lambda one: one.why or "-",
    }
    caption = f"What was settled on as it went, seed {run.seed}"
    return listing(caption, columns, decisions_of(run))


def _groups(outcome: Outcome) -> Part:
    columns: dict[str, Callable[[tuple[int, GroupCost]], str]] = {
        "group": lambda row: f"{row[0]:,}",
        "devices": lambda row: f"{row[1].clients:,}",
        "share of data": lambda row: share(row[1].data_share),
        "share of rounds": lambda row: share(row[1].frequency),
        "round": lambda row: seconds(row[1].time_s),
        "energy": lambda row: joules(row[1].energy_j),
        "cost": lambda row: amount(row[1].cost),
    }
    rows = list(enumerate(outcome.groups, 1))
    return listing("Groups at the beginning, the fastest first", columns, rows)


def _pilot_losses(outcome: Outcome) -> Part:
    if not sound_runs(outcome.pilots):
        return None
    data = convergence_data(outcome.pilots, title="Pilots")
    return Picture(data, "Pilots", "Training loss of every pilot.")


def _training(experiment: Experiment, outcome: Outcome) -> list[Part]:
    measured, expected = outcome.measured, outcome.forecast
    if measured is None:
        return [_NOT_BEGUN]
    cost = f"cost ({experiment.objective.unit})"
    forms = {"rounds": whole, "time": seconds, "energy": joules, cost: amount}

    def totals(rounds: float, bill: Bill) -> tuple[float, ...]:
        return rounds, bill.time_s, bill.energy_j, bill.cost

    took = zip(forms.items(), totals(measured.rounds, measured.bill), strict=True)
    rows = [[name, "-", "-", form(value)] for (name, form), value in took]
    spread = f" ± {amount(measured.rounds_sd)}" if measured.rounds_sd else ""
    rows[0][3] = count(measured.rounds) + spread
    if expected is not None:
        told = totals(expected.rounds, expected.bill)
        for row, form, total in zip(rows, forms.values(), told, strict=True):
            row[1:3] = form(total), span(expected.interval_of(total), form)
    head = ("", "foretold", "9 times in 10 within", "measured")
    caption = "Training to the target, on average over the runs that reached it"
    return [Table(caption, head, rows), run_table("Training runs", measured.runs)]


def _bill(experiment: Experiment, outcome: Outcome) -> Part:
    lines: list[tuple[str, Totals]] = [(one.name, one) for one in paid_lines(outcome)]
    if not lines and outcome.pilots:
        lines = [("all pilots", outcome.pilots_bill)]
    lines += [(f"expected: {one.name}", one.prediction) for one in outcome.alternatives]
    if not lines:
        return "Nothing was trained."
    return Table(
        "What was paid, and what others would have been",
        ("", "time", "energy", f"cost ({experiment.objective.unit})"),
        [(name, seconds(b.time_s), joules(b.energy_j), amount(b.cost)) for name, b in lines],
    )


def _pictures(experiment: Experiment, outcome: Outcome) -> dict[str, Part]:
    """The figures there are, by the section they stand in."""
    shown: dict[str, Part] = dict.fromkeys(("training", "steps", "turns", "bill"))
    if outcome.measured is None or not has_losses(outcome):
        return shown
    # Of several bills the last is kept, which has the cost; the table has the others.
    for panel in outcome_figure(experiment, outcome).panels:
        title = panel.title or f"The bill, {panel.x.label}"
        shown[panel.name] = Picture(alone(panel), title, f"{panel.words.rstrip('.')}.")
    return shown
