"""LeNet-5: 28 x 28 images in ten classes; the kernels are in `lenet_kernels`.

6 and 16 channels of 5 x 5 convolutions (the first padded by 2), each with ReLU and 2 x 2 max
pooling; 400-120-84-10 with ReLU between: 61,706 parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedplan.errors import InputError
from fedplan.models.convolution import SIDE
from fedplan.models.learner import NOWHERE, FloatArray, IntArray, check_batch_size
from fedplan.models.lenet_kernels import (
    BIASES_1,
    BIASES_2,
    CHANNELS_1,
    CHANNELS_2,
    CLASSES,
    DENSE_1,
    DENSE_2,
    DENSE_3,
    HIDDEN_1,
    HIDDEN_2,
    IMAGE,
    INPUTS,
    SIZE,
    TAPS_1,
    TAPS_2,
    WIDTH_1,
    WIDTH_2,
    WIDTH_3,
    evaluate,
    train_round,
)
from fedplan.tasks.dataset import FederatedData


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

    @property
    def num_parameters(self) -> int:
        """Weights that the model has, without what fills up rows: 61,706."""
        return sum(layer.size for layer in self.unpack(np.zeros(SIZE, dtype=np.float32)))

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
        halfway: FloatArray | None = None,
    ) -> None:
        """One round of FedAvg, in place."""
        train_round(
            weights, self._data.x.reshape(-1), self.labels, self._data.starts, cohort, shares,
            local_steps, rate, seed, round_, self._batch_size,
            NOWHERE if halfway is None else halfway,
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
        loss, accuracy = evaluate(weights, images, samples.labels, samples.rows)
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
