"""`fedplan export`: the runs of a study or experiment as a file."""

from __future__ import annotations

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import print_json
from fedplan.cli.stored import one_stored


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where to: .csv, .json or .parquet."
)
@store_options
def export(name: str, output: str, store_url: str, output_format: str) -> None:
    """Write the runs of a study or an experiment into a file, round by round.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows.

    \b
    Examples:
      fedplan export demo --output demo.csv
      fedplan export 3f2a --output runs.parquet     needs polars: pip install 'fedplan[frames]'
    """
    from fedplan.store import check_export, export_runs

    with one_stored(store_url, name, lambda: check_export(output)) as (store, entry):
        num_runs = export_runs(store, entry, output)
    if output_format == "json":
        print_json({"success": True, "output": output, "num_runs": num_runs})
    else:
        click.echo(f"Exported: {num_runs:,} runs to {output}")
