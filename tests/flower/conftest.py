from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from flower.federation import InProcessGrid, TimedLearner, VirtualClock, make_nodes

from fedplan.flower.app import client_app, pack, unpack
from fedplan.flower.rules import RoundRules
from fedplan.flower.runner import FlowerRunner
from fedplan.models import Logistic
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic

RATE = LearningRate(initial=0.05, schedule="exponential", decay=0.99)
CLIENTS = 20


@dataclass
class Federation:
    """A grid and everything around it."""

    learner: TimedLearner
    clock: VirtualClock
    grid: InProcessGrid

    @property
    def initial(self):
        return pack(self.learner.initial(0))

    def evaluate(self, _round, arrays):
        return self.learner.evaluate(unpack(arrays), self.learner.all_samples)

    def runner(self, **options):
        options.setdefault("rules", RoundRules(deadline_s=60.0, wait_s=10.0))
        options.setdefault("evaluate", self.evaluate)
        return FlowerRunner(
            self.grid, self.initial, learning_rate=RATE, clock=self.clock, **options
        )

    def node_of(self, partition):
        return next(
            node for node in self.grid.nodes.values() if node.config["partition-id"] == partition
        )


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
    clock = VirtualClock()
    steps = np.linspace(0.0625, 0.25, CLIENTS)
    learner = TimedLearner(logistic, clock, steps)
    app = client_app(lambda _context: learner, meter=learner, clock=clock.client_now)
    return Federation(
        learner, clock, InProcessGrid(app, make_nodes(CLIENTS, first_id=first_id), clock)
    )
