"""By how much each constant of turns matters: costs with half and with twice of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

from suite.pricing import Pricing
from suite.trainings import Trainings

from fedplan import Problem
from fedplan.participation import Turns, grouping
from fedplan.planning import predict
from participation.cells import best_turns, turns_at, turns_seeds

PLACES = {
    "RAREST": grouping,
    "LEAST_DATA": grouping,
    "LONGEST_CYCLE": grouping,
    "TURNS_COST": predict,
}
FACTORS = (0.5, 2.0)
FLEETS, WEIGHTS = ("lognormal", "tenth slow", "hospitals"), (0.0, 0.9)
WINDOW = "models averaged, in groups"


def matters(trainings: Trainings, data: Path) -> Iterator[dict[str, object]]:
    """For each constant, halved and doubled: costs, over those with the constants as they are.

    Local steps stay as they were chosen.
    """
    cells = []
    for pricing in (Pricing(trainings, fleet, data) for fleet in FLEETS):
        for weight in WEIGHTS:
            problem = pricing.problem(weight)
            setting, cost = best_turns(pricing, problem, "rounds")
            cells.append((pricing, problem, setting.local_steps, cost))
    for name in (*PLACES, WINDOW):
        for factor in FACTORS:
            with _changed(name, factor) as value:
                ratios = [_cost(*cell[:-1]) / cell[-1] for cell in cells]
            yield {
                "task": trainings.task.name,
                "constant": name,
                "value": f"{value:.3g}",
                "mean": f"{fmean(ratios):.3f}",
                "least": f"{min(ratios):.3f}",
                "most": f"{max(ratios):.3f}",
            }


def _cost(pricing: Pricing, problem: Problem, steps: int) -> float:
    """What turns cost at a number of local steps; infinite where they do not arrive."""
    seeds = turns_seeds(pricing.trainings.task)[1]
    return pricing.mean_cost(problem, turns_at(pricing, problem, steps), seeds, "rounds")


@contextmanager
def _changed(name: str, factor: float) -> Iterator[float]:
    if name == WINDOW:
        window = property(lambda law: max(1, round(len(law.groups) * factor)))
        with patch.object(Turns, "averaged", window):
            yield factor
    else:
        value = getattr(PLACES[name], name) * factor
        with patch.object(PLACES[name], name, value):
            yield value
