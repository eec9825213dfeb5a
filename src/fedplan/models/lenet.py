"""LeNet-5: forward, backward and SGD of a whole local run as fused kernels, one sample a lane.

28 x 28 images; 6 and 16 channels of 5 x 5 convolutions (the first padded by 2), each with ReLU and
2 x 2 max pooling; 400-120-84-10 with ReLU between: 61,706 parameters. Sixteen samples go through
all layers at a time, so that what they leave behind stays in the cache; the dense layers' gradients
are then formed over the whole batch, one input a lane, and applied as they are formed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from fedplan.errors import InputError
from fedplan.models.convolution import (
    NOTHING,
    SIDE,
    TAPS,
    convolve_pool_tile,
    pixel_gradient_tile,
    tap_gradient_tile,
)
from fedplan.models.draws import STEP, below, stream
from fedplan.models.lanes import (
    LANES,
    add,
    aligned_zeros,
    constant,
    dot_tile,
    lane_sum,
    load,
    maximum,
    outer_tile,
    store,
    transpose,
    where_equal,
    where_greater,
)
from fedplan.models.learner import FloatArray, IntArray, check_batch_size
from fedplan.models.softmax import is_best, log_sum_exp, softmax
from fedplan.tasks.dataset import FederatedData

IMAGE = 28
CLASSES = 10
PADDED = IMAGE + SIDE - 1  # 32
POOLED_1 = IMAGE // 2  # 14
SIDE_2 = POOLED_1 - SIDE + 1  # 10
POOLED_2 = SIDE_2 // 2  # 5
CHANNELS_1, CHANNELS_2 = 6, 16
INPUTS, HIDDEN_1, HIDDEN_2 = CHANNELS_2 * POOLED_2**2, 120, 84
# A dense layer's row: its inputs, a bias, and zeros up to a multiple of 32.
WIDTH_1, WIDTH_2, WIDTH_3 = 416, 128, 96
# Where each layer's weights begin in the flat array; dense rows begin at whole cache lines.
TAPS_1 = 0
BIASES_1 = TAPS_1 + CHANNELS_1 * TAPS
TAPS_2 = BIASES_1 + CHANNELS_1
BIASES_2 = TAPS_2 + CHANNELS_2 * CHANNELS_1 * TAPS
DENSE_1 = -(-(BIASES_2 + CHANNELS_2) // LANES) * LANES
DENSE_2 = DENSE_1 + HIDDEN_1 * WIDTH_1
DENSE_3 = DENSE_2 + HIDDEN_2 * WIDTH_2
SIZE = DENSE_3 + CLASSES * WIDTH_3
# Vectors of one channel.
PLANE_0, PLANE_1, PLANE_2 = PADDED**2 * LANES, POOLED_1**2 * LANES, POOLED_2**2 * LANES
ERRORS_2 = SIDE_2**2 * LANES  # one channel of the second layer before pooling
# Rows of a tile: as many sums as registers hold, and a divisor of the layer's rows.
TILE_1, TILE_2, TILE_INPUTS, TILE_HIDDEN = 6, 4, 10, 12


class LeNet5:
    """LeNet-5 on one federated data set of 28 x 28 images in at most ten classes.

    Starts from normal weights and biases of variance 1 / (3 inputs), drawn from the seed: the
    spread of PyTorch's default. `unpack` gives the layers' weights.
    """

    def __init__(self, data: FederatedData, *, batch_size: int = 64) -> None:
        check_batch_size(batch_size)
        _check_data(data)
        self.labels = np.array(data.y, dtype=np.int64)
        self.sizes = data.sizes
        self._data = data
        self._batch_size = batch_size

    def initial(self, seed: int) -> FloatArray:
        """Normal weights and biases of variance 1 / (3 inputs)."""
        random = np.random.default_rng(seed)
        weights = np.zeros(SIZE, dtype=np.float32)
        layers = self.unpack(weights)
        for layer, bias in zip(layers[::2], layers[1::2], strict=True):
            spread = 1 / math.sqrt(3 * math.prod(layer.shape[1:]))
            layer[:] = random.normal(scale=spread, size=layer.shape)
            bias[:] = random.normal(scale=spread, size=bias.shape)
        return weights

    @staticmethod
    def unpack(weights: FloatArray) -> tuple[FloatArray, ...]:
        """Weights and bias of each of the five layers, in turn, as views of the flat array."""
        dense = []
        for start, rows, inputs, width in (
            (DENSE_1, HIDDEN_1, INPUTS, WIDTH_1),
            (DENSE_2, HIDDEN_2, HIDDEN_1, WIDTH_2),
            (DENSE_3, CLASSES, HIDDEN_2, WIDTH_3),
        ):
            matrix = weights[start : start + rows * width].reshape(rows, width)
            dense += [matrix[:, :inputs], matrix[:, inputs]]
        return (
            weights[TAPS_1:BIASES_1].reshape(CHANNELS_1, 1, SIDE, SIDE),
            weights[BIASES_1:TAPS_2],
            weights[TAPS_2:BIASES_2].reshape(CHANNELS_2, CHANNELS_1, SIDE, SIDE),
            weights[BIASES_2 : BIASES_2 + CHANNELS_2],
            *dense,
        )

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
        _train_round(
            weights, self._data.x.reshape(-1), self.labels, self._data.starts, cohort, shares,
            local_steps, rate, seed, round_, self._batch_size,
        )  # fmt: skip

    def samples(self, rows: IntArray | None = None) -> Samples:
        """All training samples, or these rows of them."""
        if rows is None:
            rows = np.arange(self._data.num_samples)
        return Samples(images=self._data.x, labels=self.labels, rows=rows)

    def test_samples(self) -> Samples | None:
        """The samples no client trains on."""
        if self._data.test_x is None or self._data.test_y is None:
            return None
        labels = np.array(self._data.test_y, dtype=np.int64)
        return Samples(images=self._data.test_x, labels=labels, rows=np.arange(labels.size))

    def evaluate(self, weights: FloatArray, samples: Samples) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        images = samples.images.reshape(-1)
        loss, accuracy = _evaluate(weights, images, samples.labels, samples.rows)
        return float(loss), float(accuracy)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of a set of images."""

    images: FloatArray
    labels: IntArray
    rows: IntArray


def _check_data(data: FederatedData) -> None:
    problems = []
    if data.num_features != IMAGE**2 or data.image_shape not in (
        None,
        (IMAGE, IMAGE),
        (1, IMAGE, IMAGE),
    ):
        shape = data.image_shape or (data.num_features,)
        problems.append(
            f"LeNet-5 needs images of {IMAGE} x {IMAGE}, but {data.name} has samples of shape "
            f"{shape}. Use the logistic model, or other data."
        )
    if data.num_classes > CLASSES:
        problems.append(
            f"LeNet-5 tells {CLASSES} classes apart, but {data.name} has {data.num_classes}."
        )
    if problems:
        raise InputError(problems)


@njit(nogil=True)
def _forward(weights, x, offsets, s, stride, image, pool_1, which_1, pool_2, which_2, a, b, c, out):  # type: ignore[no-untyped-def]
    """Scores of the samples at offsets s to s + 15, and everything the way back needs.

    a, b, c hold the inputs of the dense layers, row i at i * stride, then ones for the bias.
    """
    for y in range(IMAGE):
        line = ((y + 2) * PADDED + 2) * LANES
        for f in (0, IMAGE - LANES):  # the two overlap
            transpose(x, offsets, s, y * IMAGE + f, image, line + f * LANES, LANES)
    for y in range(POOLED_1):
        for k in range(POOLED_1):
            convolve_pool_tile(
                image, (2 * y * PADDED + 2 * k) * LANES, PADDED * LANES, PLANE_0, 1, weights,
                TAPS_1, BIASES_1, pool_1, which_1, (y * POOLED_1 + k) * LANES, PLANE_1, TILE_1,
            )  # fmt: skip
    for o in range(0, CHANNELS_2, TILE_2):
        for y in range(POOLED_2):
            for k in range(POOLED_2):
                convolve_pool_tile(
                    pool_1, (2 * y * POOLED_1 + 2 * k) * LANES, POOLED_1 * LANES, PLANE_1,
                    CHANNELS_1, weights, TAPS_2 + o * CHANNELS_1 * TAPS, BIASES_2 + o, pool_2,
                    which_2, o * PLANE_2 + (y * POOLED_2 + k) * LANES, PLANE_2, TILE_2,
                )  # fmt: skip
    for i in range(INPUTS):
        store(a, i * stride + s, load(pool_2, i * LANES))
    zero = constant(0.0)
    dense = weights[DENSE_1:]
    for o in range(0, HIDDEN_1, TILE_HIDDEN):
        dot_tile(a, s, stride, dense, o, WIDTH_1, 1, INPUTS + 1, b, TILE_HIDDEN)
    for o in range(HIDDEN_1):
        store(b, o * stride + s, maximum(load(b, o * stride + s), zero))
    dense = weights[DENSE_2:]
    for o in range(0, HIDDEN_2, TILE_HIDDEN):
        dot_tile(b, s, stride, dense, o, WIDTH_2, 1, HIDDEN_1 + 1, c, TILE_HIDDEN)
    for o in range(HIDDEN_2):
        store(c, o * stride + s, maximum(load(c, o * stride + s), zero))
    dot_tile(c, s, stride, weights[DENSE_3:], 0, WIDTH_3, 1, HIDDEN_2 + 1, out, CLASSES)


@njit(nogil=True)
def _backward_dense(weights, s, stride, b, c, errors_3, errors_2, errors_1, errors_0):  # type: ignore[no-untyped-def]
    """Errors of the scores back to the inputs of the dense layers."""
    zero = constant(0.0)
    dense = weights[DENSE_3:]
    for o in range(0, HIDDEN_2, TILE_HIDDEN):
        dot_tile(errors_3, s, stride, dense, o, 1, WIDTH_3, CLASSES, errors_2, TILE_HIDDEN)
    for o in range(HIDDEN_2):
        at = o * stride + s
        store(errors_2, at, where_greater(load(c, at), zero, load(errors_2, at), zero))
    dense = weights[DENSE_2:]
    for o in range(0, HIDDEN_1, TILE_HIDDEN):
        dot_tile(errors_2, s, stride, dense, o, 1, WIDTH_2, HIDDEN_2, errors_1, TILE_HIDDEN)
    for o in range(HIDDEN_1):
        at = o * stride + s
        store(errors_1, at, where_greater(load(b, at), zero, load(errors_1, at), zero))
    dense = weights[DENSE_1:]
    for o in range(0, INPUTS, TILE_INPUTS):
        dot_tile(errors_1, s, stride, dense, o, 1, WIDTH_1, HIDDEN_1, errors_0, TILE_INPUTS)


@njit(nogil=True)
def _bias_gradient(errors, which, channels, windows, gradient, at):  # type: ignore[no-untyped-def]
    zero = constant(0.0)
    for o in range(channels):
        total = zero
        for i in range(o * windows * LANES, (o + 1) * windows * LANES, LANES):
            passed = where_equal(load(which, i), constant(NOTHING), zero, load(errors, i))
            total = add(total, passed)
        gradient[at + o] += lane_sum(total)


@njit(nogil=True)
def _backward_convolutions(  # type: ignore[no-untyped-def]
    weights, image, pool_1, which_1, which_2, errors_2, spread, errors_1, gradient
):
    """Errors after the second pooling back to the first layer, into the taps' gradient."""
    zero = constant(0.0)
    for o in range(CHANNELS_2):
        for y in range(POOLED_2):
            for k in range(POOLED_2):
                at = o * PLANE_2 + (y * POOLED_2 + k) * LANES
                error, which = load(errors_2, at), load(which_2, at)
                for q in range(4):
                    pixel = (2 * y + q // 2) * SIDE_2 + 2 * k + q % 2
                    value = where_equal(which, constant(float32(q)), error, zero)
                    store(spread, o * ERRORS_2 + pixel * LANES, value)
        for c in range(CHANNELS_1):
            tap_gradient_tile(
                pool_1, c * PLANE_1, POOLED_1 * LANES, POOLED_2, errors_2, which_2, o * PLANE_2,
                gradient, TAPS_2 + (o * CHANNELS_1 + c) * TAPS,
            )  # fmt: skip
    _bias_gradient(errors_2, which_2, CHANNELS_2, POOLED_2**2, gradient, BIASES_2)
    for c in range(CHANNELS_1):
        for y in range(POOLED_1):
            pixel_gradient_tile(
                spread, y * SIDE_2 * LANES, ERRORS_2, CHANNELS_2, max(0, y - SIDE_2 + 1),
                min(SIDE, y + 1), weights, TAPS_2 + c * TAPS, CHANNELS_1 * TAPS, errors_1,
                c * PLANE_1 + y * POOLED_1 * LANES, SIDE_2,
            )  # fmt: skip
    for o in range(CHANNELS_1):
        tap_gradient_tile(
            image, 0, PADDED * LANES, POOLED_1, errors_1, which_1, o * PLANE_1, gradient,
            TAPS_1 + o * TAPS,
        )  # fmt: skip
    _bias_gradient(errors_1, which_1, CHANNELS_1, POOLED_1**2, gradient, BIASES_1)


@njit(inline="always")
def _update_dense(  # type: ignore[no-untyped-def]
    inputs, errors, rows, width, stride, batch, turned, places, lines, dense, scale, tile
):
    """Add scale * errors x inputs, summed over the batch, to the weights; one input a lane."""
    lanes = (batch + 15) // 16 * 16
    for i in range(width):
        places[i] = i * stride
    for i in range(0, width, LANES):
        for s in range(0, lanes, LANES):
            transpose(inputs, places, i, s, turned, s * width + i, width)
    for s in range(batch):
        lines[s] = s * width
    for i in range(0, width, 32):
        for o in range(0, rows, tile):
            outer_tile(turned, lines, batch, i, errors, o, stride, dense, width, scale, tile)


@njit(nogil=True, cache=True)
def _train_round(  # type: ignore[no-untyped-def]
    weights, x, labels, starts, cohort, shares, steps, rate, seed, round_, batch_size
):
    """One round of FedAvg; the interface `Learner` says what it does."""
    stride = (batch_size + 15) // 16 * 16
    offsets, chosen = np.zeros(stride, np.int64), np.zeros(stride, np.int64)
    places, lines = np.zeros(WIDTH_1, np.int64), np.zeros(stride, np.int64)
    image = aligned_zeros(PLANE_0)
    pool_1, which_1 = aligned_zeros(CHANNELS_1 * PLANE_1), aligned_zeros(CHANNELS_1 * PLANE_1)
    pool_2, which_2 = aligned_zeros(CHANNELS_2 * PLANE_2), aligned_zeros(CHANNELS_2 * PLANE_2)
    a, b, c = (
        aligned_zeros(WIDTH_1 * stride),
        aligned_zeros(WIDTH_2 * stride),
        aligned_zeros(WIDTH_3 * stride),
    )
    a[INPUTS * stride : (INPUTS + 1) * stride] = 1.0
    b[HIDDEN_1 * stride : (HIDDEN_1 + 1) * stride] = 1.0
    c[HIDDEN_2 * stride : (HIDDEN_2 + 1) * stride] = 1.0
    scores = aligned_zeros(CLASSES * stride)
    errors_b, errors_a = aligned_zeros(HIDDEN_2 * stride), aligned_zeros(HIDDEN_1 * stride)
    errors_0, errors_1 = aligned_zeros(INPUTS * stride), aligned_zeros(CHANNELS_1 * PLANE_1)
    errors_2, spread = aligned_zeros(CHANNELS_2 * PLANE_2), aligned_zeros(CHANNELS_2 * ERRORS_2)
    turned = aligned_zeros(WIDTH_1 * stride)
    gradient = np.zeros(BIASES_2 + CHANNELS_2, np.float32)
    local = aligned_zeros(SIZE)
    total = (1.0 - shares.sum()) * weights.astype(np.float64)
    for k in range(cohort.size):
        client = cohort[k]
        size = starts[client + 1] - starts[client]
        batch = min(batch_size, size)
        lanes = (batch + 15) // 16 * 16
        deck = np.arange(starts[client], starts[client + 1])
        scale = float32(-rate / batch)
        state = stream(seed, round_, client)
        local[:] = weights
        for _ in range(steps):
            for j in range(batch):
                state += STEP
                r = j + below(state, size - j)
                sample = deck[r]
                deck[r] = deck[j]
                deck[j] = sample
                chosen[j] = labels[sample]
                offsets[j] = sample * IMAGE * IMAGE
            for j in range(batch, lanes):
                offsets[j] = offsets[0]
            gradient[:] = 0.0
            for s in range(0, lanes, LANES):
                _forward(
                    local, x, offsets, s, stride, image, pool_1, which_1, pool_2, which_2, a, b, c,
                    scores,
                )  # fmt: skip
                softmax(scores, s, stride, CLASSES)
                for j in range(s, min(s + LANES, batch)):
                    scores[chosen[j] * stride + j] -= float32(1.0)
                for j in range(max(s, batch), s + LANES):  # lanes without a sample
                    for o in range(CLASSES):
                        scores[o * stride + j] = 0.0
                _backward_dense(local, s, stride, b, c, scores, errors_b, errors_a, errors_0)
                for i in range(INPUTS):
                    store(errors_2, i * LANES, load(errors_0, i * stride + s))
                _backward_convolutions(
                    local, image, pool_1, which_1, which_2, errors_2, spread, errors_1, gradient
                )
            for i in range(gradient.size):
                local[i] += scale * gradient[i]
            _update_dense(
                a, errors_a, HIDDEN_1, WIDTH_1, stride, batch, turned, places, lines,
                local[DENSE_1:], scale, TILE_HIDDEN,
            )  # fmt: skip
            _update_dense(
                b, errors_b, HIDDEN_2, WIDTH_2, stride, batch, turned, places, lines,
                local[DENSE_2:], scale, TILE_HIDDEN,
            )  # fmt: skip
            _update_dense(
                c, scores, CLASSES, WIDTH_3, stride, batch, turned, places, lines,
                local[DENSE_3:], scale, CLASSES,
            )  # fmt: skip
        total += shares[k] * local
    weights[:] = total


@njit(nogil=True, cache=True)
def _evaluate(weights, x, labels, rows):  # type: ignore[no-untyped-def]
    """Mean cross-entropy and accuracy over these rows."""
    offsets = np.zeros(LANES, np.int64)
    image = aligned_zeros(PLANE_0)
    pool_1, which_1 = aligned_zeros(CHANNELS_1 * PLANE_1), aligned_zeros(CHANNELS_1 * PLANE_1)
    pool_2, which_2 = aligned_zeros(CHANNELS_2 * PLANE_2), aligned_zeros(CHANNELS_2 * PLANE_2)
    a, b, c = (
        aligned_zeros(WIDTH_1 * LANES),
        aligned_zeros(WIDTH_2 * LANES),
        aligned_zeros(WIDTH_3 * LANES),
    )
    a[INPUTS * LANES : (INPUTS + 1) * LANES] = 1.0
    b[HIDDEN_1 * LANES : (HIDDEN_1 + 1) * LANES] = 1.0
    c[HIDDEN_2 * LANES : (HIDDEN_2 + 1) * LANES] = 1.0
    scores, losses = aligned_zeros(CLASSES * LANES), np.zeros(LANES, np.float32)
    local = aligned_zeros(SIZE)
    local[:] = weights
    loss, right = 0.0, 0
    for first in range(0, rows.size, LANES):
        count = min(LANES, rows.size - first)
        for j in range(LANES):
            offsets[j] = rows[first + min(j, count - 1)] * IMAGE * IMAGE
        _forward(
            local, x, offsets, 0, LANES, image, pool_1, which_1, pool_2, which_2, a, b, c, scores
        )
        log_sum_exp(scores, 0, LANES, CLASSES, losses)
        for j in range(count):
            label = labels[rows[first + j]]
            loss += losses[j] - scores[label * LANES + j]
            right += is_best(scores, j, LANES, CLASSES, label)
    return loss / rows.size, right / rows.size
