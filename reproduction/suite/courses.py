"""Courses on every cell of a task, each run one row of a file; runs that are there stay."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock

from fedplan import Problem
from fedplan.core.course import Course
from fedplan.core.records import RunRecord, Stop
from fedplan.course import COURSES
from fedplan.models.logistic import BATCH
from fedplan.simulation import Clock, Simulator
from suite.paper import PAIRS, PaperProcedure
from suite.pricing import Pricing, best_uniform
from suite.rows import append_row, read_rows
from suite.trainings import LONGEST, Trainings

FIRST_SEED = 101  # none that a grid has
FEWEST_ROUNDS = 600  # that every run may take
COLUMNS = (
    "task", "half", "fleet", "weight", "course", "seed", "status", "rounds", "cost", "ratio",
    "foretold_after", "low", "high",
)  # fmt: skip
ONLINE, PAPER = "online", "paper"
EPOCH, TEN = "K=10%, one epoch", "K=10, E=20"
# What of a cell a course looks at, where that is not both fleet and weight: cells that are alike in
# it have the same training, which is made once and priced for each.
LOOKS_AT: dict[str, tuple[str, ...]] = {EPOCH: (), TEN: (), "adacomm": (), "oort": ("fleet",)}
CANDIDATES = (ONLINE, PAPER, *(n for n in COURSES if n not in ("fixed", ONLINE)), EPOCH, TEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run to make: a fleet and a weight, a course and its seed."""

    fleet: str
    weight: float
    course: str
    seed: int


def make_course(name: str, problem: Problem) -> Course:
    """A course by its name, or one of two guesses that people make."""
    clients = len(problem.fleet)
    if name == EPOCH:
        passes = math.ceil(float(problem.fleet.samples.mean()) / BATCH)
        return COURSES["fixed"](problem=problem, local_steps=passes)
    if name == TEN:
        return COURSES["fixed"](problem=problem, clients_per_round=min(10, clients))
    return COURSES[name](problem=problem)


def longest(trainings: Trainings) -> int:
    """Rounds that a run may take: four times those of all clients at the E that takes most."""
    task = trainings.task
    rounds = [trainings.full_rounds(steps) for steps in task.steps]
    finite = [count for count in rounds if math.isfinite(count)]
    most = LONGEST * max(finite) if finite else task.max_rounds
    return int(max(FEWEST_ROUNDS, min(most, task.max_rounds)))


class Comparison:
    """Makes and finds the runs of courses on one task."""

    def __init__(self, trainings: Trainings, data: Path, results: Path, threads: int) -> None:
        self._trainings, self._task, self._threads = trainings, trainings.task, threads
        self._path = results / f"suite-courses-{self._task.name}.csv"
        self._lock = Lock()
        self._pricings = {name: Pricing(trainings, name, data) for name in self._task.fleets}
        self._best: Callable[[str, float], float] = cache(self._best_of)
        self._done: set[Cell] = set()
        for row in read_rows(self._path):
            self._done.add(_cell(row))

    def make(self, courses: Iterable[str], seeds: Iterable[int]) -> None:
        """Train what is missing of these courses and seeds."""
        numbers, parts = list(seeds), []
        for course in courses:
            cells = [
                Cell(fleet=fleet, weight=weight, course=course, seed=seed)
                for seed in numbers
                for fleet in self._task.fleets
                for weight in self._task.weights
            ]
            parts += self._parts([cell for cell in cells if cell not in self._done])
        if not parts:
            return
        for fleet in self._task.fleets:  # once, before threads ask for them
            for weight in self._task.weights:
                self._best(fleet, weight)
        self._trainings.simulator.warm_up()
        stop = Stop(max_rounds=longest(self._trainings), target_loss=self._task.target)
        with ThreadPoolExecutor(self._threads) as pool:
            made = pool.map(lambda part: self._train(part, stop), parts)
            for number, _ in enumerate(made, start=1):
                text = f"\r{self._task.name}: {number} of {len(parts)} trainings   "
                print(text, end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)

    def _parts(self, cells: list[Cell]) -> list[list[Cell]]:
        """Cells that one training is enough for."""
        parts: dict[tuple[object, ...], list[Cell]] = {}
        for cell in cells:
            looks = LOOKS_AT.get(cell.course, ("fleet", "weight"))
            if cell.course == PAPER:  # its pilots are for all cells
                looks = ()
            alike = (cell.course, cell.seed, *(getattr(cell, name) for name in looks))
            parts.setdefault(alike, []).append(cell)
        return list(parts.values())

    def _problem(self, cell: Cell) -> Problem:
        priced = self._pricings[cell.fleet].problem(cell.weight)
        return replace(priced, target_loss=self._task.target, learning_rate=self._task.rate)

    def _best_of(self, fleet: str, weight: float) -> float:
        pricing = self._pricings[fleet]
        return best_uniform(pricing, pricing.problem(weight), "rounds")[1]

    def _train(self, cells: list[Cell], stop: Stop) -> None:
        first = cells[0]
        if first.course == PAPER:
            procedure = PaperProcedure(self._trainings, first.seed, stop)
            for cell in cells:
                runs = procedure.runs(self._problem(cell))
                self._keep(cell, runs, runs[-1].status if len(runs) > len(PAIRS) else "no plan")
            return
        simulator = Simulator(
            self._trainings.learner, self._task.rate, self._pricings[first.fleet].fleet,
            self._trainings.evaluation, self._task.dropout,
        )  # fmt: skip
        course = make_course(first.course, self._problem(first))
        run = simulator.run(course, stop, seed=first.seed)
        for cell in cells:
            self._keep(cell, [run], run.status)

    def _keep(self, cell: Cell, runs: Sequence[RunRecord], status: str) -> None:
        """A row, of all runs together; of one that never arrives, of the rounds it had."""
        objective = self._problem(cell).objective
        clock = Clock(self._pricings[cell.fleet].fleet, self._trainings.samples.size)
        priced = map(clock.reprice, runs)
        cost = math.fsum(
            float(objective.of_round(run.time_s, run.energy_j, run.taken_part)) for run in priced
        )
        row = (
            self._task.name, self._task.half or "", cell.fleet, f"{cell.weight:g}", cell.course,
            cell.seed, status, sum(run.num_rounds for run in runs), f"{cost:.6g}",
            f"{cost / self._best(cell.fleet, cell.weight):.4g}", *_foretold(runs[-1]),
        )  # fmt: skip
        with self._lock:
            append_row(self._path, COLUMNS, row)
            self._done.add(cell)


def _foretold(run: RunRecord) -> tuple[str, str, str]:
    """The first interval of rounds after a cycle: when it was made, and its ends."""
    for decision in run.decisions:
        after = decision.round - 1
        if decision.interval is not None and after >= (run.setting.groups or 1):
            low, high = decision.interval
            return str(after), f"{low:.4g}", f"{high:.4g}"
    return "", "", ""


def _cell(row: dict[str, str]) -> Cell:
    return Cell(
        fleet=row["fleet"], weight=float(row["weight"]), course=row["course"], seed=int(row["seed"])
    )
