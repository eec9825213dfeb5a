"""`fedplan frontier`: every (K, E) that nothing beats on both time and energy."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from fedplan.cli.options import constraint_options, law_options, output_options, problem_options
from fedplan.cli.output import draw, print_result
from fedplan.cli.question import read_question
from fedplan.errors import EXIT_INFEASIBLE
from fedplan.figures import frontier_figure_data
from fedplan.planning.frontier import FrontierPoint, frontier_by_law
from fedplan.words import Table, table_of


@click.command()
@problem_options
@law_options
@constraint_options
@output_options
def frontier(output_format: str, plot: str | None, **options: Any) -> None:
    """List every setting that nothing beats on both time and energy.

    Each is listed with the energy weights that select it, if any: a point may be cheapest at no
    weight.

    \b
    Examples:
      fedplan frontier --example --plot frontier.html
      fedplan frontier --fleet fleet.csv --ratio 3750 --deadline-s 3600 --format json
      fedplan frontier --fleet fleet.csv --participation turns
    """
    question = read_question(options, plot)
    gap, relative_to = question.convergence.target_gap, question.convergence.relative_to
    points, complete = frontier_by_law(
        question.problem, question.knowledge, question.participation, target_gap=gap
    )
    units = f" Relative units: for {relative_to}." if relative_to else ""
    count = "1 setting is" if len(points) == 1 else f"{len(points)} settings are"
    message = f"{count} not beaten on both time and energy.{units}"
    if not points:
        message = "No setting meets the limits. `fedplan plan` with them says the best attainable."
    if points and not complete:
        message += " Not every setting was looked at."
    draw(
        plot,
        lambda: frontier_figure_data(points, relative=relative_to or ""),
        when=bool(points),
        otherwise="there is no point to draw",
    )
    document = {
        "success": bool(points),
        "status": "ok" if points else "infeasible",
        "participation": question.participation,
        "complete": complete,
        "points": [asdict(point) for point in points],
        "message": message,
    }
    blocks = _blocks(points, question.of_what, message)
    print_result(output_format, document, blocks, code=EXIT_INFEASIBLE)


def _blocks(points: list[FrontierPoint], of_what: str, message: str) -> Iterator[Table | str]:
    if points:
        who = "groups" if any(point.groups for point in points) else "K"
        yield table_of(
            points,
            {
                who: lambda point: point.groups or point.clients_per_round,
                "E": "local_steps",
                f"time{of_what}": "time_s",
                f"energy{of_what}": "energy_j",
                "energy weight": _weights,
            },
        )
    yield message


def _weights(point: FrontierPoint) -> str:
    start, end = point.energy_weight_from, point.energy_weight_to
    return "-" if start is None or end is None else f"{start:.4f} .. {end:.4f}"
