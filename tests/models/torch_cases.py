"""Modules and data for the tests of TorchLearner, in this process and in fresh ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from fedplan.models.torch_learner import TorchLearner
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import FederatedData


def images(sizes=(9, 17, 5, 12), num_classes=3, side=8, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, num_classes, sum(sizes))
    x = random.normal(size=(y.size, side * side)) + y[:, None] * np.linspace(-1, 1, side * side)
    return FederatedData(
        x=x,
        y=y,
        starts=np.concatenate([[0], np.cumsum(sizes)]),
        num_classes=num_classes,
        test_x=x[::3],
        test_y=y[::3],
        image_shape=(side, side),
    )


def zero_linear(features, classes):
    def build():
        module = nn.Linear(features, classes)
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
        return module

    return build


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    )


def normalised():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 6, bias=False), nn.BatchNorm1d(6), nn.Linear(6, 3)
    )


class Noise(nn.Module):
    """Draws by an operation that takes no generator, even when it is evaluated."""

    def forward(self, x):
        return x + 0.1 * torch.randn_like(x)


def noisy():
    return nn.Sequential(
        nn.Flatten(), Noise(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)
    )


def noisy_simulator():
    learner = TorchLearner.from_data(noisy, images(), batch_size=8)
    return Simulator(learner, LearningRate(initial=0.05))
