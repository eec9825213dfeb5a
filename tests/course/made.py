"""Rounds, problems and small trainings that tests of courses share."""

from __future__ import annotations

import numpy as np

from fedplan import Constraints, Fleet, Objective, Problem
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RoundRecord
from fedplan.core.signal import Signal
from fedplan.models import Logistic
from fedplan.simulation import Simulator
from fedplan.tasks import synthetic


def fleet_of(num_clients=12, seed=0):
    random = np.random.default_rng(seed)
    return Fleet(
        step_time_s=random.lognormal(-2.3, 0.7, num_clients),
        comm_time_s=random.lognormal(0.7, 0.7, num_clients),
        step_energy_j=0.001,
        comm_energy_j=0.02,
    )


def problem_of(fleet=None, *, target=0.5, weight=0.0, rate=None, **limits):
    return Problem(
        fleet=fleet_of() if fleet is None else fleet,
        objective=Objective.weighted(weight),
        limits=Constraints(**limits),
        target_loss=target,
        learning_rate=rate or LearningRate(initial=0.05),
    )


def told(round_, loss, *, elasticity=None, seconds=1.0, joules=1.0):
    """A round with this loss, whose updates grow with local steps by this elasticity."""
    signal = None
    if elasticity is not None:
        whole = np.array([3.0, 4.0])
        signal = Signal(whole=whole, halfway=whole / 2**elasticity)
    return RoundRecord(
        round=round_, loss=loss, accuracy=None, cohort=(0,), shares=(1.0,), seconds=seconds,
        joules=joules, signal=signal,
    )  # fmt: skip


def trained(problem, rate=None, num_clients=12):
    """A simulator of a small task on the problem's devices."""
    learner = Logistic(synthetic(1, 1, num_clients=num_clients, seed=3))
    samples = learner.sizes.astype(float)
    simulator = Simulator(learner, rate or problem.learning_rate, problem.fleet)
    return simulator, problem.with_samples(samples)
