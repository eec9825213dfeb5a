"""`fedplan report`: a study of the store as one HTML file."""

from __future__ import annotations

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import check_file, print_json
from fedplan.cli.stored import one_stored


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--output",
    "-o",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="Where to: .html.",
)
@store_options
def report(name: str, output: str, store_url: str, output_format: str) -> None:
    """Write what a study has come to as a page: one HTML file that works offline and on paper.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows. Nothing is trained: a study that has not ended is reported as far as it got.

    \b
    Examples:
      fedplan report demo
      fedplan report demo -o demo.html
      fedplan report 3f2a --store sqlite:///runs/fedplan.db -o study.html
    """
    with one_stored(store_url, name, lambda: check_file(output, (".html",))) as (store, entry):
        from fedplan.studies.recalling import recall
        from fedplan.web.report import write_report

        found = recall(store, entry)
    write_report(found, output)
    if output_format == "json":
        status = None if found.outcome is None else found.outcome.status
        print_json({"success": True, "output": output, "status": status})
    else:
        click.echo(f"Written: {output}")
