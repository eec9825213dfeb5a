from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from children import restore_interrupts

from fedplan.cli import main
from fedplan.tasks import mnist

restore_interrupts()
# Workers and commands inherit it: there is one of them for each core, and threads of libraries
# that wait for each other spin.
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Or every command and every worker would compile fedplan and the tests anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

SHARED = Path(__file__).parents[2] / "shared" / "data"
SETUP3 = """step_time_s,comm_time_s,step_energy_j,comm_energy_j,count
0.1,2,0.001,0.02,100
"""
PILOTS = """clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower
3,30,1.5,1.3,60,130
10,20,1.5,1.3,80,150
20,45,1.5,1.3,40,72
50,70,1.5,1.3,30,55
3,70,1.5,1.3,50,95
20,20,1.5,1.3,80,148
"""


# Files of tests that take longest, the longest first; some wait for other processes most of the
# time, so there is one worker more than there are cores.
LONGEST = (
    "tests/flower/test_pairs.py",
    "tests/flower/test_deployment.py",
    "tests/docs/test_site.py",
    "tests/docs/test_blocks.py",
    "tests/contracts/test_courses.py",
    "tests/flower/test_strategy.py",
    "tests/flower/test_epochs.py",
    "tests/cli/test_simulate.py",
    "tests/cli/test_terminal.py",
    "tests/reproduction/test_suite.py",
    "tests/flower/test_planned.py",
    "tests/flower/test_server.py",
    "tests/cli/test_compare.py",
)


def pytest_xdist_auto_num_workers() -> int:
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)  # when those that are not to run have been left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest: `--dist worksteal` gives each worker an equal slice first."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    long: dict[str, list[pytest.Item]] = {name: [] for name in LONGEST}
    rest: list[pytest.Item] = []
    for item in items:
        long.get(item.nodeid.partition("::")[0], rest).append(item)
    begun: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for place, tests in enumerate(long.values()):
        begun[place % workers].extend(tests)
    for place, slice_ in enumerate(begun):
        size = (len(items) + place) // workers  # as xdist has them: later ones may be longer
        taken = max(0, size - len(slice_))
        slice_.extend(rest[:taken])
        del rest[:taken]
    items[:] = [item for slice_ in begun for item in slice_] + rest


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def fedplan(monkeypatch, capsys):
    """Run the command line in this process: fedplan("plan", "--example") -> Result."""

    def run(*words: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["fedplan", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Result(int(stop.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def fleet_csv(tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text(SETUP3)
    return path


@pytest.fixture
def pilots_csv(tmp_path):
    path = tmp_path / "pilots.csv"
    path.write_text(PILOTS)
    return path


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """The full MNIST files, where this machine has them."""
    roots = [SHARED / "mnist"]
    if os.environ.get("FEDPLAN_DATA"):
        roots += [Path(os.environ["FEDPLAN_DATA"]) / "mnist", Path(os.environ["FEDPLAN_DATA"])]
    for root in roots:
        if (root / mnist.FILES[0].name).exists():
            return root
    pytest.skip("the full MNIST files are not here; set FEDPLAN_DATA to their folder")
