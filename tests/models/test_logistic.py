"""Logistic regression against float64 NumPy, and its draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from models import logistic_reference as reference
from models.clients import one_client_round, small_clients
from scipy.stats import chisquare

from fedplan import InputError
from fedplan.models import Logistic
from fedplan.tasks import FederatedData


def test_weights_after_thirty_steps_equal_the_reference():
    data = small_clients()
    learner = Logistic(data)
    weights = learner.initial(0)
    one_client_round(learner, weights, 0, 30, 0.05)
    expected = np.zeros((10, 61))
    for _ in range(30):
        expected -= 0.05 * reference.gradient(expected, data.x[:64], data.y[:64])
    assert np.abs(learner.unpack(weights) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_shares_that_do_not_add_up_to_one_keep_part_of_the_old_weights():
    learner = Logistic(small_clients())
    start = np.random.default_rng(0).normal(size=learner.initial(0).size).astype(np.float32)
    ends = []
    for client in (0, 3):
        ends.append(start.copy())
        one_client_round(learner, ends[-1], client, 4, 0.05)
    moved = start.copy()
    learner.train_round(moved, np.array([0, 3]), np.array([0.5, 0.2]), 4, 0.05, 0, 1)
    expected = start + 0.5 * (ends[0] - start) + 0.2 * (ends[1] - start)
    assert moved == pytest.approx(expected, abs=1e-5)


def test_batches_are_uniform_and_without_replacement():
    # One step from zero weights with one feature a sample: the gradient tells who was drawn.
    size = 80
    data = FederatedData(
        x=np.eye(size, dtype=np.float32),
        y=np.zeros(size, dtype=np.int64),
        starts=[0, size],
        num_classes=2,
    )
    learner = Logistic(data)
    times = np.zeros(size)
    for seed in range(400):
        weights = learner.initial(0)
        one_client_round(learner, weights, 0, 1, 64.0, seed)
        drawn = weights[:size] / 0.5
        assert drawn.sum() == pytest.approx(64) and set(drawn.round(5)) <= {0.0, 1.0}
        times += drawn
    # Draws of a batch are without replacement, so the spread is less than that of a multinomial.
    assert chisquare(times).pvalue > 0.01
    assert times.std() < 1.5 * math.sqrt(400 * 0.8 * 0.2)


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="batch_size >= 1"):
        Logistic(small_clients(), batch_size=0)


def test_features_that_a_client_does_not_have_keep_their_weights_and_cost_nothing_else():
    data = small_clients(40, 10, (64, 17, 33))
    x = data.x.copy()
    x[:64, 3:30] = 0.0  # client 0 has few features, client 1 none but the bias
    x[64:81] = 0.0
    sparse = FederatedData(x=x, y=data.y, starts=data.starts, num_classes=10)
    learner = Logistic(sparse)
    start = np.random.default_rng(1).normal(size=learner.initial(0).size).astype(np.float32)
    for client in range(3):
        weights, rows = start.copy(), sparse.client_rows(client)
        expected = learner.unpack(start).astype(np.float64)
        one_client_round(learner, weights, client, 20, 0.05)
        for _ in range(20):
            expected -= 0.05 * reference.gradient(expected, x[rows], data.y[rows])
        assert learner.unpack(weights) == pytest.approx(expected, abs=1e-5)
        missing = np.flatnonzero(~x[rows].any(axis=0))
        assert (learner.unpack(weights)[:, missing] == learner.unpack(start)[:, missing]).all()
    loss, accuracy = reference.loss_and_accuracy(learner.unpack(start), x, data.y)
    assert learner.evaluate(start, learner.samples()) == pytest.approx((loss, accuracy), rel=1e-5)
    chosen = np.array([100, 3, 70, 2])
    part = reference.loss_and_accuracy(learner.unpack(start), x[chosen], data.y[chosen])
    assert learner.evaluate(start, learner.samples(chosen)) == pytest.approx(part, rel=1e-5)
