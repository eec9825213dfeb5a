"""What runs of a task cost on a fleet, and the uniform setting that costs least."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean

from fedplan import Fleet, Problem, uniform
from fedplan.core.fleet import FloatArray
from fedplan.core.setting import Setting
from suite.fleets import make_fleet, make_problem
from suite.trainings import NEVER, Trainings


class Pricing:
    """What runs of one task cost on one fleet."""

    def __init__(self, trainings: Trainings, fleet_name: str, data: Path) -> None:
        self.trainings, self.fleet_name = trainings, fleet_name
        bare = make_fleet(fleet_name, trainings.samples.size, data)
        self.fleet: Fleet = bare.with_samples(trainings.samples)
        self._bill = cache(self._bill_of)

    def problem(self, weight: float) -> Problem:
        """The question of one energy weight."""
        task, bare = self.trainings.task, make_problem(self.fleet_name, self.fleet, weight)
        return replace(bare, target_loss=task.target, learning_rate=task.rate)

    def mean_cost(
        self, problem: Problem, setting: Setting, seeds: list[int], statistic: str
    ) -> float:
        """Mean cost of the runs until they arrive; infinite where one does not."""
        runs = self.trainings.make([(setting, seed) for seed in seeds])
        rounds = [getattr(run, statistic) for run in runs]
        if NEVER in rounds:
            return math.inf
        return fmean(
            float(problem.objective.of_round(*self._bill(setting, seed, number)))
            for seed, number in zip(seeds, rounds, strict=True)
        )

    def _bill_of(self, setting: Setting, seed: int, rounds: int) -> FloatArray:
        return self.trainings.price(setting, seed, rounds, self.fleet)


def train_uniform(trainings: Trainings) -> None:
    """Every setting of the grid with every seed, all clients first."""
    task = trainings.task
    for clients in reversed(task.clients):
        seeds = task.seeds_of(clients)
        trainings.make([(task.uniform(clients, steps), s) for steps in task.steps for s in seeds])


def best_uniform(pricing: Pricing, problem: Problem, statistic: str) -> tuple[Setting, float]:
    """The best (K, E) of those with which every run arrives, and its cost on other seeds."""
    task, best = pricing.trainings.task, (math.inf, uniform(1, 1), math.inf)
    for clients in task.clients:
        seeds = task.seeds_of(clients)
        for steps in task.steps:
            setting = task.uniform(clients, steps)
            chosen, priced = (
                pricing.mean_cost(problem, setting, list(half), statistic)
                for half in (seeds[::2], seeds[1::2])
            )
            if chosen < best[0] and math.isfinite(priced):
                best = chosen, setting, priced
    return best[1], best[2]
