"""Many pages at once: no error, quick answers, no growth; the minute-long one is a benchmark."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("explorer")


@pytest.mark.slow  # a limit in seconds, for a machine that does nothing else
def test_fifty_pages_for_five_seconds(server, benchmark):
    before = benchmark.memory_mb(server.process.pid)
    with ThreadPoolExecutor(1) as thread:  # the browser's tests keep a loop in this one
        pages = benchmark.many_clients(server.port, clients=50, seconds=5.0)
        load = thread.submit(asyncio.run, pages).result()
    assert load.errors == 0
    assert len(load.seconds) > 50  # everybody was answered
    # The bound of the benchmark is half a second; here other tests run on the same cores.
    assert load.percentile(95) < 3.0
    assert benchmark.memory_mb(server.process.pid) - before < 150
