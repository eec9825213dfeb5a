"""Runs made on a cluster are those of this machine, whole and in order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from fedplan.errors import MissingExtraError
from fedplan.studies import ray_engine
from fedplan.studies.experiment import build_experiment
from fedplan.studies.study_file import read_study

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="ray is not installed: pip install 'fedplan[ray]'"
)
# A process of its own: ray starts others, and warns of what is to come.
COMPARE = """
import json, logging, sys
from fedplan.errors import FedplanError
from fedplan.core.setting import Setting
from fedplan.participation import Shuffled, Turns, Weighted, uniform
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
from fedplan.studies.ray_engine import RayEngine
from fedplan.studies.experiment import make_jobs
experiment = build_experiment(read_study("demo", ["rounds=8", "num-clients=6", "dropout=0.2"]))
laws = [Shuffled(clients_per_round=2, num_clients=6),
    Turns(groups=((0, 3), (1, 5), (2, 4)), visits=(3, 2, 1)),
    Weighted(clients_per_round=2, chances=(0.3, 0.1, 0.1, 0.2, 0.2, 0.1))]
others = [Setting(participation=law, local_steps=3) for law in laws]
jobs = make_jobs([*(uniform(k, e) for e in (30, 2) for k in (1, 3, 6)), *others], range(2))
engine, told, heard = RayEngine(experiment), [], []
made = list(engine.run_all(jobs, experiment.stop, finished=told.append,
    progress=lambda job, record: heard.append((job, record))))
expected = list(experiment.simulator.run_all(jobs, experiment.stop))
assert list(engine.run_all([], experiment.stop)) == []
try:
    list(engine.run_all(make_jobs([uniform(7, 1)], [0]), experiment.stop))
except FedplanError as error:
    wrong = str(error)
import ray
print(json.dumps({
    "same": made == expected,
    "told": sorted(map(repr, told)) == sorted(map(repr, expected)),
    "heard": sorted(map(repr, heard)) == sorted(
        repr((job, record)) for job, run in zip(jobs, expected) for record in run.rounds),
    "ended": not ray.is_initialized(), "wrong": wrong}))
"""


@needs_ray
def test_the_runs_are_the_local_ones_and_what_was_started_is_ended():
    done = subprocess.run([sys.executable, "-c", COMPARE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("wrong").startswith("`1 <= clients_per_round <= num_clients` must hold")
    assert found == dict.fromkeys(("same", "told", "heard", "ended"), True)


@needs_ray
def test_a_cluster_that_does_not_answer_is_said_so(tmp_path):
    words = ["demo", "clients-per-round=2", "local-steps=5", "--engine", "ray"]
    done = subprocess.run(
        [sys.executable, "-m", "fedplan.cli", "sweep", *words],
        cwd=tmp_path,
        env={**os.environ, "RAY_ADDRESS": "127.0.0.1:1"},
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode == 2 and "no Ray cluster answers at RAY_ADDRESS=127.0.0.1:1" in done.stderr
    )


def test_without_ray_the_line_to_type_is_said(monkeypatch):
    monkeypatch.setattr(ray_engine, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedplan\[ray\]'"):
        ray_engine.RayEngine(build_experiment(read_study("demo")))
