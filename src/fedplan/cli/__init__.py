"""The command line: `fedplan plan | estimate | frontier`; the only place that prints."""

from __future__ import annotations

import sys

import click

from fedplan import __version__
from fedplan.cli.estimate import estimate
from fedplan.cli.frontier import frontier
from fedplan.cli.output import fail
from fedplan.cli.plan import plan
from fedplan.errors import FedplanError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="fedplan")
def cli() -> None:
    """Find how many clients per round (K) and local steps (E) train at the lowest cost.

    \b
    Start here:
      fedplan plan --example                      a plan for a built-in fleet
      fedplan plan --fleet fleet.csv --pilots pilots.csv --energy-weight 0.3
      fedplan estimate --pilots pilots.csv --num-clients 100
      fedplan frontier --fleet fleet.csv --ratio 3750 --plot frontier.png

    Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
    2 wrong input, 3 no feasible plan.
    """


for command in (plan, estimate, frontier):
    cli.add_command(command)


def main() -> None:
    """Run the command line; every error ends in one clear message and its exit code."""
    try:
        code = cli.main(standalone_mode=False)
    except FedplanError as error:
        code = fail(error)
    except click.ClickException as error:
        code = fail(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
        code = 0
    sys.exit(code or 0)
