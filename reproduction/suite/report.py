"""What came of the grids, in two tables: rounds of all clients, and the best uniform settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from suite.pricing import Pricing, best_uniform
from suite.rows import table
from suite.task import WEIGHTS
from suite.trainings import Trainings


def print_best(suite: Sequence[Trainings], data: Path) -> None:
    """One row for each task; then one for each task and fleet, with the best (K, E) and its cost.

    A cell without a setting is of a weight that is not priced, or of a grid in which none arrives.
    """
    head = ("task", "half", "clients", "rate", "target", "that is", "rounds of all clients by E",
            "some runs never arrive")  # fmt: skip
    print(table(head, [_task_row(trainings) for trainings in suite]))
    fleets = [(one, fleet) for one in suite for fleet in one.task.fleets]
    weights = ("task", "fleet", *(f"weight {weight:g}" for weight in WEIGHTS))
    print("\n" + table(weights, [_fleet_row(one, fleet, data) for one, fleet in fleets]))


def _task_row(trainings: Trainings) -> list[str]:
    task = trainings.task
    rounds = {steps: trainings.full_rounds(steps) for steps in task.steps}
    settings = [(clients, steps) for clients in task.clients for steps in task.steps]
    failing = sum(_fails(trainings, *setting) for setting in settings)
    return [
        task.name, task.half or "", str(task.clients[-1]),
        f"{task.rate.initial:g}, {task.rate.schedule}", f"{task.target:g}", task.reason,
        " ".join(f"{steps}:{count:g}" for steps, count in rounds.items()),
        f"{failing} of {len(settings)}",
    ]  # fmt: skip


def _fails(trainings: Trainings, clients: int, steps: int) -> bool:
    task = trainings.task
    work = [(task.uniform(clients, steps), seed) for seed in task.seeds_of(clients)]
    return not all(run.rounds for run in trainings.make(work))


def _fleet_row(trainings: Trainings, fleet: str, data: Path) -> list[str]:
    pricing, cells = Pricing(trainings, fleet, data), []
    for weight in WEIGHTS:
        cells.append("")
        if weight in trainings.task.weights:
            setting, cost = best_uniform(pricing, pricing.problem(weight), "rounds")
            clients, steps = setting.pair
            cells[-1] = f"{clients}, {steps}: {cost:.4g}" if math.isfinite(cost) else ""
    return [trainings.task.name, fleet, *cells]
