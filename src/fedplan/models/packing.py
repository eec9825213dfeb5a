"""Packing: samples laid out for logistic regression, without the features that are zero.

A feature that is zero in all samples of a client leaves its weights as they are, so the client
trains without it; one that is zero in a whole block of samples adds nothing to their scores. Of
MNIST shared out by digits, a third of the pixels fall away; of dense data, nothing does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedplan.models.lanes import aligned_zeros
from fedplan.models.learner import FloatArray, IntArray
from fedplan.tasks.dataset import FederatedData

BLOCK = 64  # samples that are evaluated at a time


@dataclass(frozen=True, slots=True, eq=False)
class ClientRows:
    """Every client's samples, each with its own features; the last of them is 1, for the bias.

    Client k has the features `features[feature_starts[k] : feature_starts[k + 1]]`; its rows start
    at `row_starts[k]` of `rows`, as long as its features, rounded up to a multiple of 32.
    """

    rows: FloatArray
    row_starts: IntArray
    features: IntArray
    feature_starts: IntArray
    starts: IntArray  # of every client among all samples
    num_features: int

    def dense(self, chosen: IntArray) -> FloatArray:
        """Samples as they were given, in the order asked for."""
        x = np.zeros((len(chosen), self.num_features), dtype=np.float32)
        clients = np.searchsorted(self.starts, chosen, side="right") - 1
        for client in np.unique(clients):
            at = np.flatnonzero(clients == client)
            features = self.features[self.feature_starts[client] : self.feature_starts[client + 1]]
            own = self.rows[self.row_starts[client] : self.row_starts[client + 1]]
            own = own.reshape(self.starts[client + 1] - self.starts[client], -1)
            picked = own[chosen[at] - self.starts[client], : len(features) - 1]
            x[at[:, None], features[:-1]] = picked
        return x


def pack_clients(data: FederatedData) -> ClientRows:
    """Lay out all clients' samples for training."""
    bias = data.num_features
    parts = [data.client_rows(client) for client in range(data.num_clients)]
    features = [np.append(np.flatnonzero(data.x[part].any(axis=0)), bias) for part in parts]
    counts = np.array([len(own) for own in features])
    row_starts = np.concatenate([[0], np.cumsum(data.sizes * padded(counts))])
    rows = aligned_zeros.py_func(row_starts[-1])
    for client, (part, own) in enumerate(zip(parts, features, strict=True)):
        target = rows[row_starts[client] : row_starts[client + 1]]
        target = target.reshape(part.stop - part.start, -1)
        target[:, : len(own) - 1] = data.x[part][:, own[:-1]]
        target[:, len(own) - 1] = 1.0
    return ClientRows(
        rows=rows,
        row_starts=row_starts,
        features=np.concatenate(features),
        feature_starts=np.concatenate([[0], np.cumsum(counts)]),
        starts=data.starts,
        num_features=bias,
    )


def padded(features: IntArray) -> IntArray:
    """Floats in a row with so many features: a multiple of 32."""
    return -(-features // 32) * 32


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples for evaluation, 64 a block, one sample a lane; each block with its own features.

    Block b has the features `features[starts[b] : starts[b + 1]]`, the last being the bias, and a
    column of 64 floats for each, from `64 * starts[b]` on.
    """

    columns: FloatArray
    features: IntArray
    starts: IntArray
    labels: IntArray


def pack_samples(
    dense: Callable[[IntArray], FloatArray], labels: IntArray, num_features: int
) -> Samples:
    """Lay samples out for evaluation; `dense` gives those with the numbers it is asked for."""
    blocks = -(-len(labels) // BLOCK)
    # Room for all features; what is not used is never touched, and so takes no memory.
    columns = aligned_zeros.py_func(blocks * (num_features + 1) * BLOCK).reshape(-1, BLOCK)
    features, starts = [], [0]
    for first in range(0, len(labels), BLOCK):
        x = dense(np.arange(first, min(first + BLOCK, len(labels))))
        own = np.flatnonzero(x.any(axis=0))
        block = columns[starts[-1] : starts[-1] + len(own) + 1]
        block[:-1, : len(x)] = x[:, own].T
        block[-1] = 1.0
        features.append(np.append(own, num_features))
        starts.append(starts[-1] + len(block))
    return Samples(
        columns=columns[: starts[-1]].reshape(-1),
        features=np.concatenate(features),
        starts=np.array(starts, dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
    )
