"""What came of the grids: rounds of all clients, and the best uniform settings."""

from __future__ import annotations

import math
from pathlib import Path

from suite.pricing import Pricing, best_uniform
from suite.trainings import Trainings


def print_best(trainings: Trainings, data: Path) -> None:
    """One row for each fleet and energy weight: the best uniform (K, E), and what it costs."""
    task = trainings.task
    rounds = {steps: trainings.full_rounds(steps) for steps in task.steps}
    shown = " ".join(f"{steps}:{count:g}" for steps, count in rounds.items())
    print(f"\n{task.name}: target {task.target:g}, {task.reason}")
    print(f"rounds with all {task.clients[-1]} clients, by local steps: {shown}")
    print(f"settings with which some runs never arrive: {_never(trainings)}\n")
    print("| fleet | " + " | ".join(f"weight {weight:g}" for weight in task.weights) + " |")
    print("|---" * (1 + len(task.weights)) + "|")
    for fleet in task.fleets:
        pricing = Pricing(trainings, fleet, data)
        cells = []
        for weight in task.weights:
            setting, cost = best_uniform(pricing, pricing.problem(weight), "rounds")
            clients, steps = setting.pair
            cells.append(f"{clients}, {steps}: {cost:.4g}" if math.isfinite(cost) else "none")
        print(f"| {fleet} | {' | '.join(cells)} |")


def _never(trainings: Trainings) -> str:
    task = trainings.task
    settings = [(clients, steps) for clients in task.clients for steps in task.steps]
    failing = [
        (clients, steps)
        for clients, steps in settings
        if not all(
            run.rounds
            for run in trainings.make(
                [(task.uniform(clients, steps), seed) for seed in task.seeds_of(clients)]
            )
        )
    ]
    return f"{len(failing)} of {len(settings)}"
