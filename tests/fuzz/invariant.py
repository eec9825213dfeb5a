"""What must hold of every entry point, whatever it is given; and how many tries are made of it.

`make fuzz` sets FEDPLAN_FUZZ to 20,000 tries of each kind of input.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from unittest import mock

from hypothesis import HealthCheck, settings

from fedplan.cli import main

EXAMPLES = int(os.environ.get("FEDPLAN_FUZZ", "100"))
SECONDS, MEGABYTES = 10.0, 1000  # of one try; seconds of this process alone
CODES = (0, 1, 2, 3, 130)
SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
tries = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=SUPPRESSED,
    derandomize=EXAMPLES <= 300,
)


@contextmanager
def bounded():
    """A try that takes little time and memory; warnings and exceptions fail it anyway."""
    begun, memory = time.process_time(), _peak_mb()
    yield
    assert time.process_time() - begun < SECONDS
    assert _peak_mb() - memory < MEGABYTES


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
