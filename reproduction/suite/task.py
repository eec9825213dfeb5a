"""A task of the suite: what is trained, until when, and which uniform settings are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from fedplan import uniform
from fedplan.core.setting import Setting
from fedplan.models import Learner
from fedplan.participation import Uniform
from fedplan.simulation import LearningRate

FLEETS = ("normal", "lognormal", "tenth slow", "hospitals")
WEIGHTS = (0.0, 0.5, 0.9, 1.0)


@dataclass(frozen=True, kw_only=True)
class Averaged(Uniform):
    """K at random, judged by the average of the last ten models."""

    averaged: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Data, model and rate; the loss to reach, and the grid of settings that is tried.

    half : the half of the suite that the task belongs to. Methods are made on the development half
        and judged on the check half; None is a variant that belongs to neither.
    reason : why the target is what it is.
    heavy_seeds : seeds with more than half of the clients, which leave little to chance where runs
        begin with the same weights.
    runs : the task whose file has the trainings; its own unless given.
    grid : a setup whose committed runs of `fedplan sweep` are used.
    subset : samples that a loss far from the target is measured on; None for all.
    """

    name: str
    make: Callable[[Path], Learner]
    rate: LearningRate
    target: float
    clients: tuple[int, ...]
    steps: tuple[int, ...]
    seeds: int
    max_rounds: int
    half: Literal["development", "check"] | None = None
    reason: str = ""
    heavy_seeds: int = 2
    fleets: tuple[str, ...] = FLEETS
    weights: tuple[float, ...] = WEIGHTS
    dropout: float = 0.0
    runs: str = ""
    grid: str = ""
    subset: int | None = None
    averaging: bool = False  # K at random is judged by the average of its last models too

    def uniform(self, clients: int, steps: int) -> Setting:
        """K at random, as it is judged here; all clients by their last model."""
        if not self.averaging or clients == self.clients[-1]:
            return uniform(clients, steps)
        return Setting(participation=Averaged(clients_per_round=clients), local_steps=steps)

    def seeds_of(self, clients: int) -> range:
        """The seeds that a number of clients per round is tried with."""
        return range(self.heavy_seeds if clients > self.clients[-1] / 2 else self.seeds)

    def quick(self) -> Task:
        """A part of the task: minutes become seconds."""
        clients = (self.clients[0], self.clients[len(self.clients) // 2], self.clients[-1])
        return replace(
            self, clients=clients, steps=self.steps[1:-1:2], seeds=2, heavy_seeds=2,
            fleets=self.fleets[:2], weights=self.weights[:1],
        )  # fmt: skip
