"""The three workloads: data, model, K, E, and the arithmetic a step needs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.participation.draws import pick
from fedplan.tasks import (
    FederatedData,
    federate,
    load_mnist,
    mnist_mini,
    synthetic,
    two_labels_balanced,
    two_labels_shards,
)

ROOT = Path(__file__).parents[2]
BATCH = 64
COHORTS = 1000  # rounds whose clients are written down; a longer run starts over
LENET_SHAPES = ((6, 1, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84))
LENET_PLACES = (28 * 28, 10 * 10, 1, 1, 1)  # where a layer's weights are applied, in one image

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One workload.

    rounds : after which the engines' losses are compared.
    """

    name: str
    model: str
    make_data: Callable[[], FederatedData]
    clients_per_round: int
    local_steps: int
    learning_rate: float
    rounds: int

    @property
    def steps_per_round(self) -> int:
        """Local steps of all clients of a round."""
        return self.clients_per_round * self.local_steps


def mnist_two_labels() -> FederatedData:
    """Setup 1 of the paper: 20 clients with 300 images of two digits each."""
    digits = mnist_mini()
    return federate(digits.x, digits.y, two_labels_balanced(digits.y, 20, 300))


def mnist_shards() -> FederatedData:
    """Setup 2 of the paper: all 60,000 images on 100 clients, two digits each."""
    beside = ROOT.parent / "shared" / "data" / "mnist"
    use_it = "FEDPLAN_DATA" not in os.environ and beside.is_dir()
    digits = load_mnist(beside if use_it else None)
    return federate(digits.x, digits.y, two_labels_shards(digits.y, seed=6), image_shape=(28, 28))


SPECS = (
    Spec(
        name="logistic-60", model="logistic", make_data=lambda: synthetic(1, 1, seed=2130),
        clients_per_round=20, local_steps=40, learning_rate=0.01, rounds=10,
    ),
    Spec(
        name="logistic-784", model="logistic", make_data=mnist_two_labels,
        clients_per_round=20, local_steps=100, learning_rate=0.01, rounds=5,
    ),
    Spec(
        name="lenet5", model="lenet5", make_data=mnist_shards,
        clients_per_round=10, local_steps=20, learning_rate=0.02, rounds=4,
    ),
)  # fmt: skip


def first_weights(model: str, data: FederatedData, seed: int) -> list[FloatArray]:
    """Weights and biases layer by layer; dense ones (outputs, inputs), OIHW for convolutions.

    Zeros for softmax regression; normal with variance 2 / inputs for LeNet-5, which then learns
    enough in a few rounds for losses to be compared.
    """
    if model == "logistic":
        shapes: tuple[tuple[int, ...], ...] = ((data.num_classes, data.num_features),)
        spread = 0.0
    else:
        shapes = LENET_SHAPES
        spread = 2.0
    random = np.random.default_rng(seed)
    weights = []
    for shape in shapes:
        scale = math.sqrt(spread / math.prod(shape[1:]))
        weights += [random.normal(scale=scale, size=shape), np.zeros(shape[0])]
    return [array.astype(np.float32) for array in weights]


def step_flop(model: str, data: FederatedData) -> float:
    """Operations of one local step, on average over the clients (a small one has a small batch).

    Scores, and the gradient of every layer's weights and inputs; the inputs of the first layer need
    no gradient.
    """
    batch = float(np.minimum(data.sizes, BATCH).mean())
    layers = _layers(model, data)
    return batch * (3 * sum(layers) - layers[0])


def loss_flop(model: str, data: FederatedData) -> float:
    """Operations of the loss over all samples."""
    return float(data.num_samples * sum(_layers(model, data)))


def _layers(model: str, data: FederatedData) -> tuple[int, ...]:
    if model == "logistic":
        return (2 * (data.num_features + 1) * data.num_classes,)
    return tuple(
        2 * math.prod(shape) * places
        for shape, places in zip(LENET_SHAPES, LENET_PLACES, strict=True)
    )


def write_data(path: Path, spec: Spec, data: FederatedData, seeds: Sequence[int]) -> None:
    """Write what all engines are handed.

    The clients of every round and the first weights are the same for all, so that engines differ in
    their batches alone.
    """
    cohorts = [
        [
            pick(seed, round_, data.num_clients, spec.clients_per_round)
            for round_ in range(1, COHORTS + 1)
        ]
        for seed in seeds
    ]
    weights: dict[str, Any] = {
        f"w{seed}_{i:02}": array
        for seed in seeds
        for i, array in enumerate(first_weights(spec.model, data, seed))
    }
    np.savez(path, x=data.x, y=data.y, starts=data.starts, cohorts=np.array(cohorts), **weights)
