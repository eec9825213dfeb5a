"""What a study came to: the document and the tables of `fedplan run`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fedplan.cli import text
from fedplan.cli.output import print_facts, print_table, print_text

if TYPE_CHECKING:
    from fedplan.core.course import Decision
    from fedplan.core.records import RunRecord
    from fedplan.figures.study import Totals
    from fedplan.studies.experiment import Experiment
    from fedplan.studies.outcome import Forecast, Outcome

_MOST_DECISIONS = 12  # lines of the table: of more, the first and the last


def outcome_json(experiment: Experiment, outcome: Outcome) -> dict[str, Any]:
    """The whole outcome, but for its rounds."""
    from fedplan.studies.cells import RunSummary
    from fedplan.studies.outcome import runs_within

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
    from fedplan.studies.outcome import decisions_of

    study, setting = experiment.study, outcome.setting
    made = () if outcome.measured is None else decisions_of(outcome.measured.runs[0])
    facts = [
        ("study", f"{study.name}: {experiment.data_name}, {study.task.model}"),
        ("course", outcome.course),
    ]
    if setting is not None:
        law, groups = setting.participation.law, len(outcome.groups)
        facts.append(
            text.who_trains(law, setting.clients_per_round, groups, experiment.num_clients)
        )
        if len(made) < 2:
            facts.append(("local steps", f"[bold]{setting.local_steps:,}[/]"))
    print_facts(facts)
    if len(made) > 1:
        _print_decisions(made)
    units = ("rounds", "time", "energy", f"cost ({experiment.objective.unit})")
    print_table(("", *units), _bill(experiment, outcome), left=("",), whole=units)
    print_text(outcome.message)


def _print_decisions(made: Sequence[Decision]) -> None:
    """What the first run's course decided."""
    columns: dict[str, Callable[[Decision], str]] = {
        "from round": lambda one: f"{one.round:,}",
        "groups": lambda one: text.count(one.groups),
        "local steps": lambda one: f"{one.local_steps:,}",
        "saturation": lambda one: "-" if not _finite(one.saturation) else f"{one.saturation:,.0f}",
    }
    if any(one.expected_rounds for one in made):
        columns["rounds expected"] = _expected
    rows = [tuple(shown(one) for shown in columns.values()) for one in made]
    if len(rows) > _MOST_DECISIONS:
        half = _MOST_DECISIONS // 2
        rows = [*rows[:half], ("...",), *rows[-half:]]
    print_table(tuple(columns), rows)


def _expected(one: Decision) -> str:
    """Rounds that a training was expected to take in all, and between which two."""
    if one.expected_rounds is None:
        return "-"
    values = (one.expected_rounds, *(one.interval or ()))
    rounds, *ends = (f"{value:,.0f}" if math.isfinite(value) else "never" for value in values)
    return f"{rounds} ({' to '.join(ends)})" if ends else rounds


def _bill(experiment: Experiment, outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Pilots, forecast, training and the whole bill, beside what others would have cost."""
    from fedplan.studies.figures import paid_lines
    from fedplan.studies.outcome import Bill

    def row(name: str, rounds: float, paid: Totals) -> tuple[str, ...]:
        totals = text.seconds(paid.time_s), text.joules(paid.energy_j), text.amount(paid.cost)
        return name, text.amount(rounds), *totals

    for pilot in outcome.pilots:
        setting = f"{pilot.clients_per_round:,} clients, {pilot.local_steps:,} steps"
        yield row(f"pilot: {setting}", pilot.num_rounds, Bill.of([pilot], experiment.objective))
    if (expected := outcome.forecast) is not None:
        totals = (expected.rounds, *asdict(expected.bill).values())
        shown = (text.amount, text.seconds, text.joules, text.amount)
        ends = map(expected.interval_of, totals)
        yield (
            "training, foretold",
            *(f"{form(a)} to {form(b)}" for form, (a, b) in zip(shown, ends, strict=True)),
        )
    for line in paid_lines(outcome):
        yield row(line.name, line.rounds, line.totals)
    for other in outcome.alternatives:
        found = other.prediction
        yield row(f"expected: {other.name}", found.expected_rounds, found)
