"""`python tools/prototype`: a Flower federation of shaped devices on one Linux machine.

It starts Flower's own programs and imports nothing of Flower; of fedplan it uses the errors.
"""

from __future__ import annotations

import os
import sys

import click

from commands import PROGRAM, prototype
from fedplan.errors import FedplanError
from output import fail


def main() -> None:
    """Run the tool; every error ends in one clear message and its exit code."""
    try:
        # Not prototype.main(), which ends a closed pipe with 1 by itself.
        with prototype.make_context(PROGRAM, sys.argv[1:]) as context:
            prototype.invoke(context)
        sys.stdout.flush()
        code = 0
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        code = error.exit_code
    except (FedplanError, click.ClickException) as error:
        code = fail(error)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        code = 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # standard output itself: a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"Error: cannot write the result ({error.strerror}).", err=True)
        code = 1
    sys.exit(code)


main()
