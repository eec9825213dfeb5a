"""Plans on the data that the method was made with: quick to measure, and no evidence.

    python reproduction/development.py
    python reproduction/development.py --weights 0 1 --pilot-seeds 6 48 101

Draws of Setup 3's data that may be looked at, with small grids of their own, so that a change of a
law, a prior or the pilots is judged in minutes. A plan is priced by expected rounds, interpolated
between the settings of its grid, and the best is the lowest of the same surface. What plans are
worth on data not looked at is for optimality.py to say.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from grid import HERE, NEVER
from numpy.typing import NDArray
from optimality import plan

from fedplan.records import Stop
from fedplan.simulation import Job
from fedplan.studies import read_study
from fedplan.studies.building import Experiment, build_experiment
from fedplan.studies.pilots import PilotProblem
from fedplan.studies.workflow import pilot_problem

DRAWS = (1, 2, 11, 21, 33, *range(41, 50), 52, 54, *range(56, 62), 101, *range(103, 111), 112, 2130)
CLIENTS = (3, 5, 10, 20, 50, 100)
STEPS = (10, 15, 20, 30, 45)
SEEDS = {100: 2, 50: 3}  # the more clients, the less is left to luck
MOST_SEEDS = 6
MOST_ROUNDS = 700
GRIDS = HERE / "results" / "development-grids.csv"
COLUMNS = ("data_seed", "clients_per_round", "local_steps", "seed", "rounds")


def experiment(draw: int, *overrides: str) -> Experiment:
    """Setup 3 on a draw of the data."""
    return build_experiment(read_study("setup3", [f"data-seed={draw}", *overrides]))


def read_grids(path: Path = GRIDS) -> dict[int, dict[Job, int]]:
    """Rounds of every run of every draw; `NEVER` where it did not arrive."""
    grids: dict[int, dict[Job, int]] = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                draw, clients, steps, seed, rounds = (int(row[name]) for name in COLUMNS)
                job = Job(clients_per_round=clients, local_steps=steps, seed=seed)
                grids.setdefault(draw, {})[job] = rounds
    return grids


def make_grids() -> dict[int, dict[Job, int]]:
    """The grids of all draws; draws that are missing are trained, and kept."""
    grids = read_grids()
    jobs = [
        Job(clients_per_round=clients, local_steps=steps, seed=seed)
        for clients in CLIENTS
        for steps in STEPS
        for seed in range(SEEDS.get(clients, MOST_SEEDS))
    ]
    for draw in sorted(set(DRAWS) - set(grids)):
        print(f"training the grid of draw {draw}: {len(jobs)} runs", file=sys.stderr)
        made = experiment(draw)
        stop = Stop(max_rounds=MOST_ROUNDS, target_loss=made.stop.target_loss)
        runs = list(made.simulator.run_all(jobs, stop))
        with GRIDS.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if file.tell() == 0:
                writer.writerow(COLUMNS)
            for job, run in zip(jobs, runs, strict=True):
                rounds = run.num_rounds if run.status == "target" else NEVER
                grids.setdefault(draw, {})[job] = rounds
                writer.writerow(
                    (draw, job.clients_per_round, job.local_steps, job.seed, rounds)
                )  # fmt: skip
    return grids


class Surface:
    """Expected rounds of any (K, E): linear in 1 / K and 1 / E between those of the grid."""

    def __init__(self, grid: dict[Job, int]) -> None:
        self.log_rounds: NDArray[np.float64] = np.array(
            [[self._mean(grid, clients, steps) for steps in STEPS] for clients in CLIENTS]
        )

    @staticmethod
    def _mean(grid: dict[Job, int], clients: int, steps: int) -> float:
        """Logarithm of the mean rounds; infinite where a seed did not arrive."""
        rounds = [
            rounds
            for job, rounds in grid.items()
            if (job.clients_per_round, job.local_steps) == (clients, steps)
        ]
        return math.inf if NEVER in rounds else math.log(statistics.fmean(rounds))

    def rounds(self, clients: int, steps: int) -> float:
        """Expected rounds of a setting; infinite next to one that did not arrive."""
        row, down = _between(CLIENTS, clients)
        column, across = _between(STEPS, steps)
        corners = self.log_rounds[row : row + 2, column : column + 2]
        weights = np.outer((1 - down, down), (1 - across, across))
        return math.exp(float(corners[weights > 0] @ weights[weights > 0]))

    def cheapest(self, problem: PilotProblem) -> float:
        """Cost of the best setting of the surface."""
        fine = (*range(3, 20), *range(20, 60, 3), *range(60, 101, 10))
        return min(
            problem.round_cost(clients, steps) * self.rounds(clients, steps)
            for clients in fine
            for steps in range(STEPS[0], STEPS[-1] + 1)
        )


def _between(nodes: tuple[int, ...], value: int) -> tuple[int, float]:
    """The node below, and how far it is from there to the next, in 1 / value; the ends hold."""
    inside = min(max(value, nodes[0]), nodes[-1])
    place = max(n for n, node in enumerate(nodes[:-1]) if node <= inside)
    low, high = 1 / nodes[place], 1 / nodes[place + 1]
    return place, (low - 1 / inside) / (low - high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One plan: its regret, and what its pilots cost, of training at the best setting."""

    draw: int
    weight: float
    setting: tuple[int, int]
    regret: float
    pilots: float
    predicted: float  # rounds, over those of the surface


def outcomes(draw: int, weights: list[float], pilot_seeds: range) -> list[Outcome]:
    """Every plan on one draw."""
    surface = Surface(make_grids()[draw])
    found = []
    for weight in weights:
        problem = pilot_problem(experiment(draw, f"energy-weight={weight}"))
        best = surface.cheapest(problem)
        for seed in pilot_seeds:
            made = experiment(draw, f"energy-weight={weight}", f"pilot-seed={seed}")
            pilots, bill = plan(made, "designed")
            choice = pilots.choice
            if choice.setting is None or choice.forecast is None:
                raise ValueError(f"draw {draw}, weight {weight}, pilots {seed}: {choice.message}")
            rounds = surface.rounds(*choice.setting)
            found.append(
                Outcome(
                    draw=draw,
                    weight=weight,
                    setting=choice.setting,
                    regret=problem.round_cost(*choice.setting) * rounds / best - 1.0,
                    pilots=bill.cost / best,
                    predicted=choice.forecast.prediction.expected_rounds / rounds,
                )
            )
    return found


def print_outcomes(found: list[Outcome]) -> None:
    """By draw, by weight, and in all."""
    groups = [
        *((f"draw {draw}", [o for o in found if o.draw == draw]) for draw in DRAWS),
        *(
            (f"weight {weight:g}", [o for o in found if o.weight == weight])
            for weight in sorted({outcome.weight for outcome in found})
        ),
        ("all", found),
    ]
    print("| | mean regret | largest | above 9% | pilots, of training | predicted rounds |")
    print("|---|---|---|---|---|---|")
    for name, own in groups:
        if own:
            regrets = [outcome.regret for outcome in own]
            print(
                f"| {name} | {statistics.fmean(regrets):.1%} | {max(regrets):.1%} | "
                f"{sum(regret > 0.09 for regret in regrets)} of {len(own)} | "
                f"{statistics.fmean(outcome.pilots for outcome in own):.2f} | "
                f"{statistics.median(outcome.predicted for outcome in own):.2f} |"
            )


def main() -> None:
    """Plan on every draw, and say how far from the best plans are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("draws", nargs="*", type=int, help="of the data (default: all of them)")
    parser.add_argument("--weights", type=float, nargs="*", default=[0.0, 0.5, 0.9, 1.0])
    parser.add_argument("--pilot-seeds", type=int, default=3, help="sets of pilots (default: 3)")
    options = parser.parse_intermixed_args()
    make_grids()
    first = 20_000_000
    seeds = range(first, first + 10 * options.pilot_seeds, 10)
    tasks = [(draw, options.weights, seeds) for draw in options.draws or DRAWS]
    with Pool() as pool:
        found = [one for each in pool.starmap(outcomes, tasks, chunksize=1) for one in each]
    print_outcomes(found)


if __name__ == "__main__":
    main()
