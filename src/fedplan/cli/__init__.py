"""The command line: one file per command; the only place that prints."""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

WHEN_STOPPED = "fedplan.when_stopped"  # key of a context's message of an interruption


def main() -> None:
    """Run the command line; every error ends in one clear message and its exit code."""
    sys.exit(_run())


class _Stopped(KeyboardInterrupt):
    """Raised by a signal and caught by `_run`; unlike its parent, it can be weakly referenced."""


class _Signals:
    """SIGTERM ends a command as Ctrl-C does: at any moment, and once.

    Python drops exceptions raised in finalizers and in callbacks of weak references, which imports
    and compilers call all the time, and C code may drop them, too. A dropped exception is freed, so
    a timer checks whether it still exists, and raises another one if not. While it exists, further
    signals are ignored, so that they do not interrupt cleaning up.
    """

    LOOKS_EVERY_S = 0.05

    def __init__(self) -> None:
        self._usual: dict[int, Any] = {}
        self._raised: weakref.ref[_Stopped] | None = None

    @property
    def heard(self) -> bool:
        """Whether the command is to stop."""
        return self._raised is not None

    def listen(self) -> None:
        """From here on a signal raises, unless it is ignored or handled already."""
        if threading.current_thread() is not threading.main_thread():
            return
        for each, handler in (
            (signal.SIGINT, signal.default_int_handler),
            (signal.SIGTERM, signal.SIG_DFL),
        ):
            if signal.getsignal(each) is handler:
                self._usual[each] = handler
                signal.signal(each, self._raise)

    def end(self) -> None:
        """From here on nothing is raised; if a signal was heard, later ones are ignored."""
        for each, handler in self._usual.items():
            signal.signal(each, signal.SIG_IGN if self.heard else handler)
        if self.heard and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _raise(self, *_: Any) -> None:
        if self._raised is None:
            self._look_again()
        elif self._raised() is not None:
            return
        error = _Stopped()
        self._raised = weakref.ref(error)
        try:
            raise error
        finally:
            del error  # its own traceback would keep it alive

    def _look_again(self) -> None:
        report = sys.unraisablehook
        sys.unraisablehook = lambda what: None if what.exc_type is _Stopped else report(what)
        if hasattr(signal, "setitimer"):  # Windows has none
            signal.signal(signal.SIGALRM, self._raise)
            signal.setitimer(signal.ITIMER_REAL, self.LOOKS_EVERY_S, self.LOOKS_EVERY_S)


def _run() -> int:
    """Run a command and return its exit code, also if it is interrupted."""
    signals = _Signals()
    contexts: list[click.Context] = []
    try:
        signals.listen()
        code = _command(contexts)
        signals.end()
    except (KeyboardInterrupt, Exception) as error:
        signals.end()
        # Python turns Ctrl-C in the body of a class into an error.
        if not (signals.heard or isinstance(error, KeyboardInterrupt)):
            raise
        said = contexts[0].meta if contexts else {}
        _say(said.get(WHEN_STOPPED, "Stopped."))
        if threading.active_count() > 1:
            os._exit(130)  # without waiting for a simulated round, which cannot be interrupted
        return 130
    return code


def _command(contexts: list[click.Context]) -> int:
    """Run a command and return its exit code. Imports are inside, where Ctrl-C is handled."""
    try:
        if not _has_streams():
            return 1
        import click

        from fedplan.cli.commands import cli
        from fedplan.cli.output import fail
        from fedplan.errors import FedplanError

        try:
            # Not cli.main(), which would itself exit with 1 when a pipe is closed.
            with cli.make_context("fedplan", sys.argv[1:]) as context:
                contexts.append(context)
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
    except BrokenPipeError:  # the reader (head, less) has seen enough
        _discard_output()
    except OSError as error:  # most often standard output itself: a full disk
        _discard_output()
        what = f"use {error.filename}" if error.filename else "write the result"
        _say(f"Error: cannot {what} ({error.strerror or error}).")
        return 1
    except MemoryError:
        _say(
            "Error: not enough memory. Merge equal devices of a fleet by count, or lower the "
            "study's num-clients."
        )
        return 1
    return 0


def _has_streams() -> bool:
    """Whether results can be printed; characters that the encoding lacks are replaced."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  # for the rest of the process
    if sys.stdout is None:
        _say("Error: standard output is closed. Send it to /dev/null where nobody reads it.")
        return False
    for stream in (sys.stdout, sys.stderr):
        if (change := getattr(stream, "reconfigure", None)) is not None:
            change(errors="replace")
    return True


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
