"""`fedplan estimate`: the convergence bound that pilots support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import output_options
from fedplan.cli.output import amount, check_plot, console, print_json, save_plot
from fedplan.errors import Collector

if TYPE_CHECKING:
    from fedplan.convergence.estimation import Estimate


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
    pilots_file: str,
    num_clients: int,
    method: Any,
    output_format: str,
    plot: str | None,
) -> None:
    """Fit a0, b0 and c0 to pilot runs, with intervals.

    The pilots' rounds fix the bound up to a common factor: a0, b0 and c0 are in units of the
    descent from upper_loss to lower_loss. Plans need no more.

    \b
    Examples:
      fedplan estimate --pilots pilots.csv --num-clients 100
      fedplan estimate --pilots pilots.csv --num-clients 100 --method pairwise --format json
    """
    from fedplan.convergence.estimation import estimate_bound
    from fedplan.figures import fit_figure_data
    from fedplan.tables import read_pilots

    collector = Collector()
    collector.attempt(lambda: check_plot(plot))
    if num_clients < 1:
        collector.add(f"--num-clients must be an integer >= 1, but got {num_clients}.")
    known = num_clients if num_clients >= 1 else None
    pilots = collector.attempt(lambda: read_pilots(pilots_file, num_clients=known)) or []
    collector.finish()
    result = estimate_bound(pilots, num_clients, method=method)
    if plot is not None:
        save_plot(fit_figure_data(pilots, result, num_clients), plot)
    if output_format == "json":
        print_json(_as_json(result))
    else:
        _print_table(result)
    if not result.success:
        raise click.exceptions.Exit(1)


def _as_json(result: Estimate) -> dict[str, Any]:
    bound = result.bound
    return {
        "success": result.success,
        "status": result.status,
        "method": result.method,
        "ratio": result.ratio,
        "ratio_interval": list(result.ratio_interval),
        "a0": bound and bound.a0,
        "b0": bound and bound.b0,
        "c0": bound and bound.c0,
        "intervals": {name: list(interval) for name, interval in result.intervals.items()},
        "relative_error": result.relative_error,
        "pairs_used": result.pairs_used,
        "pairs_rejected": result.pairs_rejected,
        "suggested_pilot": result.suggested_pilot
        and dict(zip(("clients_per_round", "local_steps"), result.suggested_pilot, strict=True)),
        "message": result.message,
    }


def _print_table(result: Estimate) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table(box=None)
    for name in ("", "estimate", "from", "to"):
        table.add_column(name, justify="left" if not name else "right")
    rows = {"a0 / b0": (result.ratio, result.ratio_interval)}
    if result.bound is not None:
        for name in ("a0", "b0", "c0"):
            interval = result.intervals.get(name)
            if interval is not None:
                rows[name] = (getattr(result.bound, name), interval)
    for name, (value, (low, high)) in rows.items():
        table.add_row(name, *map(amount, (value, low, high)))
    out.print(table)
    pairs = f"{result.pairs_used} give a ratio and {result.pairs_rejected} do not"
    status = (f"\n{result.status}", "bold")
    words = f" ({result.method}). {result.message} Of the pairs of pilots {pairs}."
    out.print(Text.assemble(status, words))
