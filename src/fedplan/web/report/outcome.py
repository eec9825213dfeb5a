"""The sections of a study that was run: summary, plan, pilots, prediction, bill."""

from __future__ import annotations

from collections.abc import Sequence

from fedplan.core.records import RunRecord
from fedplan.figures import alone
from fedplan.figures.units import extra
from fedplan.markup import Markup, tag
from fedplan.planning.descent_plan import DRAWS, QUANTILE
from fedplan.planning.descent_sensitivity import descent_alternatives, descent_sensitivity
from fedplan.studies.building import Experiment
from fedplan.studies.keys import LIMIT_KEYS, PRICE_KEYS
from fedplan.studies.picture import has_losses, outcome_figure
from fedplan.studies.recalling import Recalled
from fedplan.studies.workflow import Bill, Outcome
from fedplan.web.report.law import law_sections
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
    if outcome.plan is not None:
        return outcome.status, outcome.message, law_sections(experiment, outcome, outcome.plan)
    pictures = _pictures(experiment, outcome)
    sections = [
        section("Summary", _tiles(experiment, outcome), _answers(experiment, outcome)),
        section("The plan, and why", _why(experiment, outcome), pictures["cost"]),
        section("Pilots and fit", _pilots(outcome), pictures["pilots"]),
        section("Predicted and measured", _comparison(experiment, outcome), pictures["training"]),
        section("The bill", _bill(experiment, outcome), pictures["bill"]),
    ]
    return outcome.status, outcome.message, sections


def _tiles(experiment: Experiment, outcome: Outcome) -> Markup:
    """The numbers that people look for first."""
    tiles: list[tuple[str, str]] = []
    if outcome.setting is not None:
        clients, steps = outcome.setting
        tiles += [
            (f"{clients:,} of {experiment.num_clients:,}", "clients per round (K)"),
            (f"{steps:,}", "local steps (E)"),
        ]
    if (measured := outcome.measured) is not None and measured.reached:
        tiles += [
            (count(measured.rounds), "rounds to the target"),
            (seconds(measured.bill.time_s), "of training"),
        ]
        if measured.bill.energy_j:
            tiles.append((joules(measured.bill.energy_j), "of the devices"))
    tiles.append((f"{len(outcome.pilots)}", "pilots"))
    if (part := outcome.pilots_share) is not None:
        tiles.append((share(part), "of one training is what they cost"))
    return tag("div", [tag("p", tag("b", big), " ", small) for big, small in tiles], class_="tiles")


def _answers(experiment: Experiment, outcome: Outcome) -> Markup:
    return facts(
        [
            ("What was asked", _asked(experiment)),
            ("What was chosen", _chosen(experiment, outcome)),
            ("What it cost", _paid(experiment, outcome)),
            ("Was the prediction right", _right(outcome)),
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


def _chosen(experiment: Experiment, outcome: Outcome) -> str:
    if outcome.setting is None:
        if outcome.status == "unfinished":
            return "Nothing yet: the pilots have not ended."
        return f"Nothing, for there is no plan: {outcome.status}."
    clients, steps = outcome.setting
    words = f"{clients:,} of {experiment.num_clients:,} clients per round, {steps:,} local steps"
    if outcome.regret is None:
        return f"{words}."
    return f"{words}; most likely at most {share(outcome.regret)} dearer than the best."


def _paid(experiment: Experiment, outcome: Outcome) -> str:
    unit = experiment.objective.unit
    pilots = outcome.pilots_bill
    words = f"The pilots: {_totals(pilots)}, or {amount(pilots.cost)} {unit}."
    if (measured := outcome.measured) is None:
        return f"{words} Training was not begun."
    over = "those that reached the target" if measured.reached else "all, for none has arrived"
    paid = f"{_totals(measured.bill)}, or {amount(measured.bill.cost)} {unit}"
    return f"{words} A training run: {paid}, on average over {over}."


def _totals(bill: Bill) -> str:
    energy = f" and {joules(bill.energy_j)}" if bill.energy_j else ""
    return seconds(bill.time_s) + energy


def _right(outcome: Outcome) -> str:
    expected, measured = outcome.forecast, outcome.measured
    if expected is None:
        return "Nothing was predicted."
    low, high = expected.rounds_interval
    rounds = whole(expected.prediction.rounds)
    words = f"{rounds} rounds were expected ({whole(low)} to {whole(high)})"
    if measured is None or not measured.reached:
        return f"{words}; no run has reached the target, so there is nothing to compare."
    verdict = "Yes" if outcome.as_predicted else "No"
    return f"{verdict}: {words}, and {count(measured.rounds)} were needed on average."


def _why(experiment: Experiment, outcome: Outcome) -> list[Markup]:
    parts = [tag("p", _reason(experiment, outcome))]
    descent, setting, fleet = outcome.descent, outcome.setting, experiment.fleet
    if descent is None or setting is None or fleet is None:
        return parts
    problem = (fleet, descent, experiment.objective, setting, experiment.constraints)
    chosen = f"K={setting[0]:,}, E={setting[1]:,}"
    rows = [
        (
            other.name,
            f"{other.prediction.clients_per_round:,}",
            f"{other.prediction.local_steps:,}",
            amount(other.prediction.expected_rounds),
            seconds(other.prediction.time_s),
            joules(other.prediction.energy_j),
            extra(other.cost_ratio) if other.prediction.cost < float("inf") else "never arrives",
            "yes" if other.feasible else "no",
        )
        for other in descent_alternatives(*problem)
    ]
    head = ("setting", "K", "E", "rounds", "time", "energy", "cost", "within limits")
    parts.append(wide_table(f"Other settings, against {chosen}, by the likeliest fit", head, rows))
    whatifs = [
        (case.name, f"K={case.clients_per_round:,}, E={case.local_steps:,}", share(case.regret))
        for case in descent_sensitivity(*problem)
    ]
    if outcome.regret is not None:
        least = "whatever the pilots leave open, 9 times in 10"
        whatifs.insert(0, (least, "one for each case", f"at most {share(outcome.regret)}"))
    if whatifs:
        names = ("if the truth were", "the best would be", f"{chosen} would cost more by")
        parts.append(wide_table("What it costs to be wrong", names, whatifs))
    return parts


def _reason(experiment: Experiment, outcome: Outcome) -> str:
    """How the choice was made."""
    if outcome.setting is None or outcome.descent is None:
        return outcome.message
    words = (
        f"{len(outcome.pilots)} pilots showed how fast the loss falls, and a descent was fitted to "
        f"their loss curves. {DRAWS} descents that they leave possible were drawn, and every one "
        "has a cheapest setting of its own. "
    )
    if outcome.regret is None:
        return (
            f"{words}Training is too short for that to matter: a setting that was piloted is used."
        )
    clients, steps = outcome.setting
    return (
        f"{words}The plan is the setting that is nearest to all: with {clients:,} of "
        f"{experiment.num_clients:,} clients per round and {steps:,} local steps, {QUANTILE:.0%} "
        f"of the descents cost at most {share(outcome.regret)} more than their cheapest setting."
    )


def _pilots(outcome: Outcome) -> Markup:
    if not outcome.pilots:
        return tag("p", "No pilot has ended yet.")
    # A pilot ends at a loss of its own, above the study's.
    caption = "Pilots: short runs that show how fast the loss falls"
    return run_table(caption, outcome.pilots, {"target": "loss"})


def _comparison(experiment: Experiment, outcome: Outcome) -> list[Markup]:
    measured, expected = outcome.measured, outcome.forecast
    if measured is None and expected is None:
        return [tag("p", "There was no plan to predict, or to train with.")]
    forms = {"rounds": whole, "time": seconds, "energy": joules}
    forms[f"cost ({experiment.objective.unit})"] = amount
    rows = [[name, "-", "-", "-"] for name in forms]
    if expected is not None:
        p = expected.prediction
        for row, form, total in zip(
            rows, forms.values(), (p.expected_rounds, p.time_s, p.energy_j, p.cost), strict=True
        ):
            low, high = expected.interval(total)
            row[1:3] = form(total), f"{form(low)} to {form(high)}"
        rows[0][1] = whole(p.rounds)
    if measured is not None:
        bill = measured.bill
        for row, form, total in zip(
            rows,
            forms.values(),
            (measured.rounds, bill.time_s, bill.energy_j, bill.cost),
            strict=True,
        ):
            row[3] = form(total)
        spread = f" ± {amount(measured.rounds_sd)}" if measured.rounds_sd else ""
        rows[0][3] = count(measured.rounds) + spread
    head = ("", "predicted", "9 times in 10 within", "measured")
    parts = [
        wide_table("Training to the target, on average over the runs that reached it", head, rows)
    ]
    if measured is None:
        return [*parts, tag("p", "Training was not begun.")]
    return [*parts, run_table("Training runs", measured.runs)]


def _bill(experiment: Experiment, outcome: Outcome) -> Markup:
    bills = [("all pilots", outcome.pilots_bill)]
    if (measured := outcome.measured) is not None:
        bills.append(("training, a run on average", measured.bill))
        total = Bill.of([*outcome.pilots, *measured.runs], experiment.objective)
        bills.append((f"everything: pilots and {_runs(measured.runs)}", total))
    return wide_table(
        "What was paid",
        ("", "time", "energy", f"cost ({experiment.objective.unit})"),
        [(name, seconds(b.time_s), joules(b.energy_j), amount(b.cost)) for name, b in bills],
    )


def _runs(runs: Sequence[RunRecord]) -> str:
    return "one training run" if len(runs) == 1 else f"{len(runs)} training runs"


def _pictures(experiment: Experiment, outcome: Outcome) -> dict[str, Markup]:
    """The figures there are, by the section they stand in."""
    shown = dict.fromkeys(("pilots", "training", "cost", "bill"), Markup(""))
    if not has_losses(outcome):
        return shown
    for panel in outcome_figure(experiment, outcome).panels:
        shown[panel.name] = figure(alone(panel), panel.title, panel.words)
    return shown
