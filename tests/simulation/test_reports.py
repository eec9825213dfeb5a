"""What clients report is what they do, and asking for it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.models import Logistic
from fedplan.participation import uniform
from fedplan.simulation import Simulator
from fedplan.simulation.reports import Reporter
from fedplan.tasks import synthetic

DATA = synthetic(1, 1, num_clients=5, sizes=(200, 80, 100, 300, 150))
LEARNER = Logistic(DATA, batch_size=300)  # whole gradients
COHORT = np.array([0, 2, 3])


@dataclass(frozen=True, kw_only=True)
class _Asking(Setting):
    """A setting that asks for reports."""

    wants_clients: ClassVar[bool] = True


def report(local_steps=1, rate=1e-3, weights=None):
    weights = LEARNER.initial(0) if weights is None else weights
    return Reporter(LEARNER)(weights, COHORT, local_steps, rate, 7, 1)


def test_asking_for_reports_leaves_the_training_alone():
    plain, stop = uniform(3, 4), Stop(max_rounds=6)
    asking = _Asking(participation=plain.participation, local_steps=4)
    learner = Logistic(synthetic(1, 1, num_clients=5))
    simulator = Simulator(learner, LearningRate(initial=0.1))
    one, other = (simulator.run(course, stop, seed=2) for course in (plain, asking))
    assert one.losses == other.losses
    assert one.rounds[1].reports is None and other.rounds[0].reports is None
    assert all(len(record.reports.losses) == 3 for record in other.rounds[1:])


def test_updates_of_single_clients_add_up_to_the_round():
    weights = LEARNER.initial(0)
    shares = LEARNER.sizes[COHORT] / LEARNER.sizes[COHORT].sum()
    LEARNER.train_round(weights, COHORT, shares, 5, 0.1, 7, 1)
    moved = np.zeros(weights.size)
    for client, share, norm in zip(COHORT, shares, report(5, 0.1).update_norms, strict=True):
        own = LEARNER.initial(0)
        LEARNER.train_round(own, np.array([client]), np.ones(1), 5, 0.1, 7, 1)
        np.testing.assert_allclose(norm, np.linalg.norm(own), rtol=1e-6)
        moved += share * own
    np.testing.assert_allclose(weights, moved, rtol=1e-4, atol=1e-6)


def test_losses_are_those_of_each_clients_samples():
    found, ends = report(), np.cumsum(LEARNER.sizes)
    np.testing.assert_allclose(found.losses, np.log(10), rtol=1e-5)
    after = report(20, 0.1)
    own = LEARNER.initial(0)
    LEARNER.train_round(own, np.array([2]), np.ones(1), 20, 0.1, 7, 1)
    rows = np.arange(ends[1], ends[2])
    assert after.losses_after[1] == LEARNER.evaluate(own, LEARNER.samples(rows))[0]


def test_a_small_step_lowers_the_loss_by_its_squared_gradient():
    rate = 1e-3
    found = report(1, rate)
    gradients = found.update_norms / rate
    np.testing.assert_allclose(found.losses - found.losses_after, rate * gradients**2, rtol=0.1)


def test_gradients_change_and_differ_as_the_models_say():
    def gradient(client, weights):
        moved = weights.copy()
        LEARNER.train_round(moved, np.array([client]), np.ones(1), 1, 0.01, 7, 1)
        return (weights - moved).astype(float) / 0.01

    start, found = LEARNER.initial(0), report(1, 0.05)
    before = np.array([gradient(client, start) for client in COHORT])
    after = [
        gradient(client, (start - 0.05 * each).astype("f4"))
        for client, each in zip(COHORT, before, strict=True)
    ]
    held = LEARNER.sizes[COHORT]
    spreads = np.linalg.norm(before - held @ before / held.sum(), axis=1)
    np.testing.assert_allclose(found.gradient_spreads, spreads, rtol=1e-4)
    changes = np.linalg.norm(np.array(after) - before, axis=1)
    np.testing.assert_allclose(found.gradient_changes, changes, rtol=1e-2)
