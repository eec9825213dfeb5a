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
