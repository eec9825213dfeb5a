"""Many pages at once: no error, quick answers, no growth; the minute-long one is a benchmark."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "explorer.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("explorer_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fifty_pages_for_five_seconds(server, benchmark):
    before = benchmark.memory_mb(server.process.pid)
    load = asyncio.run(benchmark.many_clients(server.port, clients=50, seconds=5.0))
    assert load.errors == 0
    assert len(load.seconds) > 50  # everybody was answered
    # The bound of the benchmark is half a second; here other tests run on the same cores.
    assert load.percentile(95) < 3.0
    assert benchmark.memory_mb(server.process.pid) - before < 150
