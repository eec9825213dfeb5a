"""Accounts: the outcome of a study as tables, for terminal, page and Markdown."""

from collections.abc import Callable, Sequence
from typing import Any

from fedplan.core.records import RunRecord
from fedplan.figures import TurnBill
from fedplan.store import RunEntry
from fedplan.studies.figures import paid_lines
from fedplan.studies.outcome import Bill, Outcome, Question, decisions_of
from fedplan.words import Table, expected, in_words, table_of, whole, with_error

_TOTALS = ("rounds", "time_s", "energy_j", "cost")


def decision_table(run: RunRecord, *, in_full: bool) -> Table:
    """The decisions made during a run; in full with laws and reasons."""
    made = decisions_of(run)
    in_turns = all(one.groups for one in made)
    columns: dict[str, str | Callable[[Any], Any]] = {
        "from round": "round",
        "participation": "participation",
        "groups" if in_turns else "groups or K": lambda one: one.groups or one.clients_per_round,
        "local steps": "local_steps",
        "saturation": lambda one: whole(one.saturation),
        "rounds expected": lambda one: expected(one.expected_rounds, one.interval),
        "why": lambda one: one.why or "-",
    }
    left_out = [] if in_full else ["participation", "why"]
    if not any(one.expected_rounds for one in made):
        left_out.append("rounds expected")
    columns = {name: shown for name, shown in columns.items() if name not in left_out}
    return table_of(made, columns, title=f"Decisions during training, seed {run.seed}")


def bill_table(question: Question, outcome: Outcome) -> Table:
    """Pilots, forecast, training and the whole bill, beside the alternatives."""
    objective, measured = question.objective, outcome.measured
    pilots = [
        TurnBill.of(
            f"pilot: {run.clients_per_round:,} clients, {run.local_steps:,} steps",
            run.num_rounds,
            Bill.of([run], objective),
        )
        for run in outcome.pilots
    ]
    others = [
        TurnBill.of(f"expected: {one.name}", one.prediction.expected_rounds, one.prediction)
        for one in outcome.alternatives
    ]
    rows = [_line(bill) for bill in pilots]
    if (told := outcome.forecast) is not None:
        rows.append(_line(TurnBill.of("training, predicted", told.rounds, told.bill)))
        low, high = (
            _line(TurnBill.of("", rounds, told.bill.times(rounds / told.rounds)))
            for rounds in told.interval
        )
        within = map(" to ".join, zip(low[1:], high[1:], strict=True))
        rows.append(["9 times in 10 within", *within])
    for bill in paid_lines(outcome):
        rows.append(_line(bill))
        if measured is not None and measured.rounds_sd and bill.rounds == measured.rounds:
            rows[-1][1] = with_error(measured.rounds, measured.rounds_sd)
    rows += [_line(bill) for bill in others]
    head = ("", "rounds", "time", "energy", f"cost ({objective.unit})")
    title = "What was paid, and what others would have cost"
    return Table(head, rows, title=title, left=("",), whole=head[1:])


def _line(bill: TurnBill) -> list[str]:
    return [bill.name, *(in_words(getattr(bill, name), name) for name in _TOTALS)]


def run_table(
    runs: Sequence[RunRecord | RunEntry], *, title: str, target: str = "target", most: int = 1000
) -> Table:
    """One row per run; `target` is the status of a run that reached its target."""
    columns: dict[str, str | Callable[[Any], Any]] = {
        "setting": lambda run: f"{run.identity.partition('/')[0]} {run.setting.label}".lstrip(),
        "seed": "seed",
        "rounds": "num_rounds",
        "loss at the end": "final_loss",
        "time": "time_s",
        "energy": "energy_j",
        "ended by": lambda run: target if run.status == "target" else run.status,
    }
    rest = "more runs are in the store: `fedplan export` writes all."
    return table_of(runs, columns, title=title, most=most, rest=rest)
