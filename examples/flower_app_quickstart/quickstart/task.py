"""The task: a network with one hidden layer, on digits; how it is trained and tested."""

from __future__ import annotations

import time
from collections.abc import Iterable

import torch
from flwr.app import Context
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fedplan.tasks import mnist_mini

DIGITS = mnist_mini()  # comes with fedplan: no download
torch.set_num_threads(1)


class Net(nn.Sequential):
    """The network."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


def load_data(context: Context) -> DataLoader:
    """The batches of this node; `seconds-per-batch` in its config makes it a slow device."""
    node = context.node_config
    mine = slice(int(node["partition-id"]), None, int(node["num-partitions"]))
    data = TensorDataset(torch.tensor(DIGITS.x[mine]), torch.tensor(DIGITS.y[mine]))

    def slowly(samples: list) -> list:
        time.sleep(float(node.get("seconds-per-batch", 0.0)))
        return torch.utils.data.default_collate(samples)

    return DataLoader(data, batch_size=32, shuffle=True, collate_fn=slowly)


def train(net: Net, trainloader: Iterable, epochs: int, lr: float) -> float:
    """Train on the batches; the mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    running_loss = 0.0
    for _ in range(epochs):
        for images, labels in trainloader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
    return running_loss / (epochs * len(trainloader))


@torch.inference_mode()
def test(net: Net) -> tuple[float, float]:
    """Loss and accuracy on the test images."""
    labels = torch.tensor(DIGITS.test_y)
    scores = net(torch.tensor(DIGITS.test_x))
    right = (scores.argmax(dim=1) == labels).float().mean()
    return nn.functional.cross_entropy(scores, labels).item(), right.item()
