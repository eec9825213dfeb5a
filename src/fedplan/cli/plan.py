"""`fedplan plan`: who should train when, and for how many local steps."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from fedplan.cli.options import (
    constraint_options,
    law_options,
    objective_options,
    output_options,
    problem_options,
)
from fedplan.cli.output import Facts, draw, picked, print_result, who_trains
from fedplan.cli.question import read_question
from fedplan.convergence.saturation import Saturation
from fedplan.core.plan import Plan
from fedplan.core.setting import Prediction
from fedplan.errors import EXIT_INFEASIBLE
from fedplan.figures import Figure, plan_figure_data, plan_turns_data
from fedplan.planning.explain import group_table, whole_message
from fedplan.planning.plans import beside_turns
from fedplan.planning.sensitivity import WhatIf
from fedplan.web.question import Question
from fedplan.words import Table, amount, in_words, table_of

# What-ifs re-plan about ten times; past this many devices that takes too long.
_MAX_DEVICES_FOR_WHAT_IFS = 10_000
_BREAKS = " (breaks a constraint)"


@click.command()
@problem_options
@law_options
@objective_options
@click.option(
    "--method",
    type=click.Choice(["exact", "paper", "robust"]),
    help="exact (default), robust (default with --pilots), or the paper's Algorithm 2.",
)
@click.option("--regret-quantile", type=float, default=1.0, help="robust: 1 = worst case.")
@constraint_options
@output_options
def plan(output_format: str, plot: str | None, **options: Any) -> None:
    """Find who should train when, and the local steps, that cost least.

    Given only a fleet, groups of devices of similar speed take turns, and the local steps suit a
    stated range of saturation: no pilots are needed. Knowledge of convergence may come from one of:
    --ratio (the paper's A0/B0; relative units), --bound with --target-gap, or --pilots (a fitted
    bound, and the plan with the smallest regret); then clients are sampled uniformly, unless
    --participation says otherwise.

    \b
    Examples:
      fedplan plan --fleet fleet.csv
      fedplan plan --fleet fleet.csv --saturation 20 80 --rounds 200 --max-clients-per-round 10
      fedplan plan --example --participation turns --energy-weight 0.5
      fedplan plan --example --energy-weight 0.3 --plot plan.png
      fedplan plan --fleet fleet.csv --ratio 3750 --method paper
      fedplan plan --fleet fleet.csv --pilots pilots.csv --price-hour 2 --price-kwh 0.3
      fedplan plan --fleet fleet.csv --bound a0=3750,b0=1,c0=26 --target-gap 0.5 \\
          --deadline-s 3600 --max-clients-per-round 50 --format json
    """
    question = read_question(options, plot)
    result = question.plan(regret_quantile=options["regret_quantile"])
    if question.participation == "uniform" and not isinstance(question.knowledge, Saturation):
        result = beside_turns(
            result, question.problem, question.knowledge, target_gap=question.convergence.target_gap
        )
    only = "only plans by turns, and uniform ones with a bound, are drawn"
    why_not = only if result.success else "there is no plan to draw"
    draw(plot, lambda: _figure(question, result), otherwise=why_not)
    few = question.fleet.count.size <= _MAX_DEVICES_FOR_WHAT_IFS
    document = _as_json(question, result, question.what_ifs(result) if few else ())
    blocks = _blocks(question, result, document)
    print_result(output_format, document, blocks, code=EXIT_INFEASIBLE)


def _figure(question: Question, result: Plan) -> Figure | None:
    if result.groups:
        return plan_turns_data(result)
    knowledge, is_uniform = question.knowledge, result.participation == "uniform"
    if not result.success or not is_uniform or isinstance(knowledge, Saturation):
        return None
    return plan_figure_data(
        result,
        question.problem,
        knowledge,
        target_gap=question.convergence.target_gap,
        relative=question.convergence.relative_to or "",
    )


_PREDICTED = (
    "clients_per_round", "local_steps", "expected_rounds", "rounds", "time_s", "energy_j", "cost",
)  # fmt: skip


def _as_json(question: Question, result: Plan, what_ifs: Sequence[WhatIf]) -> dict[str, Any]:
    law = {"law": result.participation, "groups": [asdict(group) for group in result.groups]}
    return {
        **picked(result, "success", "status", "method"),
        "participation": law if result.success else None,
        **picked(result.prediction, *_PREDICTED),
        "cost_unit": result.unit,
        "co2_g": _co2_g(question, result),
        "relative_to": question.convergence.relative_to,
        "certificate": result.certificate and asdict(result.certificate),
        **picked(result, "regret", "binding"),
        "alternatives": [
            {
                "name": other.name,
                **picked(other.prediction, *_PREDICTED),
                **picked(other, "cost_ratio", "feasible"),
            }
            for other in result.alternatives
        ],
        "best_attainable": {
            name: picked(best, *_PREDICTED) for name, best in result.best_attainable.items()
        },
        "sensitivity": [
            {"if" if name == "name" else name: value for name, value in asdict(case).items()}
            for case in what_ifs
        ],
        "message": whole_message(result, question.knowledge, question.convergence.relative_to),
    }


def _co2_g(question: Question, result: Plan) -> float | None:
    """Grams of CO2, where the carbon intensity of the electricity was given."""
    if question.prices is None or result.prediction is None or not question.prices.co2_g_per_kwh:
        return None
    return question.prices.co2_g(result.prediction.energy_j)


def _blocks(
    question: Question, result: Plan, document: dict[str, Any]
) -> Iterator[Facts | Table | str]:
    """The document as a terminal shows it."""
    if result.prediction is None:
        yield f"No feasible plan. {document['message']}"
        return
    yield Facts(_facts(question, result, result.prediction, document))
    if result.groups:
        yield group_table(result.groups, title="Who trains when")
    yield table_of(
        document["alternatives"],
        {
            "setting": lambda other: other["name"] + ("" if other["feasible"] else _BREAKS),
            "K": "clients_per_round",
            "E": "local_steps",
            "rounds": "rounds",
            "time": "time_s",
            "energy": "energy_j",
            "cost": "cost_ratio",
        },
        title=f"What other settings would cost{question.of_what}",
    )
    if document["sensitivity"]:
        best = {"best K": "clients_per_round"} if not result.groups else {}
        columns = {"if": "if", **best, "best E": "local_steps", "staying costs": "regret"}
        yield table_of(document["sensitivity"], columns, title="If the truth were otherwise")
    yield document["message"]


def _facts(
    question: Question, result: Plan, best: Prediction, document: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    law, clients = result.participation, len(question.problem.fleet)
    yield who_trains(law, best.clients_per_round, len(result.groups), clients)
    yield "local steps", f"[bold]{best.local_steps:,}[/]"
    for name, key in {"rounds": "rounds", "time": "time_s", "energy": "energy_j"}.items():
        yield f"{name}{question.of_what}", in_words(document[key], key)
    yield f"cost{question.of_what}", f"{amount(best.cost)} ({result.unit})"
    if (co2_g := document["co2_g"]) is not None:
        yield f"carbon{question.of_what}", f"{amount(co2_g)} g CO2"
