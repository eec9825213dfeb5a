"""What must hold of every entry point, whatever it is given; and how many tries are made of it.

`make fuzz` sets FEDPLAN_FUZZ to 20,000 tries of each kind of input.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, settings

from fedplan.cli import main

EXAMPLES = int(os.environ.get("FEDPLAN_FUZZ", "300"))
SECONDS, MEGABYTES = 10.0, 1000  # of one try; seconds of this process alone
CODES = (0, 1, 2, 3, 130)
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
tries = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=SUPPRESSED,
    derandomize=EXAMPLES <= 300,
)


class TookTooLong(BaseException):
    """Raised in the middle of a try; nobody can take it for an error of the input."""


@contextmanager
def bounded(megabytes=MEGABYTES):
    """A try that takes little time and memory; warnings and exceptions fail it anyway."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    begun, memory = time.process_time(), _memory_mb("VmRSS")
    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert time.process_time() - begun < SECONDS
    assert _memory_mb("VmHWM") - memory < megabytes


def _stop(*_):
    raise TookTooLong(f"more than {SECONDS:g} s of the processor")


def _memory_mb(which: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{which}:")[1].split()[0]) / 1024


def folder():
    """A folder in memory where there is one: it is the program that is tried, not the disk."""
    in_memory = "/dev/shm"  # noqa: S108
    return tempfile.TemporaryDirectory(dir=in_memory if os.access(in_memory, os.W_OK) else None)


def run(*words: object) -> tuple[int, str]:
    """Run a command: its exit code and what it says on standard error."""
    out, err = StringIO(), StringIO()
    given = ["fedplan", *map(str, words)]
    with bounded(), mock.patch.object(sys, "argv", given):
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    said = err.getvalue()
    assert code in CODES, said
    assert "Traceback" not in said and "Warning" not in said, said
    if code == 2:
        assert said.startswith(("Error: ", "Usage: ")), said
        assert not out.getvalue(), "wrong input has no result"
    return code, said
