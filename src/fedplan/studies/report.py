"""Report: what a study has come to, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedplan.store.entries import current_versions
from fedplan.studies.building import Experiment
from fedplan.studies.workflow import Bill, Outcome


def report_text(experiment: Experiment, outcome: Outcome, *, picture: str | None = None) -> str:
    """Summary, plan, pilots, prediction and measurement, bill, configuration, versions."""
    study = experiment.study
    parts = [
        f"# {study.name}: {outcome.status}",
        outcome.message,
        *([f"![Pilots, training, cost and bill]({picture})"] if picture else []),
        "## Pilots",
        markdown_table(
            ("clients per round", "local steps", "rounds", "loss", "seconds", "joules"),
            (
                (
                    run.clients_per_round,
                    run.local_steps,
                    run.num_rounds,
                    run.final_loss,
                    run.time_s,
                    run.energy_j,
                )
                for run in outcome.pilots
            ),
        ),
        "## Predicted and measured",
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


def _comparison(outcome: Outcome) -> str:
    rows: list[tuple[object, ...]] = []
    measured, expected = outcome.measured, outcome.forecast
    found = {}
    if measured is not None:
        found = {
            "rounds": measured.rounds,
            "seconds": measured.bill.time_s,
            "joules": measured.bill.energy_j,
            "cost": measured.bill.cost,
        }
    if expected is not None:
        p = expected.prediction
        totals = {
            "rounds": p.expected_rounds,
            "seconds": p.time_s,
            "joules": p.energy_j,
            "cost": p.cost,
        }
        rows = [
            (name, total, *expected.interval(total), found.get(name, "-"))
            for name, total in totals.items()
        ]
    elif found:
        rows = [(name, "-", "-", "-", total) for name, total in found.items()]
    if not rows:
        return "Training was not begun."
    return markdown_table(("", "predicted", "from", "to", "measured"), rows)


def _bill(experiment: Experiment, outcome: Outcome) -> str:
    bills: list[tuple[str, Bill]] = [("all pilots", outcome.pilots_bill)]
    if outcome.measured is not None:
        bills.append(("training, on average", outcome.measured.bill))
    return markdown_table(
        ("", "seconds", "joules", f"cost ({experiment.objective.unit})"),
        ((name, bill.time_s, bill.energy_j, bill.cost) for name, bill in bills),
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
