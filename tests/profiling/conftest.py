"""A clock of the tests' own, so that a busy machine changes no time."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from fedplan.profiling import timing


@pytest.fixture
def clock(monkeypatch):
    """By which calls are timed; whoever trains moves `now` on."""
    clock = SimpleNamespace(now=0.0)
    own = SimpleNamespace(perf_counter=lambda: clock.now, process_time=time.process_time)
    monkeypatch.setattr(timing, "time", own)
    return clock
