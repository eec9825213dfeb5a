"""The weights half-way through a round, of every learner."""

from __future__ import annotations

import numpy as np
import pytest

from fedplan.models import LeNet5, Logistic
from fedplan.tasks import dirichlet, federate, mnist_mini
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS


def digits():
    mini = mnist_mini()
    x, y = mini.x[:200], mini.y[:200]
    parts = dirichlet(y, 4, 0.5, seed=1)
    return federate(x, y, parts, num_classes=NUM_DIGITS, image_shape=IMAGE_SHAPE, name="digits")


def torch_learner(data):
    torch = pytest.importorskip("torch")
    from fedplan.models.torch_learner import TorchLearner

    def build():
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(784, 10), torch.nn.Dropout(0.2)
        )

    return TorchLearner.from_data(build, data)


@pytest.mark.parametrize("make", [Logistic, LeNet5, torch_learner])
@pytest.mark.parametrize("steps", [1, 4, 7])
def test_halfway_is_where_half_the_steps_lead_and_changes_nothing(make, steps):
    learner = make(digits())
    cohort, shares = np.array([0, 2]), np.array([0.9, 0.6])
    start = learner.initial(seed=3)
    plain, watched, half = start.copy(), start.copy(), start.copy()
    halfway = np.empty_like(start)
    learner.train_round(plain, cohort, shares, steps, 0.1, 5, 2)
    learner.train_round(watched, cohort, shares, steps, 0.1, 5, 2, halfway)
    assert np.array_equal(plain, watched)
    if steps > 1:
        learner.train_round(half, cohort, shares, steps // 2, 0.1, 5, 2)
    assert halfway == pytest.approx(half, abs=1e-6)
