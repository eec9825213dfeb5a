"""LeNet-5: 28 x 28 images in ten classes; the kernels are in `lenet_kernels`.

6 and 16 channels of 5 x 5 convolutions (the first padded by 2), each with ReLU and 2 x 2 max
pooling; 400-120-84-10 with ReLU between: 61,706 parameters.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from fedplan.errors import refuse
from fedplan.models import lenet_kernels as layout
from fedplan.models.convolution import SIDE
from fedplan.models.learner import CompiledLearner, FloatArray, IntArray
from fedplan.models.lenet_kernels import CLASSES, IMAGE, SIZE, evaluate, train_round
from fedplan.tasks.dataset import FederatedData


class LeNet5(CompiledLearner):
    """LeNet-5 on one federated data set of 28 x 28 images in at most ten classes.

    Starts from normal weights and biases of variance 1 / (3 inputs), drawn from the seed: the
    spread of PyTorch's default. `unpack` gives the layers' weights.
    """

    def __init__(self, data: FederatedData, *, batch_size: int = 64) -> None:
        super().__init__(data, batch_size)
        _check_data(data)
        self._data = data
        self._train = partial(train_round, data.x.reshape(-1), self.labels, data.starts)

    @property
    def num_parameters(self) -> int:
        """The number of weights of the model, without padding: 61,706."""
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
        """Weights and bias of each of the five layers in order, as views of the flat array."""
        first, second = layout.CHANNELS_1, layout.CHANNELS_2
        ends = [layout.BIASES_1, layout.TAPS_2, layout.BIASES_2, layout.BIASES_2 + second]
        taps_1, biases_1, taps_2, biases_2, _ = np.split(weights, ends)
        layers = [taps_1.reshape(first, 1, SIDE, SIDE), biases_1]
        layers += [taps_2.reshape(second, first, SIDE, SIDE), biases_2]
        for start, rows, inputs, width in (
            (layout.DENSE_1, layout.HIDDEN_1, layout.INPUTS, layout.WIDTH_1),
            (layout.DENSE_2, layout.HIDDEN_2, layout.HIDDEN_1, layout.WIDTH_2),
            (layout.DENSE_3, CLASSES, layout.HIDDEN_2, layout.WIDTH_3),
        ):
            matrix = weights[start : start + rows * width].reshape(rows, width)
            layers += [matrix[:, :inputs], matrix[:, inputs]]
        return tuple(layers)

    def samples(self, rows: IntArray | None = None) -> Samples:
        """All training samples, or these rows of them."""
        if rows is None:
            rows = np.arange(self._data.num_samples)
        return Samples(self._data.x, self.labels, rows)

    def test_samples(self) -> Samples | None:
        """The samples no client trains on."""
        return None if self._test is None else Samples(*self._test, np.arange(len(self._test[1])))

    def evaluate(self, weights: FloatArray, samples: Samples) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        images, labels, rows = samples
        loss, accuracy = evaluate(weights, images.reshape(-1), labels, rows)
        return loss, accuracy


class Samples(NamedTuple):
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
    refuse(problems)
