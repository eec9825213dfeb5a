"""Kernels of LeNet-5: forward, backward and SGD of a whole local run, one sample per lane.

Sixteen samples go through all layers at a time, so that what they leave behind stays in the cache;
the dense layers' gradients are then formed over the whole batch, one input a lane, and applied as
they are formed.
"""

from typing import NamedTuple

import numpy as np
from numba import float32, njit

from fedplan.models.convolution import (
    NOTHING,
    SIDE,
    TAPS,
    convolve_pool_some_tile,
    convolve_pool_tile,
    pixel_gradient_tile,
    tap_gradient_tile,
)
from fedplan.models.draws import STEP, draw_next, kernel, stream
from fedplan.models.lanes import (
    LANES,
    add,
    aligned_zeros,
    constant,
    dot_tile,
    lane_sum,
    load,
    maximum,
    nonzero,
    outer_tile,
    store,
    transpose,
    where_equal,
    where_greater,
)
from fedplan.models.learner import FloatArray, IntArray
from fedplan.models.softmax import log_sum_exp, softmax

IMAGE = 28
CLASSES = 10
PADDED = IMAGE + SIDE - 1  # 32
POOLED_1 = IMAGE // 2  # 14
POOLED_2 = (POOLED_1 - SIDE + 1) // 2  # 5
CHANNELS_1, CHANNELS_2 = 6, 16
INPUTS, HIDDEN_1, HIDDEN_2 = CHANNELS_2 * POOLED_2**2, 120, 84
# A dense layer's row: its inputs, a bias, and zeros up to a multiple of 32.
WIDTH_1, WIDTH_2, WIDTH_3 = 416, 128, 96
# Where each layer's weights begin in the flat array; dense rows begin at whole cache lines.
TAPS_1, BIASES_1 = 0, CHANNELS_1 * TAPS
TAPS_2 = BIASES_1 + CHANNELS_1
BIASES_2 = TAPS_2 + CHANNELS_2 * CHANNELS_1 * TAPS
DENSE_1 = -(-(BIASES_2 + CHANNELS_2) // LANES) * LANES
DENSE_2 = DENSE_1 + HIDDEN_1 * WIDTH_1
DENSE_3 = DENSE_2 + HIDDEN_2 * WIDTH_2
SIZE = DENSE_3 + CLASSES * WIDTH_3
# Vectors of one channel.
PLANE_0, PLANE_1, PLANE_2 = PADDED**2 * LANES, POOLED_1**2 * LANES, POOLED_2**2 * LANES
# Rows of a tile: as many sums as registers hold with what is summed (four a row in convolutions),
# and a divisor of the layer's rows.
TILE_1, TILE_2, TILE_INPUTS, TILE_HIDDEN = 3, 4, 10, 12


class Space(NamedTuple):
    """Buffers for one batch. Rows of dense layers are `stride` samples apart."""

    image: FloatArray  # of sixteen samples, like all planes; its border stays zero
    met: IntArray  # bits of columns and of taps, see `_find_taps`
    taps: IntArray
    pooled_1: FloatArray
    which_1: FloatArray
    pooled_2: FloatArray
    which_2: FloatArray
    inputs_1: FloatArray  # of the dense layers, with a row of ones for the bias
    inputs_2: FloatArray
    inputs_3: FloatArray
    scores: FloatArray  # then probabilities, then errors
    errors_3: FloatArray  # of the inputs of the dense layers
    errors_2: FloatArray
    errors_1: FloatArray
    errors_pooled_2: FloatArray
    errors_pooled_1: FloatArray
    gradient: FloatArray  # of taps and their biases
    turned: FloatArray  # a dense layer's inputs, one sample a row
    columns: IntArray  # where its inputs start before turning, and its samples after
    rows: IntArray


@njit(nogil=True)
def _make_space(stride):
    space = Space(
        aligned_zeros(PLANE_0),
        np.zeros(PADDED, np.int64),
        np.zeros(POOLED_1**2, np.int64),
        aligned_zeros(CHANNELS_1 * PLANE_1),
        aligned_zeros(CHANNELS_1 * PLANE_1),
        aligned_zeros(CHANNELS_2 * PLANE_2),
        aligned_zeros(CHANNELS_2 * PLANE_2),
        aligned_zeros(WIDTH_1 * stride),
        aligned_zeros(WIDTH_2 * stride),
        aligned_zeros(WIDTH_3 * stride),
        aligned_zeros(CLASSES * stride),
        aligned_zeros(HIDDEN_2 * stride),
        aligned_zeros(HIDDEN_1 * stride),
        aligned_zeros(INPUTS * stride),
        aligned_zeros(CHANNELS_2 * PLANE_2),
        aligned_zeros(CHANNELS_1 * PLANE_1),
        aligned_zeros(BIASES_2 + CHANNELS_2),
        aligned_zeros(WIDTH_1 * stride),
        np.zeros(WIDTH_1, np.int64),
        np.zeros(stride, np.int64),
    )
    space.inputs_1[INPUTS * stride : (INPUTS + 1) * stride] = 1.0
    space.inputs_2[HIDDEN_1 * stride : (HIDDEN_1 + 1) * stride] = 1.0
    space.inputs_3[HIDDEN_2 * stride : (HIDDEN_2 + 1) * stride] = 1.0
    return space


@njit(nogil=True)
def _find_taps(x, offsets, s, space):
    """Bits of the taps that meet more than zeros, for every window of the first layer.

    A tap of a window meets 2 x 2 pixels, in sixteen samples. Digits have wide blank borders, so
    that about half of all taps of a block meet nothing.
    """
    met = space.met  # a row's bits: columns whose pixel, or one right of it or below, is not blank
    met[:] = 0
    for y in range(IMAGE):
        bits = 0
        for i in range(s, s + LANES):
            at = offsets[i] + y * IMAGE
            bits |= nonzero(load(x, at))
            bits |= nonzero(load(x, at + IMAGE - LANES)) << (IMAGE - LANES)
        bits = bits << 1 | bits << 2  # the image begins at row and column 2
        met[y + 1] |= bits
        met[y + 2] |= bits
    for y in range(POOLED_1):
        for k in range(POOLED_1):
            taps = 0
            for i in range(SIDE):
                taps |= (met[2 * y + i] >> (2 * k) & (2**SIDE - 1)) << (SIDE * i)
            space.taps[y * POOLED_1 + k] = taps


@njit(nogil=True)
def _forward(weights, x, offsets, s, space):
    """Scores of the samples at offsets s to s + 15, and everything backpropagation needs."""
    for y in range(IMAGE):
        line = ((y + 2) * PADDED + 2) * LANES
        for f in (0, IMAGE - LANES):  # the two overlap
            transpose(x, offsets, s, y * IMAGE + f, space.image, line + f * LANES, LANES)
    _find_taps(x, offsets, s, space)
    for y in range(POOLED_1):
        for k in range(POOLED_1):
            for o in range(0, CHANNELS_1, TILE_1):
                convolve_pool_some_tile(
                    space.image, (2 * y * PADDED + 2 * k) * LANES, PADDED * LANES,
                    space.taps[y * POOLED_1 + k], weights, TAPS_1 + o * TAPS, BIASES_1 + o,
                    space.pooled_1, space.which_1, o * PLANE_1 + (y * POOLED_1 + k) * LANES,
                    PLANE_1, TILE_1,
                )  # fmt: skip
    for o in range(0, CHANNELS_2, TILE_2):
        for y in range(POOLED_2):
            for k in range(POOLED_2):
                convolve_pool_tile(
                    space.pooled_1, (2 * y * POOLED_1 + 2 * k) * LANES, POOLED_1 * LANES, PLANE_1,
                    CHANNELS_1, weights, TAPS_2 + o * CHANNELS_1 * TAPS, BIASES_2 + o,
                    space.pooled_2, space.which_2, o * PLANE_2 + (y * POOLED_2 + k) * LANES,
                    PLANE_2, TILE_2,
                )  # fmt: skip
    a, b, c, stride = space.inputs_1, space.inputs_2, space.inputs_3, space.rows.size
    for i in range(INPUTS):
        store(a, i * stride + s, load(space.pooled_2, i * LANES))
    _dense(a, s, stride, weights[DENSE_1:], HIDDEN_1, WIDTH_1, INPUTS, b)
    _dense(b, s, stride, weights[DENSE_2:], HIDDEN_2, WIDTH_2, HIDDEN_1, c)
    dot_tile(c, s, stride, weights[DENSE_3:], 0, WIDTH_3, 1, HIDDEN_2 + 1, space.scores, CLASSES)


@njit(inline="always")
def _dense(x, s, stride, weights, rows, width, inputs, out):
    """A dense layer and its ReLU."""
    for o in range(0, rows, TILE_HIDDEN):
        dot_tile(x, s, stride, weights, o, width, 1, inputs + 1, out, TILE_HIDDEN)
    for at in range(s, rows * stride, stride):
        store(out, at, maximum(load(out, at), constant(0.0)))


@njit(nogil=True)
def _backward_dense(weights, s, space):
    """Backpropagate the errors of the scores to the output of the second pooling."""
    a, b, c, stride = space.errors_1, space.errors_2, space.errors_3, space.rows.size
    scores, dense = space.scores, weights[DENSE_3:]
    _dense_errors(scores, s, stride, dense, CLASSES, WIDTH_3, HIDDEN_2, space.inputs_3, c)
    dense = weights[DENSE_2:]
    _dense_errors(c, s, stride, dense, HIDDEN_2, WIDTH_2, HIDDEN_1, space.inputs_2, b)
    dense = weights[DENSE_1:]
    for o in range(0, INPUTS, TILE_INPUTS):
        dot_tile(b, s, stride, dense, o, 1, WIDTH_1, HIDDEN_1, a, TILE_INPUTS)
    for i in range(INPUTS):
        store(space.errors_pooled_2, i * LANES, load(a, i * stride + s))


@njit(inline="always")
def _dense_errors(errors, s, stride, weights, rows, width, inputs, x, out):
    """Errors of a dense layer's inputs x, which passed a ReLU."""
    zero = constant(0.0)
    for o in range(0, inputs, TILE_HIDDEN):
        dot_tile(errors, s, stride, weights, o, 1, width, rows, out, TILE_HIDDEN)
    for at in range(s, inputs * stride, stride):
        store(out, at, where_greater(load(x, at), zero, load(out, at), zero))


@njit(nogil=True)
def _backward_relu(errors, which, channels, windows, gradient, at):
    """Zero the errors of windows that ReLU blocked; the rest sums to the biases' gradient."""
    zero = constant(0.0)
    for o in range(channels):
        total = zero
        for i in range(o * windows * LANES, (o + 1) * windows * LANES, LANES):
            passed = where_equal(load(which, i), constant(NOTHING), zero, load(errors, i))
            store(errors, i, passed)
            total = add(total, passed)
        gradient[at + o] += lane_sum(total)


@njit(nogil=True)
def _backward_convolutions(weights, space):
    """Backpropagate the errors after the second pooling into the taps' gradient."""
    gradient, errors_2, errors_1 = space.gradient, space.errors_pooled_2, space.errors_pooled_1
    _backward_relu(errors_2, space.which_2, CHANNELS_2, POOLED_2**2, gradient, BIASES_2)
    for o in range(CHANNELS_2):
        for c in range(CHANNELS_1):
            tap_gradient_tile(
                space.pooled_1, c * PLANE_1, POOLED_1 * LANES, POOLED_2, errors_2, space.which_2,
                o * PLANE_2, gradient, TAPS_2 + (o * CHANNELS_1 + c) * TAPS,
            )  # fmt: skip
    errors_1[:] = 0.0
    for y in range(POOLED_2):
        for k in range(POOLED_2):
            for c in range(CHANNELS_1):
                pixel_gradient_tile(
                    errors_2, space.which_2, (y * POOLED_2 + k) * LANES, PLANE_2, CHANNELS_2,
                    weights, TAPS_2 + c * TAPS, CHANNELS_1 * TAPS, errors_1,
                    c * PLANE_1 + (2 * y * POOLED_1 + 2 * k) * LANES, POOLED_1 * LANES,
                )  # fmt: skip
    _backward_relu(errors_1, space.which_1, CHANNELS_1, POOLED_1**2, gradient, BIASES_1)
    for o in range(CHANNELS_1):
        tap_gradient_tile(
            space.image, 0, PADDED * LANES, POOLED_1, errors_1, space.which_1, o * PLANE_1,
            gradient, TAPS_1 + o * TAPS,
        )  # fmt: skip


@njit(inline="always")
def _update(dense, inputs, errors, rows, width, batch, scale, space, tile):
    """Add scale * errors x inputs, summed over the batch, to the weights; one input per lane."""
    stride = space.rows.size
    for i in range(width):
        space.columns[i] = i * stride
    for i in range(0, width, LANES):
        for s in range(0, batch, LANES):
            transpose(inputs, space.columns, i, s, space.turned, s * width + i, width)
    for s in range(batch):
        space.rows[s] = s * width
    for i in range(0, width, 32):
        for o in range(0, rows, tile):
            outer_tile(
                space.turned, space.rows, batch, i, errors, o, stride, dense, width, scale, tile
            )


@njit(nogil=True)
def _step(weights, x, offsets, chosen, batch, rate, space):
    """One step of SGD on the samples at these offsets."""
    scores, stride = space.scores, space.rows.size
    space.gradient[:] = 0.0
    for s in range(0, batch, LANES):
        _forward(weights, x, offsets, s, space)
        softmax(scores, s, stride, CLASSES)
        for j in range(s, min(s + LANES, batch)):
            scores[chosen[j] * stride + j] -= float32(1.0)
        for j in range(max(s, batch), s + LANES):  # lanes without a sample
            for o in range(CLASSES):
                scores[o * stride + j] = 0.0
        _backward_dense(weights, s, space)
        _backward_convolutions(weights, space)
    scale = float32(-rate / batch)
    for i in range(space.gradient.size):
        weights[i] += scale * space.gradient[i]
    a, b, c = weights[DENSE_1:], weights[DENSE_2:], weights[DENSE_3:]
    _update(a, space.inputs_1, space.errors_2, HIDDEN_1, WIDTH_1, batch, scale, space, TILE_HIDDEN)
    _update(b, space.inputs_2, space.errors_3, HIDDEN_2, WIDTH_2, batch, scale, space, TILE_HIDDEN)
    _update(c, space.inputs_3, scores, CLASSES, WIDTH_3, batch, scale, space, CLASSES)


@kernel
def train_round(
    x, labels, starts, weights, cohort, shares, steps, rate, seed, round_, batch_size, halfway
):
    """One round of FedAvg; the interface `Learner` says what it does."""
    stride = (batch_size + 15) // 16 * 16
    space = _make_space(stride)
    offsets, chosen = np.zeros(stride, np.int64), np.zeros(stride, np.int64)
    local = aligned_zeros(SIZE)
    total = (1.0 - shares.sum()) * weights.astype(np.float64)
    middle = total[: halfway.size].copy()
    for k in range(cohort.size):
        client = cohort[k]
        deck = np.arange(starts[client], starts[client + 1])
        batch = min(batch_size, deck.size)
        state = stream(seed, round_, client)
        local[:] = weights
        for step in range(steps):
            if middle.size and step == steps // 2:
                middle += shares[k] * local
            for j in range(batch):
                state += STEP
                sample = draw_next(deck, j, state)
                chosen[j] = labels[sample]
                offsets[j] = sample * IMAGE * IMAGE
            offsets[batch:] = offsets[0]
            _step(local, x, offsets, chosen, batch, rate, space)
        total += shares[k] * local
    halfway[:] = middle
    weights[:] = total


@kernel
def evaluate(weights, x, labels, rows):
    """Mean cross-entropy and accuracy over these rows."""
    space = _make_space(LANES)
    offsets, sums, winners = np.zeros(LANES, np.int64), aligned_zeros(LANES), aligned_zeros(LANES)
    local = aligned_zeros(SIZE)
    local[:] = weights
    loss, right = 0.0, 0
    for first in range(0, rows.size, LANES):
        count = min(LANES, rows.size - first)
        for j in range(LANES):
            offsets[j] = rows[first + min(j, count - 1)] * IMAGE * IMAGE
        _forward(local, x, offsets, 0, space)
        log_sum_exp(space.scores, 0, LANES, CLASSES, sums, winners)
        for j in range(count):
            label = labels[rows[first + j]]
            loss += sums[j] - space.scores[label * LANES + j]
            right += winners[j] == label
    return loss / rows.size, right / rows.size
