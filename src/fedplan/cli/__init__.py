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

WHEN_STOPPED = "fedplan.when_stopped"  # where a context keeps what to say of an interruption


def main() -> None:
    """Run the command line; every error ends in one clear message and its exit code."""
    sys.exit(_run())


class _Stopped(KeyboardInterrupt):
    """A signal on its way to `_run`; unlike its parent it can be referred to weakly."""


class _Signals:
    """SIGTERM ends a command as Ctrl-C does: at any moment, and once.

    Python drops what is raised in finalizers and callbacks of weak references, which imports and
    compilers call all the time, and C code may drop it, too. What was dropped is freed, so a timer
    looks whether the exception still lives, and raises the next one if not. While it lives, further
    signals leave alone what cleans up on its way.
    """

    LOOKS_EVERY_S = 0.05  # soon for a person, rare for a machine

    def __init__(self) -> None:
        self._usual: dict[int, Any] = {}
        self._raised: weakref.ref[_Stopped] | None = None

    @property
    def heard(self) -> bool:
        """Whether the command is to stop."""
        return self._raised is not None

    def listen(self) -> None:
        """From here on a signal raises, unless whoever started this wants something else of it."""
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
        """From here on nothing is raised; once one was heard, no signal is listened to."""
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
        if hasattr(signal, "setitimer"):  # not so on Windows
            signal.signal(signal.SIGALRM, self._raise)
            signal.setitimer(signal.ITIMER_REAL, self.LOOKS_EVERY_S, self.LOOKS_EVERY_S)


def _run() -> int:
    """Run a command: its exit code, whatever happens, and whoever stops it when."""
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
            os._exit(130)  # a simulated round cannot be interrupted, and nobody waits for it
        return 130
    return code


def _command(contexts: list[click.Context]) -> int:
    """Run a command: its exit code. What it needs is imported where Ctrl-C is expected already."""
    try:
        if not _has_streams():
            return 1
        import click

        from fedplan.cli.commands import cli
        from fedplan.cli.output import fail
        from fedplan.errors import FedplanError

        try:
            # Not cli.main(), which ends a closed pipe with 1 by itself.
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
    return 0


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


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
