"""`fedplan learn`: how local steps save rounds, from runs trained with any framework."""

from collections.abc import Iterator
from typing import Any

import click

from fedplan.cli.options import objective_options, output_options
from fedplan.cli.output import Facts, check_file, draw, picked, print_result
from fedplan.cli.question import read_question
from fedplan.convergence.histories import Learnt, learn_saturation
from fedplan.convergence.saturation import Saturation
from fedplan.core.plan import Plan
from fedplan.errors import Collector
from fedplan.figures import learnt_figure_data
from fedplan.planning.planner import make_plan
from fedplan.tables import read_histories
from fedplan.words import Table, amount

_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # rows of the table of rounds


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("--num-clients", type=int, metavar="N", help="Clients in all, if known.")
@click.option("--fleet", "fleet_file", metavar="CSV", help="Devices to choose local steps for.")
@objective_options
@output_options
def learn(
    runs: tuple[str, ...],
    num_clients: int | None,
    output_format: str,
    plot: str | None,
    **options: Any,
) -> None:
    """Learn from runs of one task, made with any framework, how many local steps pay off.

    RUNS are CSV files with one row per round and the columns round, clients (that trained in it),
    local_steps and loss (may be empty); run separates the runs of one file, and learning_rate is
    needed if rates differ. Runs with different local steps tell most.

    The result is the saturation: the number of local steps at which half of what steps can save has
    been saved, with a 90% interval. Put it into a study, and training begins with it.

    \b
    Examples:
      fedplan learn runs.csv
      fedplan learn first.csv second.csv --num-clients 100 --plot learnt.png
      fedplan learn runs.csv --fleet fleet.csv --energy-weight 0.3
      fedplan run study.toml 'saturation=[12, 47]'
    """
    collector = Collector()
    collector.attempt(lambda: check_file(plot))
    if num_clients is not None and num_clients < 1:
        collector.add(f"--num-clients must be an integer >= 1, but got {num_clients}.")
    question = None
    if options["fleet_file"] is not None:
        question = collector.attempt(lambda: read_question(options))
    elif any(value is not None for value in options.values()):
        collector.add("weights and prices are for devices. Give --fleet too, or leave them out.")
    histories = collector.attempt(lambda: read_histories(runs)) or []
    collector.finish()
    if question is not None and num_clients is None:
        num_clients = len(question.problem.fleet)
    learnt = learn_saturation(histories, num_clients)
    plan = None
    if question is not None:
        known = Saturation.within(*learnt.interval)
        plan = make_plan(question.problem, known, participation="turns")
    message = _message(learnt, len(histories))
    draw(
        plot,
        lambda: learnt_figure_data(histories, learnt, message),
        otherwise="no two runs have come to the same loss",
    )
    document = {
        "success": True,
        **picked(learnt, "saturation", "interval"),
        "study_key": _study_key(learnt),
        "runs": len(histories),
        **picked(learnt, "compared", "loss"),
        "rounds": _rounds(learnt),
        "plan": plan and {"groups": plan.setting.groups, "local_steps": plan.setting.local_steps},
        "message": message,
    }
    print_result(output_format, document, _blocks(learnt, plan, message))


def _rounds(learnt: Learnt) -> list[dict[str, float]]:
    if learnt.loss is None:
        return []
    return [{"local_steps": e, "rounds": learnt.rounds_at(e)} for e in _STEPS]


def _study_key(learnt: Learnt) -> str:
    low, high = learnt.interval
    return f"saturation = [{low:.3g}, {high:.3g}]"


def _message(learnt: Learnt, runs: int) -> str:
    known = f"Write `{_study_key(learnt)}` into [planning] of a study to train with it."
    if learnt.compared > 1:
        return f"{learnt.compared} of {runs} runs come to common losses. {known}"
    return (
        "No two runs come to a common loss, so that this is the usual range. Give runs of the same "
        f"task with other local steps. {known}"
    )


def _blocks(learnt: Learnt, plan: Plan | None, message: str) -> Iterator[Facts | Table | str]:
    low, high = map(amount, learnt.interval)
    facts = [("saturation", f"[bold]{amount(learnt.saturation)}[/] ({low} to {high})")]
    if plan is not None:
        facts.append(("local steps", f"[bold]{plan.setting.local_steps:,}[/], for these devices"))
        facts.append(("groups", f"{plan.setting.groups:,}"))
    yield Facts(facts)
    if learnt.loss is not None:
        rows = [(f"{row['local_steps']:,}", amount(row["rounds"])) for row in _rounds(learnt)]
        yield Table(("local steps", f"rounds of all clients to loss {learnt.loss:.4g}"), rows)
    yield message
