"""Questions that no training can answer, and others that one can: which the online course gives up.

The others have as much time, and so much more, as the same training takes without a limit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedplan import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.simulation import LearningRate, Simulator
from suite.courses import FIRST_SEED, ONLINE, longest, make_course
from suite.pricing import Pricing, best_uniform
from suite.rows import read_rows, table
from suite.task import Task
from suite.trainings import Trainings

CELLS = (("normal", 0.0), ("lognormal", 0.5))  # fleet and energy weight
ENOUGH = {1.0: "the time it takes", 1.25: "a quarter more", 1.5: "half as much again"}
COLUMNS = ("task", "fleet", "weight", "question", "status", "rounds", "share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A problem that cannot be solved within its limits."""

    name: str
    problem: Problem
    rate: LearningRate


def measure(trainings: Sequence[Trainings], data: Path, path: Path) -> None:
    """Ask every question on every task, and write how much of its limit was used."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in trainings:
            writer.writerows(_rows(one, data))
            file.flush()


def _rows(trainings: Trainings, data: Path) -> Iterator[tuple[object, ...]]:
    most = longest(trainings)
    for fleet, weight in CELLS:
        pricing = Pricing(trainings, fleet, data)
        problem = pricing.problem(weight)
        seconds = best_uniform(pricing, pricing.problem(0.0), "rounds")[1]
        asked = Question(name="", problem=problem, rate=trainings.task.rate)
        taken = _train(trainings, pricing, asked, most).time_s
        for asked in (
            *_questions(trainings.task, problem, most, seconds),
            *(_in_time(problem, words, more * taken) for more, words in ENOUGH.items()),
        ):
            run = _train(trainings, pricing, asked, most)
            share = run.num_rounds / most
            if (deadline := asked.problem.limits.deadline_s) is not None:
                share = run.time_s / deadline
            row = (asked.name, run.status, run.num_rounds, f"{share:.4g}")
            yield trainings.task.name, fleet, f"{weight:g}", *row


def _train(trainings: Trainings, pricing: Pricing, asked: Question, most: int) -> RunRecord:
    simulator = Simulator(trainings.learner, asked.rate, pricing.fleet, trainings.evaluation)
    stop = Stop(max_rounds=most, target_loss=asked.problem.target_loss)
    return simulator.run(make_course(ONLINE, asked.problem), stop, seed=FIRST_SEED)


def _in_time(problem: Problem, words: str, seconds: float) -> Question:
    """The question with a deadline."""
    limits = replace(problem.limits, deadline_s=seconds)
    rate = problem.learning_rate
    if rate is None:
        raise AssertionError("tasks have a rate")
    return Question(name=words, problem=replace(problem, limits=limits), rate=rate)


def _questions(task: Task, problem: Problem, most: int, seconds: float) -> Iterator[Question]:
    """Targets, rates and a deadline that end in nothing.

    seconds : that the best uniform pair takes where time alone counts.
    """
    limited = replace(
        problem, target_loss=task.target, learning_rate=task.rate,
        limits=replace(problem.limits, max_rounds=most),
    )  # fmt: skip
    for part, words in ((30, "a thirtieth"), (10, "a tenth")):
        yield Question(
            name=f"{words} of the target loss",
            problem=replace(limited, target_loss=task.target / part),
            rate=task.rate,
        )
    for rate, words in (
        (replace(task.rate, initial=task.rate.initial * 1000), "a thousand times the rate"),
        (LearningRate(initial=task.rate.initial, schedule="exponential", decay=0.5),
         "half the rate from round to round"),
    ):  # fmt: skip
        yield Question(name=words, problem=replace(limited, learning_rate=rate), rate=rate)
    yield _in_time(limited, "a third of the time", seconds / 3)


def hopeless_table(path: Path) -> str:
    """By question: how runs ended, and how much of the limit they used."""
    rows = read_rows(path)
    lines = []
    for question in dict.fromkeys(row["question"] for row in rows):
        own = [row for row in rows if row["question"] == question]
        lost = [row for row in own if row["status"] != "target"]
        shares = np.array([float(row["share"]) for row in lost])
        lines.append([
            question, str(len(own)), str(len(own) - len(lost)),
            str(sum(row["status"] in ("hopeless", "diverged") for row in lost)),
            *((f"{np.median(shares):.0%}", f"{shares.max():.0%}") if lost else ("", "")),
            str((shares > 0.105).sum()),
        ])  # fmt: skip
    head = ("what is asked", "runs", "arrive after all", "given up", "of the limit used, median",
            "most", "more than a tenth")  # fmt: skip
    return table(head, lines)
