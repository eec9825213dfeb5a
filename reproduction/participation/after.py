"""After the target was first reached: whether the judged model stays there, on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from suite.pricing import Pricing
from suite.rows import read_rows
from suite.trainings import LONGEST, Trainings

from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from participation.cells import turns_at

AFTER = 40  # rounds that are looked at, and that a model has to stay at the target to have settled
SEED = 1


def after(trainings: Trainings, data: Path, results: Path) -> Iterator[dict[str, object]]:
    """For the settings of every cell: losses after the first crossing, and when they settle."""
    task = trainings.task
    for row in read_rows(results / "participation-cells.csv"):
        if row["task"] != task.name:
            continue
        pricing, weight = Pricing(trainings, row["fleet"], data), float(row["weight"])
        problem = pricing.problem(weight)
        sides = {
            "turns": turns_at(pricing, problem, int(row["turns_steps"])),
            "uniform": task.uniform(int(row["uniform_clients"]), int(row["uniform_steps"])),
        }
        found: dict[str, object] = {"task": task.name, "fleet": row["fleet"], "weight": weight}
        costs = {}
        for name, setting in sides.items():
            first, above, mean, settled = _look(trainings, setting)
            found |= {f"{name}_first": first, f"{name}_above": f"{above:.2f}",
                      f"{name}_loss": f"{mean:.3f}", f"{name}_settled": settled}  # fmt: skip
            if settled:
                bill = trainings.price(setting, SEED, settled, pricing.fleet)
                costs[name] = float(problem.objective.of_round(*bill))
        both = len(costs) == len(sides)
        found["settled_ratio"] = f"{costs['turns'] / costs['uniform']:.3f}" if both else ""
        yield found


def _look(trainings: Trainings, setting: Setting) -> tuple[int, float, float, int]:
    """First round at the target; share above it and loss over it after; round it settles at."""
    target, full = trainings.task.target, trainings.full_rounds(setting.local_steps)
    run = trainings.simulator.run(setting, Stop(max_rounds=int(LONGEST * full) + AFTER), seed=SEED)
    losses = [loss for loss in run.losses if loss is not None]
    first = run.rounds_to(target) or 0
    next_ = losses[first + 1 : first + 1 + AFTER]
    good = [loss <= target for loss in losses]
    settled = next((r for r in range(1, len(good) - AFTER) if all(good[r : r + AFTER + 1])), 0)
    return first, fmean(loss > target for loss in next_), fmean(next_) / target, settled
