"""Optimality, measured: what plans made from pilots cost, above the best setting of a whole grid.

    python reproduction/optimality.py setup3
    python reproduction/optimality.py setup3 --grid-seeds 10 data-seed=11
    python reproduction/optimality.py setup3 --grid-seeds 20 --lognormal 1.0
    python reproduction/optimality.py setup2 --pilot-seeds 2 --checking-seeds 4

The best setting is chosen on every other seed of the grid (grid.py) and priced on the seeds
between, with the devices that really took part; a planned setting is priced on the same seeds.
Pilots have seeds of their own. One row a plan is written to reproduction/results.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from grid import GRIDS, HERE, NEVER, make_runs

from fedplan.core.objective import Objective
from fedplan.participation import uniform
from fedplan.participation.draws import pick
from fedplan.simulation import Clock, Job
from fedplan.studies import read_study
from fedplan.studies.building import Experiment, build_experiment
from fedplan.studies.jobs import make_jobs
from fedplan.studies.paper_pilots import PaperPilots
from fedplan.studies.pilots import DesignedPilots
from fedplan.studies.summary import RunSummary
from fedplan.studies.sweep import Cell, empirical_optimum, make_cells
from fedplan.studies.workflow import Bill, pilot_problem

METHODS = ("designed", "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One plan and what it cost; `regret` is above the best of the grid."""

    energy_weight: float
    method: str
    pilot_seed: int
    clients_per_round: int
    local_steps: int
    cost: float
    best_clients_per_round: int
    best_local_steps: int
    best_cost: float
    regret: float
    pilots_cost: float
    predicted_rounds: float | None
    rounds: float


class Truth:
    """What runs cost on one fleet, from their rounds alone."""

    def __init__(self, setup: str, overrides: list[str], experiment: Experiment) -> None:
        if experiment.fleet is None:
            raise ValueError("costs need devices")
        self._setup, self._overrides = setup, overrides
        self._num_clients = experiment.num_clients
        self._clock = Clock(experiment.fleet, self._num_clients)
        self._priced: dict[Job, RunSummary] = {}

    def outcomes(self, jobs: list[Job]) -> list[RunSummary]:
        """The runs of these jobs, priced; what is missing is trained."""
        rounds = make_runs(self._setup, self._overrides, jobs)
        for job in jobs:
            if job not in self._priced:
                self._priced[job] = self._price(job, rounds[job])
        return [self._priced[job] for job in jobs]

    def _price(self, job: Job, rounds: int) -> RunSummary:
        arrived = rounds != NEVER
        clients, steps = job.setting.pair
        cohorts = [
            pick(job.seed, number, self._num_clients, clients).tolist()
            for number in range(1, rounds + 1 if arrived else 1)
        ]
        costs = self._clock.round_costs(cohorts, [steps] * len(cohorts))
        return RunSummary(
            clients_per_round=clients,
            local_steps=steps,
            seed=job.seed,
            status="target" if arrived else "rounds",
            rounds=rounds,
            time_s=math.fsum(seconds for seconds, _ in costs),
            energy_j=math.fsum(joules for _, joules in costs),
            final_loss=None,
            taken_part=clients * len(cohorts),
        )


def plan(experiment: Experiment, method: str) -> tuple[DesignedPilots | PaperPilots, Bill]:
    """The plan from pilots, and what they cost."""
    problem, table = pilot_problem(experiment), experiment.study.planning
    pilots: DesignedPilots | PaperPilots
    if method == "paper":
        pilots = PaperPilots(problem, table)
    else:
        pilots = DesignedPilots(problem, table.pilot_budget)
    while (trial := pilots.ask()) is not None:
        job = trial.job
        pilots.tell(experiment.simulator.run(job.setting, trial.stop, seed=job.seed))
    return pilots, Bill.of(pilots.runs, experiment.objective)


def measure(
    setup: str,
    overrides: list[str],
    fleet: list[str],
    weights: Iterable[float],
    pilot_seeds: Iterable[int],
    grid_seeds: int,
    checking_seeds: int,
) -> list[Row]:
    """Plan for every weight and pilot seed by both methods, and price the plans and the best."""
    grid = GRIDS[setup]
    base = build_experiment(read_study(setup, [*overrides, *fleet]))
    truth = Truth(setup, overrides, base)
    everywhere = truth.outcomes(
        make_jobs([uniform(*pair) for pair in grid.pairs], range(grid_seeds))
    )
    checking = range(1, 2 * checking_seeds, 2)
    rows = []

    def priced(setting: tuple[int, int], objective: Objective) -> Cell:
        (cell,) = make_cells(truth.outcomes(make_jobs([uniform(*setting)], checking)), objective)
        return cell

    for weight in weights:
        objective = Objective.weighted(weight)
        cheapest = empirical_optimum(everywhere, objective)
        if cheapest is None:
            raise ValueError("no setting of the grid reaches the target with every seed")
        best = priced(cheapest.setting, objective)
        for method in METHODS:
            for seed in pilot_seeds:
                keys = [f"energy-weight={weight}", f"pilot-seed={seed}", f"pilots={method}"]
                experiment = build_experiment(read_study(setup, [*overrides, *fleet, *keys]))
                pilots, bill = plan(experiment, method)
                choice = pilots.choice
                if choice.setting is None:
                    print(f"weight {weight}, {method}, pilots {seed}: {choice.message}")
                    continue
                clients, steps = choice.setting
                made, expected = priced(choice.setting, objective), choice.forecast
                rows.append(
                    Row(
                        energy_weight=weight,
                        method=method,
                        pilot_seed=seed,
                        clients_per_round=clients,
                        local_steps=steps,
                        cost=made.cost,
                        best_clients_per_round=best.setting[0],
                        best_local_steps=best.local_steps,
                        best_cost=best.cost,
                        regret=made.cost / best.cost - 1.0,
                        pilots_cost=bill.cost,
                        predicted_rounds=expected.prediction.expected_rounds if expected else None,
                        rounds=made.rounds if math.isfinite(made.cost) else math.inf,
                    )
                )
                print(
                    f"weight {weight:.1f}, {method}, pilots {seed}: K={clients}, E={steps}, regret "
                    f"{rows[-1].regret:+.1%} (best K={best.clients_per_round}, "
                    f"E={best.local_steps}), pilots {bill.cost / best.cost:.2f} of the best",
                    flush=True,
                )
    return rows


def lognormal(setup: str, share: float) -> list[str]:
    """Overrides for devices of the same means, lognormal with this deviation over the mean."""
    table = read_study(setup).fleet
    if table is None:
        raise ValueError("costs need devices")
    overrides = ["distribution=lognormal", "fleet-seed=2"]
    for quantity in ("step-time", "comm-time", "step-energy", "comm-energy"):
        unit = "s" if quantity.endswith("time") else "j"
        mean = getattr(table, f"{quantity}-{unit}".replace("-", "_"))
        overrides.append(f"{quantity}-sd-{unit}={share * mean}")
    return overrides


def write_rows(path: Path, rows: list[Row]) -> None:
    """All rows, in place of an old file."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=asdict(rows[0]).keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def print_summary(rows: list[Row]) -> None:
    """Mean and largest regret over the weights: of every set of pilots, and of all of them.

    A plan that does not reach the target with every seed has no regret; those are counted apart.
    What pilots cost is a share of training with the best setting, the same for both methods.
    """
    print("\n| method | pilots | mean regret | largest | never | cost of the pilots |")
    print("|---|---|---|---|---|---|")
    for method in METHODS:
        chosen = [row for row in rows if row.method == method]
        if not chosen:
            print(f"| {method} | made no plan | | | | |")
            continue
        seeds = sorted({row.pilot_seed for row in chosen})
        for name, own in (
            *((str(s), [row for row in chosen if row.pilot_seed == s]) for s in seeds),
            (f"all {len(seeds)}", chosen),
        ):
            arrived = [row for row in own if math.isfinite(row.regret)]
            regrets = [row.regret for row in arrived]
            share = statistics.fmean(row.pilots_cost / row.best_cost for row in own)
            print(
                f"| {method} | {name} | {statistics.fmean(regrets):.1%} | {max(regrets):.1%} | "
                f"{len(own) - len(arrived)} of {len(own)} | {share:.2f} |"
            )


def main() -> None:
    """Measure one setup."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=GRIDS)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of the study")
    parser.add_argument(
        "--lognormal", type=float, metavar="SHARE", help="other devices; deviation over mean"
    )
    parser.add_argument("--pilot-seeds", type=int, default=5, help="sets of pilots (default: 5)")
    parser.add_argument(
        "--first-pilot-seed",
        type=int,
        default=13_000_000,
        help="of the first set; those below were seen while the method was made",
    )
    parser.add_argument("--grid-seeds", type=int, help="runs a setting (default: the grid's)")
    parser.add_argument(
        "--checking-seeds",
        type=int,
        help="runs by which plans and the best are priced (default: half of the grid's)",
    )
    parser.add_argument("--weights", type=float, nargs="*", help="energy weights")
    options = parser.parse_intermixed_args()
    weights = options.weights
    if weights is None:
        tenths = range(11) if options.setup == "setup3" else range(1)
        weights = [tenth / 10 for tenth in tenths]
    first, last = options.first_pilot_seed, options.first_pilot_seed + 10 * options.pilot_seeds
    seeds = range(first, last, 10)  # one set has pilots of several seeds
    fleet = [] if options.lognormal is None else lognormal(options.setup, options.lognormal)
    grid_seeds = options.grid_seeds or GRIDS[options.setup].seeds
    rows = measure(
        options.setup,
        options.overrides,
        fleet,
        weights,
        seeds,
        grid_seeds,
        options.checking_seeds or max(1, grid_seeds // 2),
    )
    words = [text.replace("=", "-") for text in options.overrides]
    if fleet:
        words.append(f"lognormal-{options.lognormal:g}")
    write_rows(HERE / "results" / f"optimality-{'-'.join([options.setup, *words])}.csv", rows)
    print_summary(rows)


if __name__ == "__main__":
    main()
