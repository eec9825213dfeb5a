"""Data sets of the suite, shared out over clients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fedplan.models import Learner, LeNet5, Logistic
from fedplan.studies import read_study
from fedplan.studies.task import build_data
from fedplan.tasks import (
    Assignment,
    FederatedData,
    dirichlet,
    federate,
    load_mnist,
    mnist_mini,
    two_labels_shards,
)
from fedplan.tasks.dataset import IntArray
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS

RARE_LABELS = 8  # this digit and the next: on the slowest tenth alone, where devices hold them


def mini(share_out: Callable[[IntArray], Assignment]) -> FederatedData:
    """MNIST-mini, shared out by its labels."""
    digits = mnist_mini()
    return federate(
        digits.x, digits.y, share_out(digits.y), num_classes=NUM_DIGITS, image_shape=IMAGE_SHAPE,
        name="MNIST-mini",
    )  # fmt: skip


def skewed(num_clients: int) -> FederatedData:
    """MNIST-mini by Dirichlet(0.3): most clients hold few labels, and some few samples."""
    return mini(lambda y: dirichlet(y, num_clients, 0.3, seed=0))


def rare_labels(num_clients: int) -> FederatedData:
    """The same, but the slowest tenth of the clients holds all samples of two labels."""
    slow = num_clients // 10

    def share_out(y: IntArray) -> Assignment:
        is_rare = y >= RARE_LABELS
        common = np.flatnonzero(~is_rare)
        others = dirichlet(y[common], num_clients - slow, 0.3, seed=0)
        rare = np.array_split(np.flatnonzero(is_rare), slow)
        return [*rare, *(common[rows] for rows in others)]

    return mini(share_out)


def wisdm(data: Path) -> FederatedData:
    """Activities by the phones of 36 people, who are the clients."""
    with np.load(data / "wisdm" / "wisdm.npz") as arrays:
        x, y, client = (arrays[name] for name in ("x", "y", "client"))
    rows = [np.flatnonzero(client == number) for number in np.unique(client)]
    labels = y.astype(np.int64)
    return federate(
        x.astype(np.float32), labels, rows, num_classes=int(labels.max()) + 1, name="WISDM"
    )


def of_study(name: str, *overrides: str) -> Callable[[Path], Learner]:
    """What a built-in study learns."""
    return lambda _data: Logistic(build_data(read_study(name, overrides).task))


def setup2(folder: Path) -> Learner:
    """All of MNIST as the paper shares it out, two labels for each of 100 devices; LeNet-5."""
    digits = load_mnist(folder / "mnist")
    return LeNet5(
        federate(
            digits.x, digits.y, two_labels_shards(digits.y, 100, 20, seed=6),
            num_classes=NUM_DIGITS, image_shape=IMAGE_SHAPE, name="MNIST",
        )
    )  # fmt: skip
