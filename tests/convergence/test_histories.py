"""Saturations learnt from simulated runs, beside those of whole grids of all clients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan.convergence.histories import learn_saturation
from fedplan.participation import uniform
from fedplan.simulation import Job
from fedplan.studies import build_experiment, read_study
from fedplan.studies.earlier import history_of

DIRICHLET = ("partition=dirichlet", "concentration=0.3", "learning-rate=0.05", "schedule=constant")
TASKS = {
    "demo": ("demo", ["rounds=600"]),
    "setup3": ("setup3", ["num-clients=30", "target-loss=1.3", "rounds=400"]),
    "dirichlet": ("setup1", [*DIRICHLET, "target-loss=0.45", "rounds=600"]),
}


def saturation_of_grid(experiment, steps):
    """By the law written out: the way to the target, the same for every E; at the mean rate."""
    stop, rate = experiment.stop, experiment.rate
    jobs = [Job(course=uniform(experiment.num_clients, e), seed=50) for e in steps]
    runs = list(experiment.simulator.run_all(jobs, stop))
    taken = [(run.local_steps, run.num_rounds) for run in runs if run.status == "target"]
    assert len(taken) >= 3
    usual = np.mean([rate.at(r) for r in range(50)])

    def scatter(saturation):
        ways = [
            sum(1 / (1 + saturation * usual / rate.at(r) / e) for r in range(rounds))
            for e, rounds in taken
        ]
        return np.std(np.log(ways))

    return min(np.geomspace(0.5, 1000, 120), key=scatter)


@pytest.mark.parametrize("name", TASKS)
def test_runs_of_some_clients_tell_what_a_grid_of_all_does(name):
    study, words = TASKS[name]
    experiment = build_experiment(read_study(study, words))
    n = experiment.num_clients
    reference = saturation_of_grid(experiment, (5, 10, 20, 40, 80))
    pairs = [(n // 2, 5), (n // 2, 20), (n // 2, 80), (n // 4, 10), (n // 4, 40), (n, 20)]
    jobs = [Job(course=uniform(k, e), seed=seed) for seed, (k, e) in enumerate(pairs)]
    runs = experiment.simulator.run_all(jobs, experiment.stop)
    learnt = learn_saturation([history_of(run, n, experiment.rate) for run in runs], n)
    assert abs(math.log(learnt.saturation / reference)) < math.log(2.3)
    low, high = learnt.interval
    assert low / 1.5 < reference < high * 1.5


def test_without_runs_the_usual_range_is_left():
    usual = learn_saturation([])
    assert usual.interval == pytest.approx((8.0, 256.0), rel=0.05)
    assert usual.loss is None and usual.compared == 0
