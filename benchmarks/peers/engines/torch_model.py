"""The two models in PyTorch, and the loss over all samples; for every peer that trains with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from common import Task
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BLOCK = {"logistic": 4096, "lenet5": 500}  # samples of the loss at a time, the fastest of a few


def make_model(task: Task) -> nn.Module:
    """Softmax regression, or LeNet-5 with 61,706 parameters."""
    if task.workload.model == "logistic":
        return nn.Linear(task.x.shape[1], task.workload.num_classes)
    model: Any = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, task.workload.num_classes),
    )
    # A tenth faster here than the default order of the axes.
    channels_last: nn.Module = model.to(memory_format=torch.channels_last)
    return channels_last


def tensors(task: Task) -> tuple[Tensor, Tensor]:
    """All samples, as images for LeNet-5, and their labels."""
    x, y = torch.from_numpy(task.x), torch.from_numpy(task.y)
    if task.workload.model == "lenet5":
        x = x.view(-1, 1, 28, 28).contiguous(memory_format=torch.channels_last)
    return x, y


@torch.no_grad()
def set_weights(model: nn.Module, weights: list[NDArray[np.float32]]) -> None:
    """Copy the weights into the model."""
    for parameter, values in zip(model.parameters(), weights, strict=True):
        parameter.copy_(torch.from_numpy(values))


def train(model: nn.Module, x: Tensor, y: Tensor, *, steps: int, batch: int, rate: float) -> None:
    """A local run on one client's samples, as lean as PyTorch allows: no loader, no optimiser."""
    parameters: list[Tensor] = list(model.parameters())
    for _ in range(steps):
        rows = torch.randperm(len(y))[:batch]
        loss = cross_entropy(model(x[rows]), y[rows])
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-rate)


def train_as_written(
    model: nn.Module, x: Tensor, y: Tensor, *, steps: int, batch: int, rate: float
) -> None:
    """The same as an app has it: an optimiser, and a backward pass into the parameters."""
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(steps):
        rows = torch.randperm(len(y))[:batch]
        optimiser.zero_grad()
        loss: Any = cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimiser.step()


@torch.inference_mode()
def mean_loss(model: nn.Module, x: Tensor, y: Tensor, block: int) -> float:
    """Mean cross-entropy, a block of samples at a time."""
    total = 0.0
    for first in range(0, len(y), block):
        part = slice(first, first + block)
        total += cross_entropy(model(x[part]), y[part], reduction="sum").item()
    return total / len(y)
