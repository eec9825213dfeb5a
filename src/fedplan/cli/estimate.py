"""`fedplan estimate`: fit the convergence bound to pilots."""

from collections.abc import Iterator
from typing import Any

import click

from fedplan.cli.options import output_options
from fedplan.cli.output import check_file, draw, picked, print_result
from fedplan.convergence.estimation import Estimate, estimate_bound
from fedplan.errors import Collector
from fedplan.figures import fit_figure_data
from fedplan.tables import read_pilots
from fedplan.words import Table, amount


@click.command()
@click.option("--pilots", "pilots_file", required=True, metavar="CSV", help="Pilot runs.")
@click.option("--num-clients", type=int, required=True, metavar="N", help="Devices in the fleet.")
@click.option(
    "--method",
    type=click.Choice(["joint", "pairwise"]),
    default="joint",
    show_default=True,
    help="One fit of all pilots, or the paper's average over pairs.",
)
@output_options
def estimate(
    pilots_file: str, num_clients: int, method: Any, output_format: str, plot: str | None
) -> None:
    """Fit a0, b0 and c0 to pilot runs, with intervals.

    The pilots' rounds determine the bound up to a common factor: a0, b0 and c0 are in units of the
    descent from upper_loss to lower_loss. Plans need no more than that.

    \b
    Examples:
      fedplan estimate --pilots pilots.csv --num-clients 100
      fedplan estimate --pilots pilots.csv --num-clients 100 --method pairwise --format json
    """
    collector = Collector()
    collector.attempt(lambda: check_file(plot))
    if num_clients < 1:
        collector.add(f"--num-clients must be an integer >= 1, but got {num_clients}.")
    known = num_clients if num_clients >= 1 else None
    pilots = collector.attempt(lambda: read_pilots(pilots_file, num_clients=known)) or []
    collector.finish()
    result = estimate_bound(pilots, num_clients, method=method)
    draw(plot, lambda: fit_figure_data(pilots, result, num_clients), otherwise="there is no fit")
    print_result(output_format, _as_json(result), _blocks(result))


def _as_json(result: Estimate) -> dict[str, Any]:
    pilot = result.suggested_pilot
    return {
        **picked(result, "success", "status", "method", "ratio", "ratio_interval"),
        **picked(result.bound, "a0", "b0", "c0"),
        **picked(result, "intervals", "relative_error", "pairs_used", "pairs_rejected"),
        "suggested_pilot": pilot and {"clients_per_round": pilot[0], "local_steps": pilot[1]},
        "message": result.message,
    }


def _blocks(result: Estimate) -> Iterator[Table | str]:
    rows = {"a0 / b0": (result.ratio, result.ratio_interval)}
    if result.bound is not None:
        rows |= {name: (getattr(result.bound, name), i) for name, i in result.intervals.items()}
    cells = [(name, *map(amount, (value, *ends))) for name, (value, ends) in rows.items()]
    yield Table(("", "estimate", "from", "to"), cells, left=("",))
    pairs = f"{result.pairs_used} with a ratio, {result.pairs_rejected} without"
    yield f"{result.status} ({result.method}). {result.message} Pairs of pilots: {pairs}."
