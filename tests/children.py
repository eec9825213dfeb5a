"""Processes of the tests that can be interrupted, and that end whatever happens."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def restore_interrupts() -> None:
    """Let Ctrl-C end this process and its children, even where whoever started it ignores it.

    nohup, jobs in the background and some build machines do; a program under test that is to be
    interrupted would inherit that, and go on for ever.
    """
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def start(words: Sequence[str | Path], *, seconds: float = 300, **options: Any) -> subprocess.Popen:
    """Start a process that is killed after so long: whoever reads from it or waits for it goes on.

    In the main thread, for handlers of signals can be set there alone.
    """
    restore_interrupts()
    process = subprocess.Popen(words, **options)
    watch = threading.Thread(target=_end, args=(process, seconds), daemon=True)
    watch.start()
    return process


def _end(process: subprocess.Popen, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
