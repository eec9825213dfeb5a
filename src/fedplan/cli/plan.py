"""`fedplan plan`: who should train when, and for how many local steps."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import (
    Request,
    constraint_options,
    law_options,
    objective_options,
    output_options,
    problem_options,
    read_request,
)
from fedplan.cli.output import (
    amount,
    console,
    count_or_dash,
    difference,
    joules,
    print_json,
    save_plot,
    say_not_drawn,
    seconds,
    who_trains,
)
from fedplan.errors import EXIT_INFEASIBLE

if TYPE_CHECKING:
    from rich.table import Table

    from fedplan.core.plan import Plan
    from fedplan.core.prediction import Prediction
    from fedplan.planning.sensitivity import WhatIf

# What-ifs re-plan about ten times; past this many devices that would be felt.
_MAX_DEVICES_FOR_WHAT_IFS = 10_000


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

    With a fleet alone, groups of devices of like speed take turns, and the local steps are for a
    stated range of saturation: no pilots are needed. What is known of convergence may come from one
    of: --ratio (the paper's A0/B0; relative units), --bound with --target-gap, or --pilots (fitted,
    and planned for the smallest regret); then clients are sampled uniformly, unless
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
    from fedplan.convergence.saturation import Saturation
    from fedplan.planning.law_plan import beside_turns
    from fedplan.planning.making import make_plan

    request = read_request(options, plot)
    result = make_plan(
        request.problem,
        request.knowledge,
        participation=request.participation,
        target_gap=request.target_gap,
        method=options["method"],
        regret_quantile=options["regret_quantile"],
    )
    if request.participation == "uniform" and not isinstance(request.knowledge, Saturation):
        result = beside_turns(
            result, request.problem, request.knowledge, target_gap=request.target_gap
        )
    if plot is not None and result.success:
        _draw(request, result, plot)
    elif plot is not None:
        say_not_drawn(plot, "there is no plan to draw")
    what_ifs = _what_ifs(request, result)
    if output_format == "json":
        print_json(_as_json(request, result, what_ifs))
    else:
        _print_table(request, result, what_ifs)
    if not result.success:
        raise click.exceptions.Exit(EXIT_INFEASIBLE)


def _what_ifs(request: Request, result: Plan) -> list[WhatIf]:
    from fedplan.core.constraints import TOTALS
    from fedplan.planning.sensitivity import sensitivity

    if not result.success or request.problem.fleet.count.size > _MAX_DEVICES_FOR_WHAT_IFS:
        return []
    if set(TOTALS) & set(result.binding):
        return []  # the limit, not the choice, is what would cost
    return sensitivity(request.problem, request.knowledge, result)


def _draw(request: Request, result: Plan, path: str) -> None:
    from fedplan.convergence.saturation import Saturation
    from fedplan.figures import plan_figure_data, plan_turns_data

    if result.groups:
        save_plot(plan_turns_data(result), path)
        return
    if result.participation != "uniform" or isinstance(request.knowledge, Saturation):
        say_not_drawn(path, "only plans by turns, and uniform ones with a bound, are drawn")
        return
    data = plan_figure_data(
        request.problem.fleet,
        request.knowledge,
        result,
        energy_weight=request.problem.objective.energy_weight,
        prices=request.prices,
        target_gap=request.target_gap,
        constraints=request.problem.limits,
        relative=request.relative_to or False,
    )
    save_plot(data, path)


def _prediction_json(prediction: Prediction) -> dict[str, Any]:
    return {
        "clients_per_round": prediction.clients_per_round,
        "local_steps": prediction.local_steps,
        "expected_rounds": prediction.expected_rounds,
        "rounds": prediction.rounds,
        "time_s": prediction.time_s,
        "energy_j": prediction.energy_j,
        "cost": prediction.cost,
    }


def participation_json(result: Plan) -> dict[str, Any] | None:
    """Who trains when, with a row for each group that takes turns."""
    if not result.success:
        return None
    return {"law": result.participation, "groups": [asdict(group) for group in result.groups]}


_NO_PREDICTION: dict[str, Any] = dict.fromkeys(
    ("clients_per_round", "local_steps", "expected_rounds", "rounds", "time_s", "energy_j", "cost")
)


def _as_json(request: Request, result: Plan, what_ifs: list[WhatIf]) -> dict[str, Any]:
    certificate = result.certificate
    return {
        "success": result.success,
        "status": result.status,
        "method": result.method,
        "participation": participation_json(result),
        **(_prediction_json(result.prediction) if result.prediction else _NO_PREDICTION),
        "cost_unit": result.unit,
        "co2_g": _co2_g(request, result),
        "relative_to": request.relative_to,
        "certificate": certificate
        and {
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap,
        },
        "regret": result.regret,
        "binding": list(result.binding),
        "alternatives": [
            {
                "name": other.name,
                **_prediction_json(other.prediction),
                "cost_ratio": other.cost_ratio,
                "feasible": other.feasible,
            }
            for other in result.alternatives
        ],
        "best_attainable": {
            name: _prediction_json(best) for name, best in result.best_attainable.items()
        },
        "sensitivity": [
            {
                "if": case.name,
                "clients_per_round": case.clients_per_round,
                "local_steps": case.local_steps,
                "regret": case.regret,
            }
            for case in what_ifs
        ],
        "message": _message(request, result),
    }


def _co2_g(request: Request, result: Plan) -> float | None:
    """Grams of CO2, where the carbon intensity of the electricity was given."""
    if request.prices is None or result.prediction is None or not request.prices.co2_g_per_kwh:
        return None
    return request.prices.co2_g(result.prediction.energy_j)


def _message(request: Request, result: Plan) -> str:
    from fedplan.convergence.estimation import Estimate

    parts = [result.message]
    if request.relative_to:
        parts.append(
            "Rounds, time, energy, cost and limits are in relative units: they are for "
            f"{request.relative_to}."
        )
    if isinstance(request.knowledge, Estimate):
        parts.append(f"Pilots: {request.knowledge.message}")
    return " ".join(parts)


def _print_table(request: Request, result: Plan, what_ifs: list[WhatIf]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    if result.prediction is None:
        out.print(Text.assemble(("No feasible plan. ", "bold red"), _message(request, result)))
        return
    best, of_what = result.prediction, request.of_what
    facts = Table.grid(padding=(0, 3))
    for name, value in (
        who_trains(
            result.participation,
            best.clients_per_round,
            len(result.groups),
            len(request.problem.fleet),
        ),
        ("local steps", f"[bold]{best.local_steps:,}[/]"),
        (f"rounds{of_what}", f"{best.rounds:,}"),
        (f"time{of_what}", seconds(best.time_s)),
        (f"energy{of_what}", joules(best.energy_j)),
        (f"cost{of_what}", f"{amount(best.cost)} ({result.unit})"),
    ):
        facts.add_row(name, value)
    if (co2_g := _co2_g(request, result)) is not None:
        facts.add_row(f"carbon{of_what}", f"{amount(co2_g)} g CO2")
    out.print(facts)
    if result.groups:
        out.print()
        out.print(_group_table(result))
    title = f"What other settings would pay{of_what}"
    others = Table(title=title, title_justify="left", box=None)
    for name in ("setting", "K", "E", "rounds", "time", "energy", "cost"):
        others.add_column(name, justify="left" if name == "setting" else "right")
    for other in result.alternatives:
        p = other.prediction
        note = "" if other.feasible else " (breaks a constraint)"
        others.add_row(
            other.name + note,
            count_or_dash(p.clients_per_round),
            f"{p.local_steps:,}",
            f"{p.rounds:,}",
            seconds(p.time_s),
            joules(p.energy_j),
            difference(other.cost_ratio),
        )
    out.print()
    out.print(others)
    if what_ifs:
        out.print()
        out.print(_what_if_table(result, what_ifs))
    out.print()
    out.print(_message(request, result), markup=False)


def _what_if_table(result: Plan, what_ifs: list[WhatIf]) -> Table:
    from rich.table import Table

    table = Table(title="If the truth were otherwise", title_justify="left", box=None)
    names = ["if", "best E", "staying costs"]
    if not result.groups:
        names.insert(1, "best K")
    for name in names:
        table.add_column(name, justify="left" if name == "if" else "right")
    for case in what_ifs:
        clients = [] if result.groups else [count_or_dash(case.clients_per_round)]
        table.add_row(case.name, *clients, f"{case.local_steps:,}", f"+{case.regret:.1%}")
    return table


def _group_table(result: Plan) -> Table:
    from rich.table import Table

    table = Table(title="Who trains when", title_justify="left", box=None)
    for name in ("group", "devices", "share of data", "share of rounds", "round", "energy"):
        table.add_column(name, justify="right")
    for number, row in enumerate(result.groups, 1):
        table.add_row(
            f"{number:,}",
            f"{row.clients:,}",
            f"{row.data_share:.1%}",
            f"{row.frequency:.1%}",
            seconds(row.time_s),
            joules(row.energy_j),
        )
    return table
