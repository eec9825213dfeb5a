"""What a study came to: the document and the tables of `fedplan run`."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fedplan.cli.output import amount, console, joules, seconds, who_trains

if TYPE_CHECKING:
    from fedplan.core.course import Decision
    from fedplan.core.records import RunRecord
    from fedplan.studies.building import Experiment
    from fedplan.studies.outcome import Forecast, Outcome

_MOST_DECISIONS = 12  # lines of the table: of more, the first and the last


def outcome_json(experiment: Experiment, outcome: Outcome) -> dict[str, Any]:
    """The whole outcome, but for its rounds."""
    from fedplan.studies.outcome import runs_within
    from fedplan.studies.summary import RunSummary

    measured = outcome.measured
    within = runs_within(experiment.constraints, () if measured is None else measured.runs)
    return {
        "success": outcome.success,
        "status": outcome.status,
        "study": experiment.study.name,
        "plan": _plan_json(outcome),
        "course": None if measured is None else _course_json(measured.runs[0]),
        "predicted": None if outcome.forecast is None else _predicted_json(outcome.forecast),
        "measured": measured
        and {
            "reached": measured.reached,
            "rounds": measured.rounds,
            "rounds_sd": measured.rounds_sd,
            **asdict(measured.bill),
            "as_predicted": outcome.as_predicted,
            "runs": [
                {**asdict(RunSummary.of(one)), "course": _course_json(one)} for one in measured.runs
            ],
        },
        "limits": {
            name: {
                "limit": getattr(experiment.constraints, name),
                "runs_within": None if measured is None else count,
            }
            for name, count in within.items()
        },
        "pilots": [asdict(RunSummary.of(one)) for one in outcome.pilots],
        "bill": {
            "unit": experiment.objective.unit,
            "all_in": None if outcome.all_in is None else asdict(outcome.all_in),
            "pilots": asdict(outcome.pilots_bill),
            "training": None if measured is None else asdict(measured.bill),
            "pilots_share": outcome.pilots_share,
        },
        "alternatives": [
            {"name": other.name, **asdict(other.prediction)} for other in outcome.alternatives
        ],
        "message": outcome.message,
    }


def _plan_json(outcome: Outcome) -> dict[str, Any] | None:
    from fedplan.studies.workflow import plan_step

    if outcome.setting is None:
        return None
    step = plan_step(outcome)
    law = {"law": step.pop("participation"), "groups": step.pop("groups")}
    return {"participation": law, **step}


def _course_json(run: RunRecord) -> list[dict[str, Any]]:
    """What was decided in a run, and from which round on it held."""
    from fedplan.studies.outcome import decisions_of

    return [
        {
            "round": one.round,
            "participation": one.participation,
            "local_steps": one.local_steps,
            "saturation": _finite(one.saturation),
            "predicted_rounds": _finite(one.expected_rounds),
            "interval": one.interval and [_finite(end) for end in one.interval],
        }
        for one in decisions_of(run)
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _predicted_json(expected: Forecast) -> dict[str, Any]:
    totals = {"rounds": expected.rounds, **asdict(expected.bill)}
    intervals = {f"{name}_interval": list(expected.interval_of(v)) for name, v in totals.items()}
    return {**totals, **intervals}


def print_outcome(experiment: Experiment, outcome: Outcome) -> None:
    """What was trained, what was decided, the bill, and the message."""
    from rich.table import Table

    out = console()
    study = experiment.study
    facts = Table.grid(padding=(0, 3))
    facts.add_row("study", f"{study.name}: {experiment.data_name}, {study.task.model}")
    facts.add_row("course", outcome.course)
    if (setting := outcome.setting) is not None:
        law, clients = setting.participation.law, setting.clients_per_round
        facts.add_row(*who_trains(law, clients, len(outcome.groups), experiment.num_clients))
        if outcome.measured is None or len(_decisions(outcome)) == 1:
            facts.add_row("local steps", f"[bold]{setting.local_steps:,}[/]")
    out.print(facts)
    out.print()
    if len(_decisions(outcome)) > 1:
        out.print(_decision_table(outcome))
        out.print()
    out.print(_bill_table(experiment, outcome))
    out.print()
    out.print(outcome.message, markup=False)


def _decisions(outcome: Outcome) -> tuple[Decision, ...]:
    from fedplan.studies.outcome import decisions_of

    return () if outcome.measured is None else decisions_of(outcome.measured.runs[0])


def _decision_table(outcome: Outcome) -> Any:
    """What the first run's course decided."""
    from rich.table import Table

    made = _decisions(outcome)
    table = Table(box=None)
    names = ["from round", "groups", "local steps", "saturation"]
    foretold = any(one.expected_rounds for one in made)
    for name in [*names, "rounds expected"] if foretold else names:
        table.add_column(name, justify="right")
    half = _MOST_DECISIONS // 2
    shown = [*made] if len(made) <= _MOST_DECISIONS else [*made[:half], None, *made[-half:]]
    for one in shown:
        if one is None:
            table.add_row("...")
            continue
        cells = [
            f"{one.round:,}",
            "-" if one.groups is None else f"{one.groups:,}",
            f"{one.local_steps:,}",
            "-" if _finite(one.saturation) is None else f"{one.saturation:,.0f}",
        ]
        if foretold:
            cells.append(_expected(one))
        table.add_row(*cells)
    return table


def _expected(one: Decision) -> str:
    """Rounds that a training was expected to take in all, and between which two."""
    if one.expected_rounds is None:
        return "-"
    values = (one.expected_rounds, *(one.interval or ()))
    rounds, *ends = (f"{value:,.0f}" if math.isfinite(value) else "never" for value in values)
    return f"{rounds} ({' to '.join(ends)})" if ends else rounds


def _bill_table(experiment: Experiment, outcome: Outcome) -> Any:
    """Pilots, forecast, training and the whole bill, beside what others would have cost."""
    from rich.table import Table

    table = Table(box=None)
    for name in ("", "rounds", "time", "energy", f"cost ({experiment.objective.unit})"):
        table.add_column(name, justify="right" if name else "left", no_wrap=bool(name))
    for pilot in outcome.pilots:
        bill = type(outcome.pilots_bill).of([pilot], experiment.objective)
        setting = f"{pilot.clients_per_round:,} clients, {pilot.local_steps:,} steps"
        _add_bill(table, f"pilot: {setting}", f"{pilot.num_rounds:,}", bill)
    if (expected := outcome.forecast) is not None:
        totals = (expected.rounds, *asdict(expected.bill).values())
        shown = (amount, seconds, joules, amount)
        ends = map(expected.interval_of, totals)
        cells = [f"{form(a)} to {form(b)}" for form, (a, b) in zip(shown, ends, strict=True)]
        table.add_row("training, foretold", *cells)
    measured, all_in = outcome.measured, outcome.all_in
    if measured is not None and all_in is not None:
        if outcome.pilots:
            _add_bill(table, "all pilots", "", outcome.pilots_bill)
            _add_bill(table, "training", amount(measured.rounds), measured.bill)
        rounds = measured.rounds + sum(run.num_rounds for run in outcome.pilots)
        _add_bill(table, "all in", amount(rounds), all_in)
    for other in outcome.alternatives:
        found = other.prediction
        _add_bill(table, f"expected: {other.name}", amount(found.expected_rounds), found)
    return table


def _add_bill(table: Any, name: str, rounds: str, bill: Any) -> None:
    table.add_row(name, rounds, seconds(bill.time_s), joules(bill.energy_j), amount(bill.cost))
