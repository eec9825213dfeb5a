from __future__ import annotations

import numpy as np
import pytest
from flower.federation import federation_of

from fedplan.models import Logistic
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic

RATE = LearningRate(initial=0.05, schedule="exponential", decay=0.99)
CLIENTS = 20


@pytest.fixture(scope="session")
def logistic():
    return Logistic(synthetic(1, 1, num_clients=CLIENTS))


@pytest.fixture(scope="session")
def simulator(logistic):
    return Simulator(logistic, RATE)


@pytest.fixture
def federation(logistic):
    return make_federation(logistic)


def make_federation(logistic, first_id=1000):
    steps = np.linspace(0.0625, 0.25, CLIENTS)
    return federation_of(logistic, steps, [0.5] * CLIENTS, RATE, first_id)
