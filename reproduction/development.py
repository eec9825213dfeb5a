"""Plans on the data that the method was made with: quick to measure, and no evidence.

    python reproduction/development.py
    python reproduction/development.py --weights 0 1 --pilot-seeds 6 48 101

Draws of Setup 3's data that may be looked at, each with a small grid (a part of a larger one where
there is one; what is missing is trained, and kept), so that a change of a law, a prior or the
pilots is judged in minutes. A plan is priced by expected rounds, interpolated between the settings
of its grid, and the best is the lowest of the same surface. What plans are worth on data not looked
at is for optimality.py to say.
"""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np
from grid import NEVER, make_runs
from numpy.typing import NDArray
from optimality import plan

from fedplan.participation import uniform
from fedplan.studies import read_study
from fedplan.studies.building import Experiment, build_experiment
from fedplan.studies.jobs import make_jobs
from fedplan.studies.pilots import PilotProblem
from fedplan.studies.workflow import pilot_problem

DRAWS = (1, 2, 11, 21, 33, *range(41, 50), 52, 54, *range(56, 62), 101, *range(103, 111), 112, 2130)
CLIENTS = (3, 5, 10, 20, 50, 100)
STEPS = (10, 15, 20, 30, 45)
SEEDS = {100: 2, 50: 3}  # the more clients, the less is left to luck
MOST_SEEDS = 6
FIRST_SEED = 20_000_000  # of pilots


def experiment(draw: int, *overrides: str) -> Experiment:
    """Setup 3 on a draw of the data."""
    return build_experiment(read_study("setup3", [f"data-seed={draw}", *overrides]))


class Surface:
    """Expected rounds of any (K, E): linear in 1 / K and 1 / E between those of a small grid."""

    def __init__(self, draw: int) -> None:
        # The grid of the draw that the study is for is kept without its number.
        own = read_study("setup3").task.data_seed
        overrides = [] if draw == own else [f"data-seed={draw}"]
        cells = {
            (clients, steps): make_jobs(
                [uniform(clients, steps)], range(SEEDS.get(clients, MOST_SEEDS))
            )
            for clients in CLIENTS
            for steps in STEPS
        }
        made = make_runs("setup3", overrides, [job for jobs in cells.values() for job in jobs])

        def log_mean(clients: int, steps: int) -> float:
            rounds = [made[job] for job in cells[clients, steps]]
            return math.inf if NEVER in rounds else math.log(statistics.fmean(rounds))

        self.log_rounds: NDArray[np.float64] = np.array(
            [[log_mean(clients, steps) for steps in STEPS] for clients in CLIENTS]
        )

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
    regret: float
    pilots: float
    predicted: float  # rounds, over those of the surface


def outcomes(draw: int, weights: list[float], pilot_seeds: range) -> list[Outcome]:
    """Every plan on one draw."""
    surface = Surface(draw)
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
                    regret=problem.round_cost(*choice.setting) * rounds / best - 1.0,
                    pilots=bill.cost / best,
                    predicted=choice.forecast.prediction.expected_rounds / rounds,
                )
            )
    return found


def print_outcomes(found: list[Outcome]) -> None:
    """By draw, by weight, and in all."""
    groups = [
        *(
            (f"draw {draw}", [o for o in found if o.draw == draw])
            for draw in sorted({outcome.draw for outcome in found})
        ),
        *(
            (f"weight {weight:g}", [o for o in found if o.weight == weight])
            for weight in sorted({outcome.weight for outcome in found})
        ),
        ("all", found),
    ]
    print("| | mean regret | largest | above 9% | pilots, of training | predicted rounds |")
    print("|---|---|---|---|---|---|")
    for name, own in groups:
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
    seeds = range(FIRST_SEED, FIRST_SEED + 10 * options.pilot_seeds, 10)
    tasks = [(draw, options.weights, seeds) for draw in options.draws or DRAWS]
    with Pool() as pool:
        found = [one for each in pool.starmap(outcomes, tasks, chunksize=1) for one in each]
    print_outcomes(found)


if __name__ == "__main__":
    main()
