"""The law that CONTRIBUTING.md shows is a law: one file and one line, as the page has them."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

import pytest
from contracts.participation import CLIENTS, FLEET, PROBLEM, ParticipationContract
from docs.pages import BLOCKS

from fedplan import make_plan
from fedplan.core.records import Stop
from fedplan.models import Logistic
from fedplan.participation import LAWS
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic

FILE, LINE, *_ = (
    block.text for block in BLOCKS if block.page == "CONTRIBUTING.md" and block.language == "python"
)
PROGRAM = f"""
from neighbours import Neighbours
from fedplan.participation import LAWS
{LINE}
from fedplan.cli import main
main()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "neighbours.py").write_text(FILE)
    return tmp_path


@pytest.fixture
def neighbours(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "neighbours", raising=False)
    law = importlib.import_module("neighbours").Neighbours
    monkeypatch.setitem(LAWS, law.law, law)  # what the line does, undone after the test
    return law


class TestNeighbours(ParticipationContract):
    @pytest.fixture(params=[1, 4, 6])
    def law(self, neighbours, request):
        return neighbours(clients_per_round=request.param)

    def possible_cohorts(self, law):
        k = law.clients_per_round
        rows = [[(first + place) % CLIENTS for place in range(k)] for first in range(CLIENTS)]
        return [(1 / CLIENTS, row) for row in rows]


def test_it_is_planned_and_trained(neighbours):
    setting = make_plan(PROBLEM, participation="neighbours").setting
    assert isinstance(setting.participation, neighbours)
    learner = Logistic(synthetic(1, 1, num_clients=CLIENTS))
    run = Simulator(learner, LearningRate(initial=0.05), FLEET).run(setting, Stop(max_rounds=3))
    assert run.losses[-1] < run.losses[0] and run.time_s > 0


def test_commands_and_study_files_know_it(folder):
    def fedplan(*words):
        path = os.pathsep.join([str(folder), *sys.path])
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert "|neighbours]" in fedplan("plan", "-h")
    found = fedplan("plan", "--example", "--participation", "neighbours", "--format", "json")
    assert json.loads(found)["participation"]["law"] == "neighbours"
    words = ["num-clients=6", "participation=neighbours", "clients-per-round=2", "seeds=1"]
    words += ["local-steps=9", "rounds=200", "target-loss=1.3", "--format", "json"]
    (cell,) = json.loads(fedplan("sweep", "demo", *words))["cells"]
    assert cell["reached"] == 1
