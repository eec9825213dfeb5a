"""The command line: one file per command; the only place that prints."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import click

WHEN_STOPPED = "fedplan.when_stopped"  # where a context keeps what to say of an interruption


def main() -> None:
    """Run the command line; every error ends in one clear message and its exit code."""
    sys.exit(_run())


def _run() -> int:
    """Run a command: its exit code. What it needs is imported where Ctrl-C is expected already."""
    context: click.Context | None = None
    stopping = threading.Event()
    try:
        _listen_to_signals(stopping)
        if not _has_streams():
            return 1
        import click

        from fedplan.cli.commands import cli
        from fedplan.cli.output import fail
        from fedplan.errors import FedplanError

        try:
            # Not cli.main(), which ends a closed pipe with 1 by itself.
            with cli.make_context("fedplan", sys.argv[1:]) as context:
                cli.invoke(context)
            sys.stdout.flush()
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return error.exit_code
        except (FedplanError, click.ClickException) as error:
            return fail(error)
        except click.Abort:
            raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        return _stopped(context)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        _discard_output()
    except OSError as error:  # standard output itself: a full disk
        _discard_output()
        _say(f"Error: cannot write the result ({error.strerror}).")
        return 1
    except MemoryError:
        _say(
            "Error: not enough memory. Merge equal devices of a fleet by count, or lower the "
            "study's num-clients."
        )
        return 1
    except Exception:
        if not stopping.is_set():
            raise
        return _stopped(context)  # Python turns Ctrl-C in the body of a class into an error
    return 0


def _listen_to_signals(stopping: threading.Event) -> None:
    """End by SIGTERM as by Ctrl-C; what comes while the command ends is not listened to."""
    if threading.current_thread() is not threading.main_thread():
        return

    def stop(*_: Any) -> NoReturn:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        stopping.set()
        raise KeyboardInterrupt

    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for each, handler in usual.items():
        if signal.getsignal(each) is handler:  # else whoever started this wants something else
            signal.signal(each, stop)


def _has_streams() -> bool:
    """Whether results can be printed; what an encoding lacks is replaced, not an error."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  # for the rest of the process
    if sys.stdout is None:
        _say("Error: standard output is closed. Send it to /dev/null where nobody reads it.")
        return False
    for stream in (sys.stdout, sys.stderr):
        if (change := getattr(stream, "reconfigure", None)) is not None:
            change(errors="replace")
    return True


def _stopped(context: click.Context | None) -> int:
    said = {} if context is None else context.meta
    _say(said.get(WHEN_STOPPED, "Stopped."))
    if threading.active_count() > 1:
        os._exit(130)  # a simulated round cannot be interrupted, and nobody waits for it
    return 130


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
