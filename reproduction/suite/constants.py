"""By how much each constant of the online course matters: the bill with half and twice of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import ModuleType
from unittest.mock import patch

from fedplan.convergence import saturation
from fedplan.core.records import Stop
from fedplan.course import Online, elasticity, online, steering
from fedplan.participation import grouping
from fedplan.planning import predict, turns
from fedplan.simulation import Simulator
from suite.courses import FIRST_SEED, longest
from suite.pricing import Pricing, best_uniform
from suite.rows import append_row, read_rows, table

FACTORS = (0.5, 2.0)
FLEETS = ("normal", "lognormal")
WEIGHTS = (0.0, 1.0)  # time alone and energy alone: between them both count
NEVER = 10.0  # the ratio that a run counts which does not arrive
AS_THEY_ARE = "as they are"
COLUMNS = ("constant", "value", "mean_ratio")


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, where it came from, and the modules that use it, its own first."""

    name: str
    origin: str
    modules: tuple[ModuleType, ...]

    @property
    def where(self) -> str:
        """Folder and file."""
        return "/".join(self.modules[0].__name__.split(".")[-2:])

    @property
    def values(self) -> tuple[str, ...]:
        """Half and twice of it, as written to a file; of a range, the middle in ratio."""
        now = getattr(self.modules[0], self.name)
        if isinstance(now, tuple):
            now = math.sqrt(now[0] * now[1])
        return tuple(f"{factor * now:.4g}" for factor in FACTORS)

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        """Multiplied, for a while; whole numbers stay whole."""
        now = getattr(self.modules[0], self.name)
        if isinstance(now, tuple):
            changed: object = tuple(factor * end for end in now)
        else:
            changed = round(factor * now) if isinstance(now, int) else factor * now
        with ExitStack() as stack:
            for module in self.modules:
                stack.enter_context(patch.object(module, self.name, changed))
            if self.name == "SAMPLING":  # a default that the class has kept
                kept = saturation.Saturation.__init__.__kwdefaults__
                stack.enter_context(patch.dict(kept, sampling=changed))
            yield


CONSTANTS = (
    Constant("OFTEN", "chosen: four looks in a cycle", (steering,)),
    Constant("HEAVIEST", "chosen: 3 and 8 were worse on two tasks", (steering, online)),
    Constant("MOVE", "chosen; 1 keeps the first local steps", (steering,)),
    Constant("DOUBT", "chosen: twice the usual range", (elasticity,)),
    Constant("FEW", "chosen: of two equally good, the one better on other tasks", (steering,)),
    Constant("FIRST_LOOK", "chosen: fewer rounds show little", (steering,)),
    Constant("ROUNDS", "the rounds of a usual training", (saturation, steering, online)),
    Constant("RANGE", "measured: the saturations of most tasks", (saturation, online, elasticity)),
    Constant("SAMPLING", "measured: upper quartile of the grids", (saturation, turns)),
    Constant("TURNS_COST", "measured: the middle of the cells of turns", (predict,)),
    Constant("RAREST", "chosen; halved and doubled for turns, too", (grouping,)),
    Constant("LEAST_DATA", "chosen", (grouping,)),
    Constant("LONGEST_CYCLE", "chosen", (grouping,)),
)


def measure(pricings: Sequence[Pricing], path: Path) -> None:
    """Write the mean bill with each constant halved and doubled; rows that are there stay."""
    done = {(row["constant"], row["value"]) for row in read_rows(path)}
    if (AS_THEY_ARE, "") not in done:
        _append(path, (AS_THEY_ARE, "", f"{mean_ratio(pricings):.3f}"))
    for constant in CONSTANTS:
        for factor, value in zip(FACTORS, constant.values, strict=True):
            if (constant.name, value) not in done:
                with constant.times(factor):
                    mean = mean_ratio(pricings)
                _append(path, (constant.name, value, f"{mean:.3f}"))


def constants_table(path: Path) -> str:
    """Where each constant is from, and the mean with half and with twice of it, in Markdown."""
    found = {(row["constant"], row["value"]): row["mean_ratio"] for row in read_rows(path)}
    rows = [
        [one.name, f"`{one.where}`", one.origin,
         *(found.get((one.name, value), "") for value in one.values)]
        for one in CONSTANTS
    ]  # fmt: skip
    head = ("constant", "where", "origin", "halved", "doubled")
    return f"With all as they are: {found[AS_THEY_ARE, '']}.\n\n" + table(head, rows)


def mean_ratio(pricings: Sequence[Pricing]) -> float:
    """Mean bill of the online course over the best uniform pair's."""
    ratios = []
    for pricing in pricings:
        trainings, task = pricing.trainings, pricing.trainings.task
        stop = Stop(max_rounds=longest(trainings), target_loss=task.target)
        simulator = Simulator(trainings.learner, task.rate, pricing.fleet, trainings.evaluation)
        for weight in WEIGHTS:
            problem = pricing.problem(weight)
            run = simulator.run(Online(problem=problem), stop, seed=FIRST_SEED)
            cost = float(problem.objective.of_round(run.time_s, run.energy_j, run.taken_part))
            best = best_uniform(pricing, problem, "rounds")[1]
            ratios.append(cost / best if run.status == "target" else NEVER)
        print(".", end="", file=sys.stderr, flush=True)
    return fmean(ratios)


def _append(path: Path, row: Sequence[str]) -> None:
    append_row(path, COLUMNS, row)
    print(*row)
