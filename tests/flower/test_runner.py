"""The runner keeps the contract, and has the simulator's losses."""

from __future__ import annotations

import numpy as np
import pytest
from contracts.runner import RunnerContract
from flower.conftest import CLIENTS

from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.errors import InputError
from fedplan.participation import Shuffled, uniform


class TestContract(RunnerContract):
    @pytest.fixture
    def runner(self, federation):
        return federation.runner()


class TestContractWithFederatedEvaluation(RunnerContract):
    @pytest.fixture
    def runner(self, federation):
        return federation.runner(evaluate=None)


@pytest.mark.parametrize(("clients", "steps", "seed"), [(1, 3, 0), (5, 10, 1), (CLIENTS, 4, 2)])
def test_losses_and_cohorts_are_the_simulators(federation, simulator, clients, steps, seed):
    stop = Stop(max_rounds=10)
    live = federation.runner().run(uniform(clients, steps), stop, seed=seed)
    simulated = simulator.run(uniform(clients, steps), stop, seed=seed)
    assert [r.cohort for r in live.rounds] == [r.cohort for r in simulated.rounds]
    np.testing.assert_allclose(live.losses, simulated.losses, rtol=1e-5)


def test_clients_evaluate_to_the_same_loss(federation, simulator):
    stop = Stop(max_rounds=3)
    live = federation.runner(evaluate=None).run(uniform(4, 5), stop, seed=3)
    np.testing.assert_allclose(
        live.losses, simulator.run(uniform(4, 5), stop, seed=3).losses, rtol=1e-5
    )


def test_another_law_is_refused_with_what_to_do(federation):
    shuffled = Setting(
        participation=Shuffled(clients_per_round=2, num_clients=CLIENTS), local_steps=1
    )
    with pytest.raises(InputError, match=r"participation=shuffled\. Set participation=uniform"):
        federation.runner().run(shuffled, Stop(max_rounds=1))
