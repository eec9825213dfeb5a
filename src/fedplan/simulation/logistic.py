"""Multinomial logistic regression: a whole local run, and the global loss, as fused kernels.

Rows of the data are padded to a multiple of 32 floats with the bias folded in as a feature of 1, so
the weights of a class are one padded row too. A batch is transposed 16 x 16 at a time: scores are
then computed with one sample a lane, and the gradient with one feature a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from fedplan.errors import InputError
from fedplan.simulation.draws import STEP, below, stream
from fedplan.simulation.lanes import (
    add,
    constant,
    divide,
    dot_tile,
    exp,
    load,
    log,
    maximum,
    multiply,
    outer_tile,
    store,
    subtract,
    transpose,
)
from fedplan.tasks.dataset import FederatedData

BATCH = 64
MAX_CLASSES = 12  # scores of sixteen samples and a gradient tile then fit in the registers
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedData:
    """A data set laid out for the kernels."""

    rows: FloatArray  # (n * width,): padded rows, bias folded in
    columns: FloatArray  # (blocks * used * 64,): the same transposed, 64 samples a block
    labels: IntArray
    starts: IntArray
    used: int  # features and the bias
    width: int  # used, rounded up to a multiple of 32
    num_classes: int


def pack(data: FederatedData) -> PackedData:
    """Lay a data set out for the kernels."""
    if data.num_classes > MAX_CLASSES:
        raise InputError(
            f"`num_classes <= {MAX_CLASSES}` must hold for the compiled logistic regression, but "
            f"got num_classes={data.num_classes}."
        )
    n, used = data.num_samples, data.num_features + 1
    width = -(-used // 32) * 32
    blocks = -(-n // BATCH)
    rows = np.zeros((blocks * BATCH, width), dtype=np.float32)
    rows[:n, : used - 1] = data.x
    rows[:n, used - 1] = 1.0
    columns = rows.reshape(blocks, BATCH, width)[:, :, :used].transpose(0, 2, 1)
    return PackedData(
        rows=np.ascontiguousarray(rows[:n]).ravel(),
        columns=np.ascontiguousarray(columns).ravel(),
        labels=np.array(data.y, dtype=np.int64),
        starts=np.array(data.starts, dtype=np.int64),
        used=used,
        width=width,
        num_classes=data.num_classes,
    )


@njit(inline="always")
def _softmax(scores, s, classes):  # type: ignore[no-untyped-def]
    """Scores of sixteen samples into probabilities, in place; one row a class, 64 samples a row."""
    top = load(scores, s)
    for c in range(1, classes):
        top = maximum(top, load(scores, c * BATCH + s))
    total = constant(0.0)
    for c in range(classes):
        e = exp(subtract(load(scores, c * BATCH + s), top))
        store(scores, c * BATCH + s, e)
        total = add(total, e)
    scale = divide(constant(1.0), total)
    for c in range(classes):
        store(scores, c * BATCH + s, multiply(load(scores, c * BATCH + s), scale))


@dataclass(frozen=True, slots=True)
class Kernels:
    """The compiled functions for one number of classes, which is part of their code."""

    train_round: Callable[..., None]
    evaluate: Callable[..., tuple[float, float]]


@cache
def kernels(classes: int) -> Kernels:
    """Compile (or read from numba's cache) the kernels for this many classes."""
    return Kernels(train_round=_train_round(classes), evaluate=_evaluate(classes))


# A kernel closes over the number of classes alone: numba would compile anew, at every start, one
# that closes over another kernel.
def _train_round(classes: int) -> Any:
    @njit(nogil=True, cache=True)
    def train_round(  # type: ignore[no-untyped-def]
        weights, rows, labels, starts, cohort, steps, rate, seed, round_, used, width
    ):
        """One round of FedAvg: every client of the cohort from `weights`, then their mean into it.

        A client takes `steps` steps of SGD, each on a fresh uniform batch of min(64, size) of its
        samples without replacement. The mean is weighted by the clients' sample counts.
        """
        offsets = np.zeros(BATCH, np.int64)
        chosen = np.zeros(BATCH, np.int64)
        columns = np.zeros(width * BATCH, np.float32)
        scores = np.zeros(classes * BATCH, np.float32)
        total = np.zeros(weights.size, np.float64)
        samples = 0.0
        for client in cohort:
            size = starts[client + 1] - starts[client]
            batch = min(BATCH, size)
            lanes = (batch + 15) // 16 * 16
            deck = np.arange(starts[client], starts[client + 1])
            scale = float32(-rate / batch)
            state = stream(seed, round_, client)
            local = weights.copy()
            for _ in range(steps):
                for j in range(batch):
                    state += STEP
                    r = j + below(state, size - j)
                    sample = deck[r]
                    deck[r] = deck[j]
                    deck[j] = sample
                    chosen[j] = labels[sample]
                    offsets[j] = sample * width
                for j in range(batch, lanes):
                    offsets[j] = offsets[0]
                for s in range(0, lanes, 16):
                    for f in range(0, used, 16):
                        transpose(rows, offsets, s, f, columns, f * BATCH + s, BATCH)
                    dot_tile(columns, s, BATCH, local, 0, width, used, scores, classes)
                    _softmax(scores, s, classes)
                for s in range(batch):
                    scores[chosen[s] * BATCH + s] -= float32(1.0)
                for f in range(0, width, 32):
                    outer_tile(
                        rows, offsets, batch, f, scores, 0, BATCH, local, width, scale, classes
                    )
            samples += size
            total += size * local.astype(np.float64)
        weights[:] = (total / samples).astype(np.float32)

    return train_round


def _evaluate(classes: int) -> Any:
    @njit(nogil=True, cache=True)
    def evaluate(weights, columns, labels, used, width):  # type: ignore[no-untyped-def]
        """Mean cross-entropy and accuracy over all samples."""
        scores = np.zeros(classes * BATCH, np.float32)
        losses = np.zeros(BATCH, np.float32)
        loss, right = 0.0, 0
        for block in range((labels.size + BATCH - 1) // BATCH):
            data = columns[block * used * BATCH : (block + 1) * used * BATCH]
            for s in range(0, BATCH, 16):
                dot_tile(data, s, BATCH, weights, 0, width, used, scores, classes)
                top = load(scores, s)
                for c in range(1, classes):
                    top = maximum(top, load(scores, c * BATCH + s))
                total = constant(0.0)
                for c in range(classes):
                    total = add(total, exp(subtract(load(scores, c * BATCH + s), top)))
                store(losses, s, add(top, log(total)))
            for s in range(min(BATCH, labels.size - block * BATCH)):
                label = labels[block * BATCH + s]
                score = scores[label * BATCH + s]
                loss += losses[s] - score
                best = True  # of equal scores the first class counts, as argmax has it
                for c in range(classes):
                    other = scores[c * BATCH + s]
                    best &= other < score or (other == score and c >= label)
                right += best
        return loss / labels.size, right / labels.size

    return evaluate
