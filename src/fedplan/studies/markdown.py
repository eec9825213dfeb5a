"""Report: what a study has come to, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedplan.figures.turn_bills import Totals
from fedplan.store.entries import current_versions
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import paid_lines
from fedplan.studies.outcome import Outcome, decisions_of


def report_text(experiment: Experiment, outcome: Outcome, *, picture: str | None = None) -> str:
    """Summary, decisions, forecast and measurement, bill, configuration, versions."""
    study = experiment.study
    parts = [
        f"# {study.name}: {outcome.status}",
        outcome.message,
        *([f"![Losses, decisions, who trains when, and the bill]({picture})"] if picture else []),
        *_decisions(outcome),
        *_pilots(outcome),
        "## Foretold and measured",
        _comparison(outcome),
        "## Bill",
        _bill(experiment, outcome),
        "## Study",
        *(
            f"`[{name}]`\n\n" + markdown_table(("key", "value"), table.items())
            for name, table in study.configuration().items()
        ),
        "## Made with",
        markdown_table(("package", "version"), _versions()),
    ]
    return "\n\n".join(parts) + "\n"


def _decisions(outcome: Outcome) -> list[str]:
    """What the first run went on with, and from which round."""
    if outcome.measured is None:
        return []
    run = outcome.measured.runs[0]
    rows = [
        (one.round, one.participation, one.groups or one.clients_per_round, one.local_steps,
         one.saturation, one.expected_rounds)
        for one in decisions_of(run)
    ]  # fmt: skip
    head = ("from round", "participation", "groups or K", "local steps", "saturation",
            "rounds expected")  # fmt: skip
    title = f"## Decisions (course {outcome.course}, seed {run.seed})"
    return [title, markdown_table(head, rows)]


def _pilots(outcome: Outcome) -> list[str]:
    if not outcome.pilots:
        return []
    rows = [
        (run.clients_per_round, run.local_steps, run.num_rounds, run.final_loss, run.time_s,
         run.energy_j)
        for run in outcome.pilots
    ]  # fmt: skip
    head = ("clients per round", "local steps", "rounds", "loss", "seconds", "joules")
    return ["## Pilots", markdown_table(head, rows)]


def _comparison(outcome: Outcome) -> str:
    measured, expected = outcome.measured, outcome.forecast
    if measured is None:
        return "Training was not begun."
    bill = measured.bill
    found = {
        "rounds": measured.rounds,
        "seconds": bill.time_s,
        "joules": bill.energy_j,
        "cost": bill.cost,
    }
    if expected is None:
        return markdown_table(("", "measured"), found.items())
    foretold = expected.bill
    totals = (expected.rounds, foretold.time_s, foretold.energy_j, foretold.cost)
    rows = [
        (name, total, *expected.interval_of(total), value)
        for (name, value), total in zip(found.items(), totals, strict=True)
    ]
    return markdown_table(("", "foretold", "from", "to", "measured"), rows)


def _bill(experiment: Experiment, outcome: Outcome) -> str:
    lines: list[tuple[str, Totals]] = [(one.name, one) for one in paid_lines(outcome)]
    if not lines and outcome.pilots:
        lines = [("all pilots", outcome.pilots_bill)]
    lines += [(f"expected: {one.name}", one.prediction) for one in outcome.alternatives]
    if not lines:
        return "Nothing was trained."
    return markdown_table(
        ("", "seconds", "joules", f"cost ({experiment.objective.unit})"),
        ((name, bill.time_s, bill.energy_j, bill.cost) for name, bill in lines),
    )


def _versions() -> list[tuple[str, str]]:
    versions = current_versions()
    return [(name, getattr(versions, name)) for name in versions.__slots__]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown; numbers with four digits, `-` for None."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
