"""Multinomial logistic regression: fused kernels for a whole local run and for evaluation.

A feature that is zero in all samples of a client leaves its weights as they are, so the client
trains without it; one that is zero in a whole block of samples adds nothing to their scores. Of
MNIST shared out by digits, a third of the pixels fall away; of dense data, nothing does. Rows are
padded to a multiple of 32 floats, the bias being one more feature that is always 1. A batch is
transposed 16 x 16 at a time: scores are then computed with one sample a lane, and the gradient with
one feature a lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numba import float32, njit

from fedplan.models.draws import STEP, draw_next, kernel, stream
from fedplan.models.lanes import aligned_zeros, dot_tile, outer_tile, transpose
from fedplan.models.learner import CompiledLearner, FloatArray, IntArray
from fedplan.models.softmax import log_sum_exp, softmax
from fedplan.tasks.dataset import FederatedData

BATCH = 64  # samples of a step
BLOCK = 64  # samples that are evaluated at a time
MAX_TILE = 12  # rows of weights whose scores of sixteen samples stay in the registers


class Logistic(CompiledLearner):
    """Softmax regression with a bias, from zero weights, on one federated data set.

    Weights are one row per class, the bias last: `unpack` gives the matrix.

    >>> from fedplan.tasks import synthetic
    >>> learner = Logistic(synthetic(1, 1, num_clients=5))
    >>> loss, accuracy = learner.evaluate(learner.initial(seed=1), learner.samples())
    >>> round(loss, 4)  # log(10)
    2.3026
    """

    def __init__(self, data: FederatedData, *, batch_size: int = BATCH) -> None:
        super().__init__(data, batch_size)
        # Of x only the packed copy is kept, so that a caller may let go of millions of rows.
        self._clients = clients = _pack_clients(data)
        self._num_classes = data.num_classes
        self._used = data.num_features + 1
        # More classes than a tile holds are cut into equal tiles; rows that fill up the last one
        # have zero weights, zero scores and so zero gradients.
        tiles = -(-data.num_classes // MAX_TILE)
        tile = -(-data.num_classes // tiles)
        self._shape = (tiles * tile, self._used)
        self._evaluate = _evaluate(data.num_classes, tile)
        self._train = partial(
            _train_round(data.num_classes, tile),
            clients.rows,
            clients.row_starts,
            clients.features,
            clients.feature_starts,
            self.labels,
            clients.starts,
            self._used,
        )

    @property
    def num_parameters(self) -> int:
        """The number of weights of the model, without padding."""
        return self._num_classes * self._used

    def initial(self, seed: int) -> FloatArray:  # noqa: ARG002
        """Zero weights, as the paper has them, whatever the seed."""
        return np.zeros(math.prod(self._shape), dtype=np.float32)

    def unpack(self, weights: FloatArray) -> FloatArray:
        """The weights as a matrix (classes, features + 1), the bias last."""
        return weights.reshape(self._shape)[: self._num_classes]

    def samples(self, rows: IntArray | None = None) -> Samples:
        """All training samples, or these rows of them."""
        rows = np.arange(len(self.labels)) if rows is None else rows
        return _pack_samples(
            lambda at: self._clients.dense(rows[at]), self.labels[rows], self._used - 1
        )

    def test_samples(self) -> Samples | None:
        """The samples no client trains on."""
        if self._test is None:
            return None
        x, y = self._test
        return _pack_samples(lambda at: x[at], y, self._used - 1)

    def evaluate(self, weights: FloatArray, samples: Samples) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        loss, accuracy = self._evaluate(
            weights, samples.columns, samples.features, samples.starts, samples.labels, self._used
        )
        return loss, accuracy


@dataclass(frozen=True, slots=True, eq=False)
class _ClientRows:
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


def _pack_clients(data: FederatedData) -> _ClientRows:
    """Lay out all clients' samples for training."""
    bias = data.num_features
    parts = [data.client_rows(client) for client in range(data.num_clients)]
    features = [np.append(np.flatnonzero(data.x[part].any(axis=0)), bias) for part in parts]
    counts = np.array([len(own) for own in features])
    floats = -(-counts // 32) * 32  # in a row
    row_starts = np.concatenate([[0], np.cumsum(data.sizes * floats)])
    rows = aligned_zeros.py_func(row_starts[-1])
    for client, (part, own) in enumerate(zip(parts, features, strict=True)):
        target = rows[row_starts[client] : row_starts[client + 1]]
        target = target.reshape(part.stop - part.start, -1)
        target[:, : len(own) - 1] = data.x[part][:, own[:-1]]
        target[:, len(own) - 1] = 1.0
    return _ClientRows(
        rows=rows,
        row_starts=row_starts,
        features=np.concatenate(features),
        feature_starts=np.concatenate([[0], np.cumsum(counts)]),
        starts=data.starts,
        num_features=bias,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples for evaluation, 64 per block, one per lane; each block has its own features.

    Block b has the features `features[starts[b] : starts[b + 1]]`, the last being the bias, and a
    column of 64 floats for each, from `64 * starts[b]` on.
    """

    columns: FloatArray
    features: IntArray
    starts: IntArray
    labels: IntArray


def _pack_samples(
    dense: Callable[[IntArray], FloatArray], labels: IntArray, num_features: int
) -> Samples:
    """Lay samples out for evaluation; `dense` gives the samples with the given numbers."""
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


@njit(inline="always")
def _add_move(total, weights, local, own, share, used, width, lines):  # type: ignore[no-untyped-def]
    """Add a client's share of its change to the weights of the features it has."""
    for c in range(lines):
        for f in range(own.size):
            place = c * used + own[f]
            total[place] += share * (local[c * width + f] - weights[place])


# A kernel closes over numbers that shape its code, and over nothing else: numba would compile anew,
# at every start, one that closes over another kernel.
@cache
def _train_round(classes: int, tile: int) -> Any:
    @kernel
    def train_round(  # type: ignore[no-untyped-def]
        rows, row_starts, features, feature_starts, labels, starts, used, weights, cohort, shares,
        steps, rate, seed, round_, batch_size, halfway,
    ):  # fmt: skip
        """One round of FedAvg; the interface `Learner` says what it does."""
        stride = (batch_size + 15) // 16 * 16
        offsets = np.zeros(stride, np.int64)
        chosen = np.zeros(stride, np.int64)
        lines = weights.size // used
        widest = (used + 31) // 32 * 32
        columns, scores = aligned_zeros(widest * stride), aligned_zeros(lines * stride)
        total = weights.astype(np.float64)
        middle = total[: halfway.size].copy()
        for k in range(cohort.size):
            client = cohort[k]
            own = features[feature_starts[client] : feature_starts[client + 1]]
            width = (own.size + 31) // 32 * 32
            deck = np.arange(starts[client + 1] - starts[client])
            batch = min(batch_size, deck.size)
            lanes = (batch + 15) // 16 * 16
            scale = float32(-rate / batch)
            state = stream(seed, round_, client)
            local = aligned_zeros(lines * width)
            for c in range(lines):
                for f in range(own.size):
                    local[c * width + f] = weights[c * used + own[f]]
            for step in range(steps):
                if middle.size and step == steps // 2:
                    _add_move(middle, weights, local, own, shares[k], used, width, lines)
                for j in range(batch):
                    state += STEP
                    sample = draw_next(deck, j, state)
                    chosen[j] = labels[starts[client] + sample]
                    offsets[j] = row_starts[client] + sample * width
                for j in range(batch, lanes):
                    offsets[j] = offsets[0]
                for s in range(0, lanes, 16):
                    for f in range(0, own.size, 16):
                        transpose(rows, offsets, s, f, columns, f * stride + s, stride)
                    for c in range(0, classes, tile):
                        dot_tile(columns, s, stride, local, c, width, 1, own.size, scores, tile)
                    softmax(scores, s, stride, classes)
                for s in range(batch):
                    scores[chosen[s] * stride + s] -= float32(1.0)
                for c in range(0, classes, tile):
                    for f in range(0, width, 32):
                        outer_tile(
                            rows, offsets, batch, f, scores, c, stride, local, width, scale, tile
                        )
            _add_move(total, weights, local, own, shares[k], used, width, lines)
        halfway[:] = middle
        weights[:] = total

    return train_round


@cache
def _evaluate(classes: int, tile: int) -> Any:
    @kernel
    def evaluate(weights, columns, features, starts, labels, used):  # type: ignore[no-untyped-def]
        """Mean cross-entropy and accuracy over all samples."""
        scores = aligned_zeros(weights.size // used * BLOCK)
        sums, winners = aligned_zeros(BLOCK), aligned_zeros(BLOCK)
        loss, right = 0.0, 0
        for block in range(starts.size - 1):
            own = features[starts[block] : starts[block + 1]]
            data = columns[starts[block] * BLOCK : starts[block + 1] * BLOCK]
            for s in range(0, BLOCK, 16):
                for c in range(0, classes, tile):
                    dot_tile(data, s, BLOCK, weights, c, used, own, own.size, scores, tile)
                log_sum_exp(scores, s, BLOCK, classes, sums, winners)
            for s in range(min(BLOCK, labels.size - block * BLOCK)):
                label = labels[block * BLOCK + s]
                loss += sums[s] - scores[label * BLOCK + s]
                right += winners[s] == label
        return loss / labels.size, right / labels.size

    return evaluate
