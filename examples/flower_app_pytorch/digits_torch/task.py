"""What is learnt: a network with one hidden layer, on a tenth of MNIST, in PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from fedplan.tasks import mnist_mini

# Read when the app is loaded, not while it trains: seconds of training are then those of steps.
# 6,000 images for training and 1,000 for tests, which fedplan has with it.
DIGITS = mnist_mini()
torch.set_num_threads(1)  # the nodes of a simulation share the machine


def make_model() -> nn.Module:
    """The network, with the same weights wherever it is made."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


def load_partition(partition: int, num_partitions: int) -> TensorDataset:
    """One client's images and labels: half of them of all digits, half of a few digits alone."""
    by_digit = np.argsort(DIGITS.y, kind="stable")
    shared, own = by_digit[::2], by_digit[1::2]
    mine = [shared[partition::num_partitions], np.array_split(own, num_partitions)[partition]]
    return as_dataset(*(values[np.concatenate(mine)] for values in (DIGITS.x, DIGITS.y)))


def load_test_set() -> TensorDataset:
    """The images that no client trains on."""
    return as_dataset(DIGITS.test_x, DIGITS.test_y)


def as_dataset(x: np.ndarray, y: np.ndarray) -> TensorDataset:
    """Images and labels for torch; copied, for fedplan's may not be written to."""
    return TensorDataset(torch.tensor(x), torch.tensor(y))


@torch.inference_mode()
def evaluate(model: nn.Module, data: TensorDataset) -> tuple[float, float]:
    """Mean cross-entropy and accuracy."""
    x, y = data.tensors
    scores = model(x)
    loss = nn.functional.cross_entropy(scores, y)
    return loss.item(), (scores.argmax(dim=1) == y).float().mean().item()
