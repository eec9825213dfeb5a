"""The paper's three setups with their own targets: draws of the data, fleets and energy weights."""

from __future__ import annotations

from dataclasses import replace

from fedplan.simulation import LearningRate
from suite import data
from suite.development import SETUP1, SETUP3
from suite.task import Task

DRAWS = (1, 2, 3, 4)  # of Setup 3's data, beside the study's own
TENTHS = tuple(number / 10 for number in range(11))


def setups() -> list[Task]:
    """Five draws of Setup 3's data, Setup 1 on three fleets, and Setup 2 on the paper's."""
    own = replace(SETUP3, half=None, weights=TENTHS)
    draws = [
        replace(
            own, name=f"setup3-draw-{draw}", make=data.of_study("setup3", f"data-seed={draw}"),
            steps=(10, *own.steps),
        )
        for draw in DRAWS
    ]  # fmt: skip
    return [
        replace(own, name="setup3-draw-2130", runs="setup3"),
        *draws,
        replace(
            SETUP1, name="setup1-paper", half=None, target=0.365, grid="setup1",
            steps=(40, 60, 80, 100, 120, 150, 200, 300), seeds=20, heavy_seeds=20,
            fleets=("Raspberry Pis", "Pis, normal", "Pis, lognormal"), weights=(0.0,),
        ),
        Task(
            name="setup2-paper", make=data.setup2, grid="setup2", target=0.06,
            rate=LearningRate(initial=0.1, schedule="exponential", decay=0.996),
            clients=(5, 10, 20, 40), steps=(15, 22, 33, 50), seeds=2, max_rounds=400,
            fleets=("normal",), weights=(0.0,), subset=6000,
        ),
    ]  # fmt: skip
