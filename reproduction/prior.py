"""What descents of several tasks have in common: where the laws' priors come from.

    python reproduction/prior.py
    python reproduction/prior.py harmonic

Each task is trained at six settings or more, far longer than pilots are, with three seeds (one for
LeNet-5, whose runs take minutes each); the parameters fitted to all of them are printed, and their
mean and spread over the tasks. Where the rate is harmonic the last column is how far losses are
from the law, from the eighth round on: the root of the mean square, over settings and stretches of
rounds, of means over seeds.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict

import numpy as np

from fedplan.records import Stop
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.studies.pilots import PilotProblem, curve_of
from fedplan.studies.workflow import pilot_problem
from fedplan.theory.curves import Curve
from fedplan.theory.descent import Descent, fit_descent, law_of
from fedplan.theory.noise_law import STRETCH, NoiseLaw

SEEDS = range(5_000_000, 5_000_003)
MOST_ROUNDS = 600
TASKS = {
    "harmonic": (
        *(
            ("setup3", f"data-seed={draw}")
            for draw in (2130, 1, 2, 11, 21, 33, 52, 54, 56, 57, 58, 59, 60, 61)
        ),
        ("setup3", "data-seed=5", "target-loss=1.2"),
        ("setup3", "data-seed=5", "alpha=0.5", "beta=0.5"),
        ("setup3", "data-seed=6", "alpha=0.5", "beta=0.5", "target-loss=1.2"),
    ),
    "others": (
        ("setup1", "data-seed=3"),
        ("setup1", "data-seed=0"),
        ("setup1", "data-seed=1"),
        ("setup1", "data-seed=0", "learning-rate=0.03", "decay=0.98"),
        ("demo", "data-seed=5"),
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
    if problem.rate.schedule == "harmonic":
        return [
            *((clients, between, 0.0) for clients in (2, 3, 5, 10, 20, many)),
            *((clients, steps, 0.0) for clients in (3, many) for steps in (fewer, more)),
        ]
    return [
        (10, more, 0.1), (10, fewer, 0.2), (2, between, 0.3), (2, more, 0.3), (many, more, 0.1),
        (many, fewer, 0.2),
    ]  # fmt: skip


def fitted(study: str, *overrides: str) -> tuple[list[float], float | None]:
    """The parameters of one task, and how far its losses are from a harmonic rate's law."""
    experiment = build_experiment(read_study(study, overrides))
    problem = pilot_problem(experiment)
    train, target = experiment.simulator.run, problem.target_loss
    first = train(1, 1, Stop(max_rounds=1)).losses[0] or target
    curves = []
    for clients, steps, depth in settings(problem):
        stop = Stop(max_rounds=MOST_ROUNDS, target_loss=target * (first / target) ** depth)
        seeds = SEEDS[:1] if study == "setup2" else SEEDS
        curves += [curve_of(train(clients, steps, stop, seed=seed)) for seed in seeds]
    law = law_of(problem.rate, len(problem.fleet), first / target)
    loose = {name: (mean, 3 * spread) for name, (mean, spread) in law.PRIOR.items()}
    found = fit_descent(curves, len(problem.fleet), target, problem.rate, prior=loose)
    error = distance(law, found, curves) if isinstance(law, NoiseLaw) else None
    return [float(value) for value in found.parameters], error


def distance(law: NoiseLaw, found: Descent, curves: list[Curve]) -> float:
    """Of mean log losses from the law; rounds are put together by how far along they are."""
    apart = defaultdict(list)
    for curve in curves:
        ends, lowest = curve.stretches(STRETCH, 8)
        at = np.ones_like(ends)
        expected = law.losses(
            found.parameters,
            at * curve.clients_per_round,
            at * curve.local_steps,
            found.rate.time(ends),
        )
        differences = np.log(lowest / found.target_loss) - expected
        for end, difference in zip(ends, differences, strict=True):
            stage = round(math.log(end, STRETCH))
            apart[curve.clients_per_round, curve.local_steps, stage].append(difference)
    return math.sqrt(statistics.fmean(statistics.fmean(each) ** 2 for each in apart.values()))


def main() -> None:
    """Fit every task, and say what they have in common."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(TASKS)}; all if none is given")
    for kind in parser.parse_args().kinds or TASKS:
        rows: list[list[float]] = []
        for study, *overrides in TASKS[kind]:
            problem = pilot_problem(build_experiment(read_study(study, overrides)))
            if not rows:
                names = law_of(problem.rate, len(problem.fleet), 2.0).PRIOR
                print(f"\n| {kind} | {' | '.join(names)} | distance |\n|---|{'---|' * 10}")
            parameters, error = fitted(study, *overrides)
            rows.append(parameters)
            cells = " | ".join(f"{value:.2f}" for value in parameters)
            last = "" if error is None else f"{error:.1%}"
            print(f"| {' '.join([study, *overrides])} | {cells} | {last} |", flush=True)
        for word, of in (("mean", statistics.fmean), ("spread", statistics.stdev)):
            cells = " | ".join(f"{of(column):.2f}" for column in zip(*rows, strict=True))
            print(f"| {word} | {cells} | |")


if __name__ == "__main__":
    main()
