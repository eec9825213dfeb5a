"""How many rounds online trainings were predicted to take on the way, and how many they took."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedplan.core.records import RunRecord, Stop
from fedplan.course.forecast import Forecast
from fedplan.simulation import Evaluation, Simulator
from suite.courses import FIRST_SEED, ONLINE, longest, make_course
from suite.pricing import Pricing
from suite.rows import read_rows, table
from suite.trainings import Trainings

COLUMNS = (
    "task",
    "half",
    "fleet",
    "weight",
    "moment",
    "after",
    "rounds",
    "low",
    "expected",
    "high",
)
CYCLE = "first cycle"
PARTS = {"25%": 0.25, "50%": 0.5, "75%": 0.75}  # of the rounds that the training took
ENDS = (0.04, 0.96)  # of what is counted on other tasks: a little more than nine of ten


def measure(trainings: Sequence[Trainings], data: Path, path: Path) -> None:
    """Train the online course once on every cell, and write what was predicted at each moment."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in trainings:
            for row in _rows(one, data):
                writer.writerow(row)
            file.flush()


def _rows(trainings: Trainings, data: Path) -> Iterator[tuple[object, ...]]:
    task = trainings.task
    stop = Stop(max_rounds=longest(trainings), target_loss=task.target)
    for name in task.fleets:
        pricing = Pricing(trainings, name, data)
        simulator = Simulator(
            trainings.learner, task.rate, pricing.fleet, Evaluation(both=True), task.dropout
        )
        for weight in task.weights:
            course = make_course(ONLINE, pricing.problem(weight))
            run = simulator.run(course, stop, seed=FIRST_SEED)
            if run.status == "target":
                for said in _predictions(run, trainings):
                    yield task.name, task.half, name, f"{weight:g}", *said


def _predictions(run: RunRecord, trainings: Trainings) -> Iterator[tuple[object, ...]]:
    """Moment, rounds so far, rounds in all, and the prediction's low end, middle and high end."""
    rate = trainings.task.rate
    moments = {CYCLE: run.setting.groups or 1}
    moments |= {name: int(part * run.num_rounds) for name, part in PARTS.items()}
    for name, after in moments.items():
        forecast = Forecast(trainings.task.target, lambda round_: rate.at(round_ - 1))
        for record in run.rounds[1 : after + 1]:
            forecast.add(record.loss)
        arrival = forecast.arrival()
        if after < run.num_rounds and arrival is not None:
            ends = (f"{end:.5g}" for end in (arrival.low, arrival.rounds, arrival.high))
            yield name, after, run.num_rounds, *ends


def forecasts_table(path: Path) -> str:
    """By moment: how often rounds are within the interval, and how wide it is.

    Of a task left out, the interval is counted anew on the others.
    """
    rows = read_rows(path)
    ways = [math.log(float(row["expected"]) / float(row["after"])) for row in rows]
    times = [math.log(float(row["rounds"]) / float(row["after"])) for row in rows]
    ratios = np.array(times) / np.array(ways)
    tasks = np.array([row["task"] for row in rows])
    ends = {task: np.quantile(ratios[tasks != task], ENDS) for task in set(tasks)}
    lines = []
    for moment in (CYCLE, *PARTS):
        own = [place for place, row in enumerate(rows) if row["moment"] == moment]
        low, rounds, high = (
            np.array([float(rows[place][name]) for place in own])
            for name in ("low", "rounds", "high")
        )
        left_out = [
            ends[tasks[place]][0] <= ratios[place] <= ends[tasks[place]][1] for place in own
        ]
        known = np.isfinite(high)
        lines.append([
            moment, str(len(own)), f"{np.mean((low <= rounds) & (rounds <= high)):.0%}",
            f"{np.mean(left_out):.0%}", f"{np.exp(np.log(high / low)[known].mean()):.1f}",
            str((~known).sum()),
        ])  # fmt: skip
    head = ("after", "runs", "rounds within the interval", "with the task left out",
            "high over low, mean in ratio", "intervals without an end")  # fmt: skip
    return table(head, lines)
