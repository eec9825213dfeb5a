"""Multinomial logistic regression: a whole local run, and the global loss, as fused kernels.

Rows of the data are padded to a multiple of 32 floats with the bias folded in as a feature of 1, so
the weights of a class are one padded row too. A batch is transposed 16 x 16 at a time: scores are
then computed with one sample a lane, and the gradient with one feature a lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from fedplan.models.draws import STEP, draw_next, stream
from fedplan.models.lanes import dot_tile, outer_tile, transpose
from fedplan.models.learner import FloatArray, IntArray, check_batch_size
from fedplan.models.softmax import log_sum_exp, softmax
from fedplan.tasks.dataset import FederatedData

BATCH = 64  # samples of a step, and of a block of the evaluation
MAX_TILE = 12  # rows of weights whose scores of sixteen samples stay in the registers


class Logistic:
    """Softmax regression with a bias, from zero weights, on one federated data set.

    Weights are a row a class, padded with zeros: `unpack` gives the matrix.

    >>> from fedplan.tasks import synthetic
    >>> learner = Logistic(synthetic(1, 1, num_clients=5))
    >>> loss, accuracy = learner.evaluate(learner.initial(seed=1), learner.samples())
    >>> round(loss, 4)  # log(10)
    2.3026
    """

    def __init__(self, data: FederatedData, *, batch_size: int = BATCH) -> None:
        check_batch_size(batch_size)
        # Of x only a padded copy is kept, so that a caller may let go of millions of rows.
        self.labels = np.array(data.y, dtype=np.int64)
        self.sizes = data.sizes
        self._starts = data.starts
        self._test = (data.test_x, data.test_y)
        self._num_classes = data.num_classes
        self._batch_size = batch_size
        self._used = data.num_features + 1
        self._width = -(-self._used // 32) * 32
        rows = np.zeros((data.num_samples, self._width), dtype=np.float32)
        rows[:, : self._used - 1] = data.x
        rows[:, self._used - 1] = 1.0
        self._rows = rows
        # More classes than a tile holds are cut into equal tiles; rows that fill up the last one
        # have zero weights, zero scores and so zero gradients.
        tiles = -(-data.num_classes // MAX_TILE)
        tile = -(-data.num_classes // tiles)
        self._shape = (tiles * tile, self._width)
        self._kernels = _kernels(data.num_classes, tile)

    def initial(self, seed: int) -> FloatArray:  # noqa: ARG002
        """Zero weights, as the paper has them, whatever the seed."""
        return np.zeros(math.prod(self._shape), dtype=np.float32)

    def unpack(self, weights: FloatArray) -> FloatArray:
        """The weights as a matrix (classes, features + 1), the bias last."""
        return weights.reshape(self._shape)[: self._num_classes, : self._used]

    def train_round(
        self,
        weights: FloatArray,
        cohort: IntArray,
        shares: NDArray[np.float64],
        local_steps: int,
        rate: float,
        seed: int,
        round_: int,
    ) -> None:
        """One round of FedAvg, in place."""
        self._kernels.train_round(
            weights, self._rows.reshape(-1), self.labels, self._starts, cohort, shares,
            local_steps, rate, seed, round_, self._batch_size, self._used, self._width,
        )  # fmt: skip

    def samples(self, rows: IntArray | None = None) -> Samples:
        """All training samples, or these rows of them."""
        x = self._rows[:, : self._used - 1]
        if rows is None:
            return self._lay_out(x, self.labels)
        return self._lay_out(x[rows], self.labels[rows])

    def test_samples(self) -> Samples | None:
        """The samples no client trains on."""
        x, y = self._test
        return None if x is None or y is None else self._lay_out(x, y)

    def _lay_out(self, x: FloatArray, y: IntArray) -> Samples:
        whole = len(x) // BATCH * BATCH
        columns = np.zeros((-(-len(x) // BATCH), self._used, BATCH), dtype=np.float32)
        columns[:, -1] = 1.0
        blocks = x[:whole].reshape(-1, BATCH, self._used - 1)
        columns[: len(blocks), :-1] = blocks.transpose(0, 2, 1)
        if whole < len(x):
            columns[-1, :-1, : len(x) - whole] = x[whole:].T
        return Samples(columns=columns.reshape(-1), labels=np.array(y, dtype=np.int64))

    def evaluate(self, weights: FloatArray, samples: Samples) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        loss, accuracy = self._kernels.evaluate(
            weights, samples.columns, samples.labels, self._used, self._width
        )
        return float(loss), float(accuracy)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples laid out for evaluation: 64 a block, one sample a lane."""

    columns: FloatArray  # (blocks * used * 64,)
    labels: IntArray


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The compiled functions for one number of classes and of rows a tile: both shape the code."""

    train_round: Callable[..., None]
    evaluate: Callable[..., tuple[float, float]]


@cache
def _kernels(classes: int, tile: int) -> _Kernels:
    """Compile (or read from numba's cache) the kernels for this many classes."""
    return _Kernels(train_round=_train_round(classes, tile), evaluate=_evaluate(classes, tile))


# A kernel closes over numbers alone: numba would compile anew, at every start, one that closes
# over another kernel.
def _train_round(classes: int, tile: int) -> Any:
    @njit(nogil=True, cache=True)
    def train_round(  # type: ignore[no-untyped-def]
        weights,
        rows,
        labels,
        starts,
        cohort,
        shares,
        steps,
        rate,
        seed,
        round_,
        batch_size,
        used,
        width,
    ):
        """One round of FedAvg; the interface `Learner` says what it does."""
        stride = (batch_size + 15) // 16 * 16
        offsets = np.zeros(stride, np.int64)
        chosen = np.zeros(stride, np.int64)
        columns = np.zeros(width * stride, np.float32)
        scores = np.zeros(weights.size // width * stride, np.float32)
        total = (1.0 - shares.sum()) * weights.astype(np.float64)
        for k in range(cohort.size):
            client = cohort[k]
            deck = np.arange(starts[client], starts[client + 1])
            batch = min(batch_size, deck.size)
            lanes = (batch + 15) // 16 * 16
            scale = float32(-rate / batch)
            state = stream(seed, round_, client)
            local = weights.copy()
            for _ in range(steps):
                for j in range(batch):
                    state += STEP
                    sample = draw_next(deck, j, state)
                    chosen[j] = labels[sample]
                    offsets[j] = sample * width
                for j in range(batch, lanes):
                    offsets[j] = offsets[0]
                for s in range(0, lanes, 16):
                    for f in range(0, used, 16):
                        transpose(rows, offsets, s, f, columns, f * stride + s, stride)
                    for c in range(0, classes, tile):
                        dot_tile(columns, s, stride, local, c, width, 1, used, scores, tile)
                    softmax(scores, s, stride, classes)
                for s in range(batch):
                    scores[chosen[s] * stride + s] -= float32(1.0)
                for c in range(0, classes, tile):
                    for f in range(0, width, 32):
                        outer_tile(
                            rows, offsets, batch, f, scores, c, stride, local, width, scale, tile
                        )
            total += shares[k] * local
        weights[:] = total

    return train_round


def _evaluate(classes: int, tile: int) -> Any:
    @njit(nogil=True, cache=True)
    def evaluate(weights, columns, labels, used, width):  # type: ignore[no-untyped-def]
        """Mean cross-entropy and accuracy over all samples."""
        scores = np.zeros(weights.size // width * BATCH, np.float32)
        sums, winners = np.zeros(BATCH, np.float32), np.zeros(BATCH, np.float32)
        loss, right = 0.0, 0
        for block in range((labels.size + BATCH - 1) // BATCH):
            data = columns[block * used * BATCH : (block + 1) * used * BATCH]
            for s in range(0, BATCH, 16):
                for c in range(0, classes, tile):
                    dot_tile(data, s, BATCH, weights, c, width, 1, used, scores, tile)
                log_sum_exp(scores, s, BATCH, classes, sums, winners)
            for s in range(min(BATCH, labels.size - block * BATCH)):
                label = labels[block * BATCH + s]
                loss += sums[s] - scores[label * BATCH + s]
                right += winners[s] == label
        return loss / labels.size, right / labels.size

    return evaluate
