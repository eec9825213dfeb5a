"""What is trained, until when, and on which devices."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import Fleet, draw_fleet, with_stragglers
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.models import Learner, LeNet5, Logistic
from fedplan.participation import Uniform, uniform
from fedplan.studies import read_study
from fedplan.studies.building import build_data
from fedplan.tasks import FederatedData, dirichlet, federate, mnist_mini, synthetic
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS

FLEETS = ("normal", "lognormal", "tenth slow", "hospitals")
WEIGHTS = (0.0, 0.5, 0.9, 1.0)
WATTS = 50.0  # of a hospital's machine while it computes or sends
RARE_LABELS = 8  # this digit and the next: on the slowest tenth alone, where devices hold them
HEAVY = 2  # seeds with more than half of the clients, which leave little to chance


@dataclass(frozen=True, kw_only=True)
class Averaged(Uniform):
    """K at random, judged by the average of the last ten models."""

    averaged: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Data, model and rate; the loss to reach, and the grid of settings that is tried."""

    name: str
    make: Callable[[Path], Learner]
    rate: LearningRate
    target: float
    clients: tuple[int, ...]
    steps: tuple[int, ...]
    seeds: int
    max_rounds: int
    fleets: tuple[str, ...] = FLEETS
    weights: tuple[float, ...] = WEIGHTS
    dropout: float = 0.0
    averaging: bool = False  # K at random is judged by the average of its last models too

    def uniform(self, clients: int, steps: int) -> Setting:
        """K at random, as it is judged here; all clients by their last model."""
        if not self.averaging or clients == self.clients[-1]:
            return uniform(clients, steps)
        return Setting(participation=Averaged(clients_per_round=clients), local_steps=steps)

    def seeds_of(self, clients: int) -> range:
        """The seeds that a number of clients per round is tried with."""
        return range(HEAVY if clients > self.clients[-1] / 2 else self.seeds)


def _mini(num_clients: int, *, rare: bool = False) -> FederatedData:
    digits = mnist_mini()
    if not rare:
        assignment = dirichlet(digits.y, num_clients, 0.3, seed=0)
    else:
        slow = num_clients // 10
        is_rare = digits.y >= RARE_LABELS
        common = np.flatnonzero(~is_rare)
        others = dirichlet(digits.y[common], num_clients - slow, 0.3, seed=0)
        assignment = [*np.array_split(np.flatnonzero(is_rare), slow), *(common[o] for o in others)]
    return federate(
        digits.x, digits.y, assignment, num_classes=NUM_DIGITS, image_shape=IMAGE_SHAPE,
        name="MNIST-mini",
    )  # fmt: skip


def _wisdm(path: Path) -> FederatedData:
    with np.load(path) as arrays:
        x, y, client = (arrays[name] for name in ("x", "y", "client"))
    rows = [np.flatnonzero(client == number) for number in np.unique(client)]
    labels = y.astype(np.int64)
    return federate(
        x.astype(np.float32), labels, rows, num_classes=int(labels.max()) + 1, name="WISDM"
    )


def _study(name: str) -> Callable[[Path], Learner]:
    return lambda _data: Logistic(build_data(read_study(name).task))


def _tasks() -> list[Task]:
    constant, of_100 = LearningRate(initial=0.05), (1, 3, 5, 10, 20, 50, 100)
    of_50 = (1, 2, 5, 10, 20, 35, 50)
    wisdm = Task(
        name="wisdm",
        make=lambda data: Logistic(_wisdm(data / "wisdm" / "wisdm.npz")),
        rate=LearningRate(initial=0.1), target=0.637, clients=(1, 2, 4, 8, 15, 25, 36),
        steps=(5, 8, 13, 20, 35, 60), seeds=8, max_rounds=1000,
    )  # fmt: skip
    mini = Task(
        name="mini-constant", make=lambda _: Logistic(_mini(50)), rate=constant, target=0.36,
        clients=of_50, steps=(6, 10, 16, 25, 40, 65), seeds=4, max_rounds=600,
    )  # fmt: skip
    return [
        Task(
            name="setup1", make=_study("setup1"),
            rate=LearningRate(initial=0.01, schedule="exponential", decay=0.996), target=0.48,
            clients=(1, 2, 4, 7, 10, 15, 20), steps=(15, 25, 40, 60, 90, 140), seeds=4,
            max_rounds=600,
        ),
        Task(
            name="setup3", make=_study("setup3"),
            rate=LearningRate(initial=0.1, schedule="harmonic"), target=1.05, clients=of_100,
            steps=(15, 20, 30, 45, 70, 100), seeds=6, max_rounds=600,
        ),
        Task(
            name="synthetic-constant",
            make=lambda _: Logistic(synthetic(1, 1, num_clients=100, seed=19)),
            rate=LearningRate(initial=0.02), target=0.95, clients=of_100,
            steps=(5, 10, 16, 25, 40, 65), seeds=6, max_rounds=600,
        ),
        mini,
        Task(
            name="mini-harmonic", make=lambda _: Logistic(_mini(50)),
            rate=LearningRate(initial=0.5, schedule="harmonic"), target=0.43, clients=of_50,
            steps=(6, 10, 16, 25, 40, 65), seeds=4, max_rounds=600,
        ),
        wisdm,
        Task(
            name="lenet5", make=lambda _: LeNet5(_mini(30)), rate=LearningRate(initial=0.1),
            target=0.2, clients=(3, 10, 30), steps=(8, 16), seeds=2, max_rounds=200,
            fleets=("lognormal", "hospitals"), weights=(0.0, 0.9),
        ),
        replace(
            mini, name="mini-rare-labels", make=lambda _: Logistic(_mini(50, rare=True)),
            target=0.4, fleets=("tenth slow",), steps=mini.steps[:4],
        ),
        replace(wisdm, name="wisdm-averaging", averaging=True),
        replace(wisdm, name="wisdm-dropout-10", dropout=0.1),
        replace(wisdm, name="wisdm-dropout-30", dropout=0.3),
    ]  # fmt: skip


TASKS = {task.name: task for task in _tasks()}


def make_fleet(name: str, num_clients: int, data: Path, seed: int = 1) -> Fleet:
    """The devices, with the means of Setup 3 but for the hospitals."""
    if name == "hospitals":
        return _hospitals(num_clients, data / "hospitals", seed)
    spread = {"normal": 1 / 3, "lognormal": 1.0, "tenth slow": 0.1}[name]
    fleet = draw_fleet(
        num_clients,
        step_time_s=(0.1, 0.1 * spread),
        comm_time_s=(2.0, 2.0 * spread),
        step_energy_j=(1e-3, 1e-3 / 3),
        comm_energy_j=(2e-2, 2e-2 / 3),
        law="lognormal" if name == "lognormal" else "normal",
        seed=seed,
    )
    return with_stragglers(fleet, 0.1, 10.0) if name == "tenth slow" else fleet


def _hospitals(num_clients: int, folder: Path, seed: int) -> Fleet:
    """Every client has the machine of one measured site and the link of another."""
    random = np.random.default_rng(seed)
    compute, network = (_columns(folder / f"{name}.csv") for name in ("compute", "network"))
    machine = random.integers(len(compute["seconds_per_patient"]), size=num_clients)
    link = random.integers(len(network["download_s"]), size=num_clients)
    step_s = compute["seconds_per_patient"][machine]
    comm_s = (network["download_s"] + network["upload_s"])[link]
    return Fleet(
        step_time_s=step_s,
        comm_time_s=comm_s,
        step_energy_j=WATTS * step_s,
        comm_energy_j=WATTS * comm_s,
    )


def _columns(path: Path) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def make_problem(fleet_name: str, fleet: Fleet, weight: float) -> Problem:
    """What a second and a joule are worth; of hospitals, a kilojoule."""
    objective = Objective.weighted(weight)
    if fleet_name == "hospitals":
        objective = Objective(per_second=1.0 - weight, per_joule=weight / 1000.0)
    return Problem(fleet=fleet, objective=objective)
