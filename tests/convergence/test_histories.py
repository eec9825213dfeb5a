"""Saturations learnt from simulated runs, beside those of whole grids of all clients."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fedplan.convergence.histories import History, learn_saturation
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


def history_by_the_law(clients, local_steps, *, saturation=40.0, sampling=0.0, rounds=100.0):
    """A training of 20 clients whose loss falls from 2 to 1 on a way of so many rounds."""
    slower = 1 + saturation / local_steps + sampling * (1 / clients - 1 / 20)
    rows = np.arange(1.0, math.ceil(rounds * slower) + 1)
    return History(
        rounds=rows,
        clients=np.full(rows.size, float(clients)),
        local_steps=np.full(rows.size, float(local_steps)),
        losses=2.0 - rows / (rounds * slower),
        rates=np.ones(rows.size),
    )


@pytest.mark.parametrize("sampling", [0.0, 0.12, 0.25, 0.35, 0.5, 0.7, 1.0, 2.8, 5.6, 8.0])
def test_trainings_that_follow_the_law_tell_it_whatever_the_noise_of_sampling(sampling):
    pairs = itertools.product((1, 2, 5, 20), (5, 20, 80, 320))
    learnt = learn_saturation([history_by_the_law(*pair, sampling=sampling) for pair in pairs], 20)
    off = 0.03 if sampling <= 1 else 0.2  # less is known of noise that is seldom so high
    assert learnt.saturation == pytest.approx(40.0, rel=off)
    assert learnt.rounds == pytest.approx(100.0 * (2.0 - learnt.loss), rel=off)


def test_two_trainings_are_enough_to_tell():
    learnt = learn_saturation([history_by_the_law(20, steps) for steps in (10, 160)])
    assert learnt.compared == 2 and learnt.saturation == pytest.approx(40.0, rel=0.03)
    low, high = learnt.interval
    assert 8.0 < low < 40.0 < high < 256.0  # narrower than the usual range


def test_trainings_are_compared_from_three_rounds_on():
    for length, compared in ((1, 0), (2, 0), (3, 2), (4, 2), (5, 2)):
        few = [
            history_by_the_law(20, steps, saturation=0.0, rounds=float(length)) for steps in (5, 50)
        ]
        assert learn_saturation(few).compared == compared


def test_a_training_that_was_evaluated_once_changes_nothing():
    whole = [history_by_the_law(20, steps) for steps in (10, 160)]
    once = replace(whole[0], losses=np.where(whole[0].rounds == 1.0, whole[0].losses, np.nan))
    assert learn_saturation([*whole, once]) == learn_saturation(whole)
