"""The check half of the suite: tasks of other kinds and origins than the development half.

Targets, but for LeNet-5's, are losses of all clients after a number of rounds that was set
beforehand (seed 0, three digits), at the E of 5, 10, 20 and 40 with which they take the least time
where communication takes as long as 20 steps. Grids were widened until the best E lay inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fedplan.models import Learner, LeNet5, Logistic
from fedplan.simulation import LearningRate
from fedplan.tasks import dirichlet, iid, power_law_sizes, synthetic, two_labels_shards
from suite import data
from suite.task import Task

if TYPE_CHECKING:
    from torch import nn


def check() -> list[Task]:
    """Tasks that methods are judged on, and that none is tuned on."""
    return [*_digits(), *_synthetic(), *_networks()]


def _digits() -> list[Task]:
    return [
        Task(
            name="short", half="check", rate=LearningRate(initial=0.1),
            make=lambda _: Logistic(data.mini(lambda y: dirichlet(y, 40, 1.0, seed=5))),
            target=0.387, reason="all clients' loss after 15 rounds at E = 40",
            clients=(1, 2, 4, 8, 15, 25, 40), steps=(10, 16, 25, 40, 65, 100, 160), seeds=12,
            max_rounds=600,
        ),
        Task(
            name="iid-cosine", half="check",
            rate=LearningRate(initial=0.1, schedule="cosine", decay_rounds=150),
            make=lambda _: Logistic(data.mini(lambda y: iid(len(y), 100, seed=0))),
            target=0.291, reason="all clients' loss after 60 rounds at E = 40",
            clients=(1, 3, 5, 10, 20, 50, 100), steps=(16, 25, 40, 65, 100, 160), seeds=4,
            max_rounds=600,
        ),
        Task(
            name="two-labels", half="check", rate=LearningRate(initial=0.02),
            make=lambda _: Logistic(data.mini(lambda y: two_labels_shards(y, 20, 4, seed=0))),
            target=0.461, reason="all clients' loss after 100 rounds at E = 20",
            clients=(1, 2, 4, 7, 10, 15, 20), steps=(6, 10, 16, 25, 40, 65, 100, 160), seeds=4,
            max_rounds=1000,
        ),
    ]  # fmt: skip


def _synthetic() -> list[Task]:
    sizes = power_law_sizes(500, 30_000, min_size=10, seed=3)
    return [
        Task(
            name="synthetic-exponential", half="check",
            rate=LearningRate(initial=0.05, schedule="exponential", decay=0.99),
            make=lambda _: Logistic(synthetic(0, 0, num_clients=60, seed=7)),
            target=0.676, reason="all clients' loss after 60 rounds at E = 10",
            clients=(1, 2, 4, 8, 15, 30, 60), steps=(2, 3, 5, 8, 13, 20, 32), seeds=4,
            max_rounds=600,
        ),
        Task(
            name="power-law-step", half="check",
            rate=LearningRate(initial=0.05, schedule="step", decay=0.5, decay_every=30),
            make=lambda _: Logistic(synthetic(0.5, 0.5, num_clients=500, seed=3, sizes=sizes)),
            target=1.86, reason="all clients' loss after 80 rounds at E = 10",
            clients=(1, 5, 10, 20, 50, 125, 250, 500), steps=(4, 6, 10, 16, 25, 40), seeds=4,
            max_rounds=600,
        ),
        Task(
            name="long", half="check", rate=LearningRate(initial=0.005),
            make=lambda _: Logistic(synthetic(1, 1, num_clients=50, seed=5)),
            target=0.325, reason="all clients' loss after 450 rounds at E = 20",
            clients=(1, 2, 5, 10, 20, 35, 50), steps=(6, 10, 16, 25, 40, 65), seeds=4,
            max_rounds=4000,
        ),
    ]  # fmt: skip


def _networks() -> list[Task]:
    return [
        Task(
            name="torch-mlp", half="check", rate=LearningRate(initial=0.05), make=_torch_mlp,
            target=0.605, reason="all clients' loss after 60 rounds at E = 20",
            clients=(1, 2, 4, 8, 15, 25, 36), steps=(3, 5, 8, 13, 20, 32), seeds=4,
            heavy_seeds=4, max_rounds=800,
        ),
        Task(
            name="lenet5", half="check", rate=LearningRate(initial=0.1),
            make=lambda _: LeNet5(data.skewed(30)),
            target=0.2, reason="the lower loss of Table I for LeNet-5, in the paper",
            clients=(1, 3, 6, 10, 18, 30), steps=(4, 8, 16, 32, 64), seeds=4, heavy_seeds=4,
            max_rounds=600,
        ),
    ]  # fmt: skip


def _torch_mlp(folder: Path) -> Learner:
    """One hidden layer on the activities of 36 people; needs the extra `torch`."""
    from fedplan.models.torch_learner import TorchLearner

    def build() -> nn.Module:
        from torch import nn

        return nn.Sequential(nn.Linear(42, 32), nn.ReLU(), nn.Linear(32, 6))

    return TorchLearner.from_data(build, data.wisdm(folder))
