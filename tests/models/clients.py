"""Clients and rounds that tests of models share."""

from __future__ import annotations

import numpy as np

from fedplan.tasks import FederatedData


def small_clients(num_features=60, num_classes=10, sizes=(64, 17, 1, 33, 50), seed=0):
    """Clients with no more samples than a batch, so that every step is full-batch."""
    random = np.random.default_rng(seed)
    n = sum(sizes)
    return FederatedData(
        x=random.normal(size=(n, num_features)).astype(np.float32),
        y=random.integers(0, num_classes, n),
        starts=np.concatenate([[0], np.cumsum(sizes)]),
        num_classes=num_classes,
    )


def one_client_round(learner, weights, client, steps, rate, seed=0, round_=1):
    learner.train_round(weights, np.array([client]), np.ones(1), steps, rate, seed, round_)
