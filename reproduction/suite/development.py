"""The development half of the suite, and variants of its tasks."""

from __future__ import annotations

from dataclasses import replace

from fedplan.models import Logistic
from fedplan.simulation import LearningRate
from fedplan.tasks import synthetic
from suite import data
from suite.task import Task

OF_100 = (1, 3, 5, 10, 20, 50, 100)
SETUP1 = Task(
    name="setup1", half="development", make=data.of_study("setup1"),
    rate=LearningRate(initial=0.01, schedule="exponential", decay=0.996), target=0.48,
    clients=(1, 2, 4, 7, 10, 15, 20), steps=(15, 25, 40, 60, 90, 140), seeds=4, max_rounds=600,
)  # fmt: skip
SETUP3 = Task(
    name="setup3", half="development", make=data.of_study("setup3"),
    rate=LearningRate(initial=0.1, schedule="harmonic"), target=1.05, clients=OF_100,
    steps=(15, 20, 30, 45, 70, 100), seeds=6, max_rounds=600,
)  # fmt: skip
MINI = Task(
    name="mini-constant", half="development", make=lambda _: Logistic(data.skewed(50)),
    rate=LearningRate(initial=0.05), target=0.36, clients=(1, 2, 5, 10, 20, 35, 50),
    steps=(6, 10, 16, 25, 40, 65), seeds=4, max_rounds=600,
)  # fmt: skip
WISDM = Task(
    name="wisdm", half="development", make=lambda folder: Logistic(data.wisdm(folder)),
    rate=LearningRate(initial=0.1), target=0.637, clients=(1, 2, 4, 8, 15, 25, 36),
    steps=(5, 8, 13, 20, 35, 60), seeds=8, max_rounds=1000,
)  # fmt: skip


def development() -> list[Task]:
    """Six tasks that methods are made on."""
    return [
        SETUP1,
        SETUP3,
        Task(
            name="synthetic-constant", half="development",
            make=lambda _: Logistic(synthetic(1, 1, num_clients=100, seed=19)),
            rate=LearningRate(initial=0.02), target=0.95, clients=OF_100,
            steps=(5, 10, 16, 25, 40, 65), seeds=6, max_rounds=600,
        ),
        MINI,
        replace(
            MINI, name="mini-harmonic", rate=LearningRate(initial=0.5, schedule="harmonic"),
            target=0.43, seeds=12,
        ),
        WISDM,
    ]  # fmt: skip


def variants() -> list[Task]:
    """The same with rare labels, averaged models or dropouts: what turns do there."""
    wisdm = replace(WISDM, half=None)
    return [
        replace(
            MINI, name="mini-rare-labels", half=None,
            make=lambda _: Logistic(data.rare_labels(50)), target=0.4, fleets=("tenth slow",),
            steps=MINI.steps[:4],
        ),
        replace(wisdm, name="wisdm-averaging", averaging=True),
        replace(wisdm, name="wisdm-dropout-10", dropout=0.1),
        replace(wisdm, name="wisdm-dropout-30", dropout=0.3),
    ]  # fmt: skip
