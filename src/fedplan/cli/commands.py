"""All commands by name; `fedplan.cli.main` runs them."""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from fedplan import __version__
from fedplan.cli.compare import compare
from fedplan.cli.estimate import estimate
from fedplan.cli.frontier import frontier
from fedplan.cli.learn import learn
from fedplan.cli.plan import plan
from fedplan.cli.profile import profile
from fedplan.cli.run import run
from fedplan.cli.serve import serve
from fedplan.cli.show import list_, show
from fedplan.cli.simulate import simulate
from fedplan.cli.stored import export, plot, report
from fedplan.cli.sweep import sweep

_REPRODUCE = (
    "fedplan reproduce is part of fedplan's repository, not of this installation. In a checkout: "
    "pip install ./reproduction, or make run, which installs it too."
)


class Commands(click.Group):
    """fedplan's own commands, and those that other packages have in `fedplan.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name."""
        return sorted({*super().list_commands(ctx), *entry_points(group="fedplan.commands").names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command; one of another package is imported when it is asked for."""
        if (command := super().get_command(ctx, cmd_name)) is not None:
            return command
        for found in entry_points(group="fedplan.commands", name=cmd_name):
            loaded: click.Command = found.load()
            return loaded
        if cmd_name == "reproduce":
            raise click.UsageError(_REPRODUCE)
        return None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="fedplan")
def cli() -> None:
    """Find how many clients per round (K) and local steps (E) train at the lowest cost.

    \b
    Start here:
      fedplan run                                 pilots, plan, training, check: a small study
      fedplan plan --example                      a plan for a built-in fleet
      fedplan serve                               the same on a page with sliders
      fedplan profile                             seconds and joules of this device
      fedplan plan --fleet fleet.csv --pilots pilots.csv --energy-weight 0.3
      fedplan estimate --pilots pilots.csv --num-clients 100
      fedplan learn runs.csv                      how many local steps pay, from runs you have
      fedplan frontier --fleet fleet.csv --ratio 3750 --plot frontier.png
      fedplan simulate demo --plot demo.png       train a small study, in seconds
      fedplan sweep demo                          every K x E of a grid, and what each costs
      fedplan compare demo                        courses of fedplan and of others, on one bill
      fedplan list                                what has been stored
      fedplan report demo -o report.html          a study as a page to read and to send

    Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
    2 wrong input, 3 no feasible plan, 130 interrupted.
    """


for command in (
    run, plan, profile, estimate, learn, frontier, simulate, sweep, compare, list_, show, plot,
    export, report, serve,
):  # fmt: skip
    cli.add_command(command)
