"""`fedplan plot`: the figure of a study, from the store alone."""

from __future__ import annotations

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import check_plot, print_json, save_plot
from fedplan.cli.stored import one_stored


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where to: .png, .svg or .html."
)
@store_options
def plot(name: str, output: str, store_url: str, output_format: str) -> None:
    """Draw a study or a sweep of the store, as far as it got, without training anything.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows. The figure of a study has the pilots and what was fitted to them, training and its
    predicted end, what other settings would cost, and the bill; that of a sweep the cost of every
    setting; that of other runs their losses.

    \b
    Examples:
      fedplan plot demo -o demo.png
      fedplan plot 3f2a -o study.html
      fedplan plot digits --store sqlite:///runs/fedplan.db -o digits.svg
    """
    with one_stored(store_url, name, lambda: check_plot(output)) as (store, entry):
        from fedplan.studies.picture import recalled_figure
        from fedplan.studies.recalling import recall

        found = recall(store, entry)
    save_plot(recalled_figure(found), output)
    if output_format == "json":
        status = None if found.outcome is None else found.outcome.status
        print_json({"success": True, "output": output, "status": status})
