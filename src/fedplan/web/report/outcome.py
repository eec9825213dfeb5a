"""The sections of a study that was run: summary, decisions, who trains when, training, bill."""

from __future__ import annotations

from fedplan.core.course import Decision
from fedplan.figures import alone, convergence_data
from fedplan.figures.convergence import sound_runs
from fedplan.markup import Markup, tag
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import has_losses, outcome_figure, paid_lines
from fedplan.studies.keys import LIMIT_KEYS, PRICE_KEYS
from fedplan.studies.outcome import Bill, Outcome, decisions_of
from fedplan.studies.stored import Recalled
from fedplan.studies.verdict import course_words
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
    whole,
    wide_table,
)


def outcome_sections(found: Recalled) -> tuple[str, str, list[Section]]:
    """Status, message and sections."""
    experiment, outcome = found.experiment, found.outcome
    if experiment is None or outcome is None:
        raise AssertionError("an outcome is of an experiment")
    pictures = _pictures(experiment, outcome)
    sections = [
        section("Summary", _tiles(experiment, outcome), _answers(experiment, outcome)),
        section("What was decided", _decided(outcome), pictures["steps"]),
    ]
    if outcome.groups:
        sections.append(section("Who trains when", _groups(outcome), pictures["turns"]))
    if outcome.pilots:
        # A pilot ends at a loss of its own, above the study's.
        shown = run_table("The paper's pilots", outcome.pilots, {"target": "loss"})
        sections.append(section("Pilots", shown, _pilot_losses(outcome)))
    sections += [
        section("Training", _training(experiment, outcome), pictures["training"]),
        section("The bill", _bill(experiment, outcome), pictures["bill"]),
    ]
    return outcome.status, outcome.message, sections


def _tiles(experiment: Experiment, outcome: Outcome) -> Markup:
    """The numbers that people look for first."""
    tiles: list[tuple[str, str]] = []
    if (setting := outcome.setting) is not None:
        if setting.groups is None:
            clients = f"{setting.clients_per_round:,} of {experiment.num_clients:,}"
            tiles.append((clients, "clients per round (K)"))
        else:
            tiles.append((f"{setting.groups:,}", "groups of devices that take turns"))
    measured, all_in = outcome.measured, outcome.all_in
    if measured is not None and all_in is not None and measured.reached:
        tiles += [
            (count(measured.rounds), "rounds to the target"),
            (seconds(all_in.time_s), "all in, from the first round on"),
        ]
        if all_in.energy_j:
            tiles.append((joules(all_in.energy_j), "of the devices"))
    if (part := outcome.pilots_share) is not None and outcome.pilots:
        tiles.append((share(part), "of one training is what the pilots cost"))
    return tag("div", [tag("p", tag("b", big), " ", small) for big, small in tiles], class_="tiles")


def _answers(experiment: Experiment, outcome: Outcome) -> Markup:
    return facts(
        [
            ("What was asked", _asked(experiment)),
            ("What was done", _done(outcome)),
            ("What it cost", _paid(experiment, outcome)),
            ("Was the forecast right", _right(outcome)),
        ]
    )


def _asked(experiment: Experiment) -> str:
    study = experiment.study
    where = f"{experiment.num_clients:,} simulated clients"
    if experiment.federation is not None:
        where = f"the {experiment.num_clients:,} nodes of the federation {experiment.federation}"
    words = (
        f"Bring {experiment.data_name}, learnt by {study.task.model} on {where}, to a training "
        f"loss of {experiment.stop.target_loss:g} within {experiment.stop.max_rounds:,} rounds, "
        f"{_goal(experiment)}"
    )
    limits = [
        f"{name.replace('_', '-')} {value:g}"
        for name in LIMIT_KEYS
        if (value := getattr(study.objective, name)) is not None
    ]
    return f"{words}{', keeping to ' + ', '.join(limits) if limits else ''}."


def _goal(experiment: Experiment) -> str:
    table = experiment.study.objective
    prices = [
        f"{key.replace('_', '-')} {value:g}" for key in PRICE_KEYS if (value := getattr(table, key))
    ]
    if prices:
        return f"at the lowest cost in {experiment.objective.unit} ({', '.join(prices)})"
    if weight := table.energy_weight:
        return f"at the lowest cost in seconds and joules (energy weight {weight:g})"
    return "in the least time"


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
    low, high = expected.interval
    words = (
        f"by round {whole(expected.round)}, {whole(expected.rounds)} rounds were expected "
        f"({whole(low)} to {whole(high)})"
    )
    if measured is None or not measured.reached:
        return f"{words}; no run has reached the target, so there is nothing to compare."
    verdict = "Yes" if outcome.as_predicted else "No"
    return f"{verdict}: {words}, and {count(measured.rounds)} were needed on average."


def _decided(outcome: Outcome) -> list[Markup]:
    if outcome.measured is None:
        return [tag("p", "Training was not begun.")]
    run = outcome.measured.runs[0]
    head = ("from round", "participation", "groups or K", "local steps", "saturation",
            "rounds expected", "why")  # fmt: skip
    rows = [_decision(one) for one in decisions_of(run)]
    return [wide_table(f"What was settled on as it went, seed {run.seed}", head, rows)]


def _decision(one: Decision) -> tuple[str, ...]:
    ends = (
        "" if one.interval is None else f" ({whole(one.interval[0])} to {whole(one.interval[1])})"
    )
    expected = "-" if one.expected_rounds is None else whole(one.expected_rounds)
    return (
        f"{one.round:,}",
        one.participation,
        f"{one.groups or one.clients_per_round or 0:,}",
        f"{one.local_steps:,}",
        "-" if one.saturation is None else amount(one.saturation),
        expected + ends,
        one.why or "-",
    )


def _groups(outcome: Outcome) -> Markup:
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
        for number, row in enumerate(outcome.groups, 1)
    ]
    return wide_table("Groups at the beginning, the fastest first", head, rows)


def _pilot_losses(outcome: Outcome) -> Markup:
    if not sound_runs(outcome.pilots):
        return Markup("")
    data = convergence_data(outcome.pilots, title="Pilots")
    return figure(data, "Pilots", "Training loss of every pilot.")


def _training(experiment: Experiment, outcome: Outcome) -> list[Markup]:
    measured, expected = outcome.measured, outcome.forecast
    if measured is None:
        return [tag("p", "Training was not begun.")]
    bill = measured.bill
    values = (measured.rounds, bill.time_s, bill.energy_j, bill.cost)
    forms = {"rounds": whole, "time": seconds, "energy": joules}
    forms[f"cost ({experiment.objective.unit})"] = amount
    rows = [
        [name, "-", "-", form(value)]
        for (name, form), value in zip(forms.items(), values, strict=True)
    ]
    spread = f" ± {amount(measured.rounds_sd)}" if measured.rounds_sd else ""
    rows[0][3] = count(measured.rounds) + spread
    if expected is not None:
        told = expected.bill
        totals = (expected.rounds, told.time_s, told.energy_j, told.cost)
        for row, form, total in zip(rows, forms.values(), totals, strict=True):
            low, high = expected.interval_of(total)
            row[1:3] = form(total), f"{form(low)} to {form(high)}"
    head = ("", "foretold", "9 times in 10 within", "measured")
    caption = "Training to the target, on average over the runs that reached it"
    return [wide_table(caption, head, rows), run_table("Training runs", measured.runs)]


def _bill(experiment: Experiment, outcome: Outcome) -> Markup:
    lines = [(one.name, one.totals) for one in paid_lines(outcome)]
    if not lines and outcome.pilots:
        lines = [("all pilots", outcome.pilots_bill)]
    lines += [(f"expected: {one.name}", one.prediction) for one in outcome.alternatives]
    if not lines:
        return tag("p", "Nothing was trained.")
    return wide_table(
        "What was paid, and what others would have been",
        ("", "time", "energy", f"cost ({experiment.objective.unit})"),
        [(name, seconds(b.time_s), joules(b.energy_j), amount(b.cost)) for name, b in lines],
    )


def _pictures(experiment: Experiment, outcome: Outcome) -> dict[str, Markup]:
    """The figures there are, by the section they stand in."""
    shown = dict.fromkeys(("training", "steps", "turns", "bill"), Markup(""))
    if outcome.measured is None or not has_losses(outcome):
        return shown
    # Of several bills the last is kept, which has the cost; the table has the others.
    for panel in outcome_figure(experiment, outcome).panels:
        title = panel.title or f"The bill, {panel.x.label}"
        shown[panel.name] = figure(alone(panel), title, f"{panel.words.rstrip('.')}.")
    return shown
