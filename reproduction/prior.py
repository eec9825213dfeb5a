"""What descents of several tasks have in common: where the laws' priors come from.

    python reproduction/prior.py
    python reproduction/prior.py harmonic

Constant and exponential rates: each task is trained at six settings, far longer than pilots are,
with three seeds (one for LeNet-5, whose runs take minutes each), and the law is fitted to all of
them. Harmonic rates: the law is fitted to the pilots of four seeds and to the rounds of a whole
grid at once (development.py), for it has to lead from the ones to the others. The parameters are
printed, and their mean and spread over the tasks; where the rate is harmonic the last column is how
far the rounds of the grid are from the law, the root of the mean square of their logarithms.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable
from multiprocessing import Pool

import numpy as np
from development import CLIENTS, DRAWS, FIRST_SEED, STEPS, Surface, experiment
from numpy.typing import NDArray
from optimality import plan
from scipy.optimize import least_squares

from fedplan.convergence.bound import sampling_variance
from fedplan.convergence.curves import Curve
from fedplan.convergence.descent import fit_descent, law_of
from fedplan.convergence.noise_law import EARLIEST, LUCK, STRETCH, NoiseLaw
from fedplan.convergence.prior import Prior
from fedplan.convergence.sum_law import SumLaw
from fedplan.core.records import Stop
from fedplan.participation import uniform
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.studies.pilots import PilotProblem, curve_of
from fedplan.studies.workflow import pilot_problem

SEEDS = range(5_000_000, 5_000_003)
PILOT_SEEDS = range(FIRST_SEED, FIRST_SEED + 40, 10)
MOST_ROUNDS = 600
TASKS = (
    ("setup1", "data-seed=3"),
    ("setup1", "data-seed=0"),
    ("setup1", "data-seed=1"),
    ("setup1", "data-seed=0", "learning-rate=0.03", "decay=0.98"),
    ("demo", "data-seed=5"),
    ("setup3", "data-seed=1", "schedule=constant", "learning-rate=0.03"),
    ("setup3", "data-seed=1", "schedule=constant", "learning-rate=0.01", "target-loss=1.1"),
    ("setup3", "data-seed=1", "schedule=exponential", "decay=0.98", "learning-rate=0.05"),
    ("setup2", "data-seed=1"),
)
# How far the law may be from what it is fitted to: log rounds of a grid, log losses of pilots; and
# what luck adds to the first, for one seed and one client.
GRID_ERROR, GRID_LUCK, CURVE_ERROR = 0.04, 0.35, 0.02


def loosened(prior: Prior) -> Prior:
    """A prior that says little beside long runs."""
    return {name: (mean, 3 * spread) for name, (mean, spread) in prior.items()}


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


def from_long_runs(task: tuple[str, ...]) -> tuple[str, list[float], float | None]:
    """The parameters of one task with a constant or exponential rate."""
    study, *overrides = task
    made = build_experiment(read_study(study, overrides))
    problem = pilot_problem(made)
    train, target = made.simulator.run, problem.target_loss
    first = train(uniform(1, 1), Stop(max_rounds=1)).losses[0] or target
    curves = []
    for clients, steps, depth in settings(problem):
        stop = Stop(max_rounds=MOST_ROUNDS, target_loss=target * (first / target) ** depth)
        seeds = SEEDS[:1] if study == "setup2" else SEEDS
        curves += [curve_of(train(uniform(clients, steps), stop, seed=seed)) for seed in seeds]
    prior = loosened(law_of(problem.rate, len(problem.fleet), first / target).PRIOR)
    found = fit_descent(curves, len(problem.fleet), target, problem.rate, prior=prior)
    return " ".join(task), [float(value) for value in found.parameters], None


def from_pilots_and_grid(draw: int) -> tuple[str, list[float], float | None]:
    """The parameters of one draw of Setup 3's data, and how far its grid is from the law."""
    problem = pilot_problem(experiment(draw))
    curves = [
        curve_of(run)
        for weight in (0, 1)
        for seed in PILOT_SEEDS
        for run in plan(
            experiment(draw, f"energy-weight={weight}", f"pilot-seed={seed}"), "designed"
        )[0].runs
    ]
    first = curves[0].first_loss or problem.target_loss
    law = NoiseLaw(
        num_clients=len(problem.fleet), rate=problem.rate, first_ratio=first / problem.target_loss
    )
    clients, steps, times, losses, error = _losses(curves, law, problem.target_loss)
    log_rounds = Surface(draw).log_rounds
    arrived = np.isfinite(log_rounds)
    ks, es = np.array(CLIENTS)[:, np.newaxis], np.array(STEPS)[np.newaxis, :]
    luck = GRID_LUCK * np.sqrt(sampling_variance(ks, law.num_clients) / 6)
    grid_error = np.broadcast_to(np.hypot(GRID_ERROR, luck), log_rounds.shape)
    means, spreads = (np.array(x) for x in zip(*loosened(law.PRIOR).values(), strict=True))

    def of_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
        time = np.minimum(law.time(values, ks, es, 1.0), law.rate.time(10 * MOST_ROUNDS))
        return np.asarray((log_rounds - np.log(law.rate.rounds(time)))[arrived])

    def residuals(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate(
            [
                (values - means) / spreads,
                of_grid(values) / grid_error[arrived],
                (losses - law.losses(values, clients, steps, times)) / error,
            ]
        )

    found = least_squares(residuals, means, x_scale=spreads, diff_step=1e-3)
    distance = math.sqrt(float(np.mean(of_grid(found.x) ** 2)))
    return f"setup3 data-seed={draw}", found.x.tolist(), distance


def _losses(
    curves: Iterable[Curve], law: NoiseLaw, target_loss: float
) -> tuple[NDArray[np.float64], ...]:
    """K, E, learning-rate time, mean log loss over the target, and its error."""
    together: dict[tuple[int, int, float], list[float]] = {}
    for curve in curves:
        for end, lowest in zip(*curve.stretches(STRETCH, EARLIEST), strict=True):
            key = (curve.clients_per_round, curve.local_steps, float(end))
            together.setdefault(key, []).append(math.log(lowest / target_loss))
    clients, steps, ends = np.array(list(together), dtype=np.float64).T
    losses = np.array([statistics.fmean(each) for each in together.values()])
    counts = np.array([len(each) for each in together.values()])
    luck = LUCK * np.sqrt(sampling_variance(clients, law.num_clients) / counts)
    return clients, steps, law.rate.time(ends), losses, np.hypot(luck, CURVE_ERROR)


def main() -> None:
    """Fit every task, and say what they have in common."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ("harmonic", "others")
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(kinds)}; all if none is given")
    chosen = parser.parse_args().kinds or kinds
    for kind in chosen:
        with Pool() as pool:
            if kind == "harmonic":
                names = list(NoiseLaw.PRIOR)
                rows = pool.map(from_pilots_and_grid, DRAWS, chunksize=1)
            else:
                names = list(SumLaw.PRIOR)
                rows = pool.map(from_long_runs, TASKS, chunksize=1)
        print(f"\n| {kind} | {' | '.join(names)} | distance |\n|---|{'---|' * (len(names) + 1)}")
        for name, parameters, distance in rows:
            cells = " | ".join(f"{value:.2f}" for value in parameters)
            print(f"| {name} | {cells} | {'' if distance is None else f'{distance:.1%}'} |")
        columns = list(zip(*(parameters for _, parameters, _ in rows), strict=True))
        for word, of in (("mean", statistics.fmean), ("spread", statistics.stdev)):
            print(f"| {word} | {' | '.join(f'{of(column):.2f}' for column in columns)} | |")


if __name__ == "__main__":
    main()
