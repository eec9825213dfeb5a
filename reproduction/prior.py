"""What descents of several tasks have in common: where the prior of theory/descent.py comes from.

    python reproduction/prior.py

Each task is trained at six settings, far longer than pilots are, with three seeds (one for LeNet-5,
whose runs take minutes each); the parameters fitted to all of them are printed, and
their mean and spread over the tasks.
"""

from __future__ import annotations

import math
import statistics

from fedplan.records import Stop
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.studies.pilots import PilotProblem, curve_of
from fedplan.studies.workflow import pilot_problem
from fedplan.theory.descent import PARAMETERS, fit_descent, prior_of

SEEDS = range(5_000_000, 5_000_003)
MOST_ROUNDS = 600
TASKS = {
    "harmonic": (
        ("setup3", "data-seed=2130"),
        ("setup3", "data-seed=1"),
        ("setup3", "data-seed=2"),
        ("setup3", "data-seed=3"),
        ("setup3", "data-seed=4"),
        ("setup3", "data-seed=5", "target-loss=1.2"),
        ("setup3", "data-seed=5", "alpha=0.5", "beta=0.5"),
        ("setup3", "data-seed=6", "alpha=0.5", "beta=0.5", "target-loss=1.2"),
    ),
    "others": (
        ("setup1", "data-seed=3"),
        ("setup1", "data-seed=0"),
        ("setup1", "data-seed=1"),
        ("setup3", "data-seed=1", "schedule=constant", "learning-rate=0.03"),
        ("setup3", "data-seed=1", "schedule=constant", "learning-rate=0.01", "target-loss=1.1"),
        ("setup3", "data-seed=1", "schedule=exponential", "decay=0.98", "learning-rate=0.05"),
        ("setup2", "data-seed=1"),
    ),
}


def settings(problem: PilotProblem) -> list[tuple[int, int, float]]:
    """K, E and how near to the target: 1 is the first loss, 0 the target."""
    fleet, rate = problem.fleet, problem.rate.initial
    balance = fleet.mean("comm_time_s") / fleet.mean("step_time_s")
    middle = 1.2 * math.sqrt(balance / rate)
    more, fewer, between = round(1.75 * middle), round(0.5 * middle), round(middle)
    many = min(50, len(fleet))
    return [
        (10, more, 0.1), (10, fewer, 0.2), (2, between, 0.3), (2, more, 0.3), (many, more, 0.1),
        (many, fewer, 0.2),
    ]  # fmt: skip


def fitted(study: str, *overrides: str) -> list[float]:
    """The parameters of one task."""
    experiment = build_experiment(read_study(study, overrides))
    problem = pilot_problem(experiment)
    train, target = experiment.simulator.run, problem.target_loss
    first = train(1, 1, Stop(max_rounds=1)).losses[0] or target
    curves = []
    for clients, steps, depth in settings(problem):
        stop = Stop(max_rounds=MOST_ROUNDS, target_loss=target * (first / target) ** depth)
        seeds = SEEDS[:1] if study == "setup2" else SEEDS
        curves += [curve_of(train(clients, steps, stop, seed=seed)) for seed in seeds]
    loose = {name: (mean, 3 * spread) for name, (mean, spread) in prior_of(problem.rate).items()}
    found = fit_descent(curves, len(problem.fleet), target, problem.rate, prior=loose)
    return [float(value) for value in found.parameters]


def main() -> None:
    """Fit every task, and say what they have in common."""
    names = PARAMETERS[1:]
    for kind, tasks in TASKS.items():
        print(f"\n| {kind} | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
        rows = []
        for study, *overrides in tasks:
            rows.append(fitted(study, *overrides)[1:])
            cells = " | ".join(f"{value:.2f}" for value in rows[-1])
            print(f"| {' '.join([study, *overrides])} | {cells} |", flush=True)
        for word, of in (("mean", statistics.fmean), ("spread", statistics.stdev)):
            cells = " | ".join(f"{of(column):.2f}" for column in zip(*rows, strict=True))
            print(f"| {word} | {cells} |")


if __name__ == "__main__":
    main()
