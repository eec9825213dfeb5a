"""FedAvg with logistic regression, written out in float64 NumPy."""

from __future__ import annotations

import numpy as np


def scores(weights, x):
    return np.column_stack([x, np.ones(len(x))]).astype(np.float64) @ weights.T


def loss_and_accuracy(weights, x, y):
    z = scores(weights, x)
    top = z.max(axis=1)
    log_sum = top + np.log(np.exp(z - top[:, None]).sum(axis=1))
    return float(np.mean(log_sum - z[np.arange(len(y)), y])), float(np.mean(z.argmax(axis=1) == y))


def gradient(weights, x, y):
    z = scores(weights, x)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1.0
    return p.T @ np.column_stack([x, np.ones(len(x))]).astype(np.float64) / len(y)


def full_batch_rounds(data, cohorts, steps, rate):
    """Weights after every round where each client takes full-batch steps."""
    weights = np.zeros((data.num_classes, data.num_features + 1))
    for cohort in cohorts:
        total, samples = np.zeros_like(weights), 0
        for client in cohort:
            rows = data.client_rows(client)
            local = weights.copy()
            for _ in range(steps):
                local -= rate * gradient(local, data.x[rows], data.y[rows])
            size = rows.stop - rows.start
            total, samples = total + size * local, samples + size
        weights = total / samples
        yield weights
