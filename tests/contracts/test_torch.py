"""The simulator keeps the runners' contract with a torch module, even one that draws at random."""

from __future__ import annotations

import pytest
from contracts.runner import Runner, RunnerContract
from models.torch_cases import noisy_simulator


@pytest.fixture(scope="module")
def runner() -> Runner:
    return noisy_simulator()


class TestTorch(RunnerContract):
    pass
