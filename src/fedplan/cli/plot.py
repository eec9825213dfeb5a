"""`fedplan plot`: the figure of a finished study, from the store alone."""

from __future__ import annotations

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import check_plot, print_json
from fedplan.cli.run import draw_outcome
from fedplan.errors import Collector


@click.command()
@click.argument("study", metavar="STUDY")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--output", "-o", required=True, metavar="FILE", help="Where to: .png, .svg or .html."
)
@store_options
def plot(
    study: str, overrides: tuple[str, ...], output: str, store_url: str, output_format: str
) -> None:
    """Draw a study that `fedplan run` has finished, without training anything.

    STUDY and KEY=VALUE are those that `fedplan run` was given. The figure shows the pilots and what
    was fitted to them, training and its predicted end, what other settings would cost, and the
    bill.

    \b
    Examples:
      fedplan plot demo -o demo.png
      fedplan plot setup3 energy-weight=0.5 -o setup3.html
      fedplan plot study.toml --store sqlite:///runs/fedplan.db -o study.svg
    """
    from fedplan.store import Store
    from fedplan.studies import read_study

    collector = Collector()
    collector.attempt(lambda: check_plot(output))
    read = collector.attempt(lambda: read_study(study, overrides))
    collector.finish()
    if read is None:
        raise AssertionError("a study that cannot be read is a noted problem")

    from fedplan.studies.building import build_experiment
    from fedplan.studies.workflow import recall_study

    experiment = build_experiment(read)
    with Store(store_url, readonly=True) as store:
        outcome = recall_study(experiment, store)
    draw_outcome(experiment, outcome, output)
    if output_format == "json":
        print_json({"success": True, "output": output, "status": outcome.status})
