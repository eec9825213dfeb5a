"""By how much each constant of the online course matters: the bill with half and twice of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import fmean
from types import ModuleType
from unittest.mock import patch

from fedplan.convergence import saturation
from fedplan.core.records import Stop
from fedplan.course import Online, online, steering
from fedplan.participation import grouping
from fedplan.planning import rounds
from fedplan.simulation import Evaluation, Simulator
from suite.courses import FIRST_SEED, longest
from suite.pricing import Pricing, best_uniform

FACTORS = (0.5, 2.0)
# Where each constant is used: its own module, and those that import it by name.
PLACES: dict[str, tuple[ModuleType, ...]] = {
    "PATIENCE": (steering,),
    "HEAVIEST": (steering, online),
    "OFTEN": (steering,),
    "MOVE": (steering,),
    "DOUBT": (steering,),
    "FEW": (steering,),
    "FIRST_LOOK": (steering,),
    "ROUNDS": (saturation, steering, online),
    "TURNS_COST": (rounds,),
    "RAREST": (grouping,),
    "LEAST_DATA": (grouping,),
    "LONGEST_CYCLE": (grouping,),
}
SATURATION = "middle of RANGE"


def matters(pricings: list[Pricing]) -> Iterator[tuple[str, str, str]]:
    """Name, value, and the mean ratio over these cells; first with every constant as it is."""
    yield "as they are", "", f"{mean_ratio(pricings):.3f}"
    for name, modules in PLACES.items():
        for factor in FACTORS:
            value = getattr(modules[0], name) * factor
            with _changed(name, modules, value):
                yield name, f"{value:g}", f"{mean_ratio(pricings):.3f}"
    for factor in FACTORS:
        low, high = (factor * end for end in saturation.RANGE)
        with patch.object(online, "RANGE", (low, high)):
            yield SATURATION, f"{math.sqrt(low * high):.0f}", f"{mean_ratio(pricings):.3f}"


def mean_ratio(pricings: list[Pricing]) -> float:
    """Mean bill of the online course over the best uniform pair's; a run that fails counts 10."""
    ratios = []
    for pricing in pricings:
        task = pricing.trainings.task
        stop = Stop(max_rounds=longest(pricing.trainings), target_loss=task.target)
        simulator = Simulator(
            pricing.trainings.learner, task.rate, pricing.fleet, Evaluation(both=True)
        )
        for weight in task.weights:
            problem = pricing.problem(weight)
            course = Online(problem=problem)
            run = simulator.run(course, stop, seed=FIRST_SEED)
            cost = float(problem.objective.of_round(run.time_s, run.energy_j, run.taken_part))
            best = best_uniform(pricing, problem, "rounds")[1]
            ratios.append(cost / best if run.status == "target" else 10.0)
        print(".", end="", file=sys.stderr, flush=True)
    return fmean(ratios)


@contextmanager
def _changed(name: str, modules: tuple[ModuleType, ...], value: float) -> Iterator[None]:
    whole = isinstance(getattr(modules[0], name), int)
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(patch.object(module, name, round(value) if whole else value))
        yield
