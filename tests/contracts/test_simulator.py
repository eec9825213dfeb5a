"""The simulator keeps the runners' contract."""

from __future__ import annotations

import pytest
from contracts.runner import Runner, RunnerContract

from fedplan.models import Logistic
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Simulator(Logistic(synthetic(1, 1, num_clients=8)), LearningRate(initial=0.05))


class TestSimulator(RunnerContract):
    pass
