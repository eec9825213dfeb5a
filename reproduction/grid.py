"""Exhaustive grids: rounds to the target of every (K, E, seed), as a small file.

    python reproduction/grid.py setup1
    python reproduction/grid.py setup2 --seeds 1

Every finished run is a row of a file in reproduction/results; the same command later goes on where
it stopped. Cohorts follow from seed and round, so these rows are all it takes to price the runs for
any devices and any weight: see `Clock.reprice`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from fedplan import uniform
from fedplan.simulation import Job
from fedplan.studies import build_experiment, make_jobs, read_study

HERE = Path(__file__).parent
NEVER = 0  # rounds, in a file: the target was not reached in the rounds allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededGrid:
    """The settings of a setup that are tried, and with how many seeds."""

    clients_per_round: tuple[int, ...]
    local_steps: tuple[int, ...]
    seeds: int

    @property
    def jobs(self) -> list[Job]:
        """Every run, those with most local steps first: the longest are not left for the end."""
        steps, clients = reversed(self.local_steps), self.clients_per_round
        return make_jobs([uniform(k, e) for e in steps for k in clients], range(self.seeds))


GRIDS = {
    "setup1": SeededGrid(
        clients_per_round=(1, 2, 4, 7, 10, 15, 20),
        local_steps=(40, 60, 80, 100, 120, 150, 200, 300),
        seeds=20,
    ),
    "setup2": SeededGrid(
        clients_per_round=(5, 10, 20, 40), local_steps=(10, 15, 22, 33, 50), seeds=2
    ),
}


def results_path(setup: str, overrides: list[str]) -> Path:
    """Where the rows of a setup are."""
    name = "-".join([setup, *(text.replace("=", "-") for text in overrides)])
    return HERE / "results" / f"grid-{name}.csv"


def read_rounds(path: Path) -> dict[Job, int]:
    """Rounds of every finished run; `NEVER` where it did not arrive."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == 4][1:]
    return {
        Job(course=uniform(int(k), int(e)), seed=int(seed)): int(rounds)
        for k, e, seed, rounds in rows
    }


def make_runs(setup: str, overrides: list[str], jobs: list[Job]) -> dict[Job, int]:
    """Rounds to the target of these jobs; those that are missing are trained, and kept."""
    path = results_path(setup, overrides)
    done = read_rounds(path)
    missing = [job for job in jobs if job not in done]
    if not missing:
        return done
    experiment = build_experiment(read_study(setup, overrides))
    experiment.simulator.warm_up()
    path.parent.mkdir(exist_ok=True)
    fresh = not path.exists()
    start = time.perf_counter()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(("clients_per_round", "local_steps", "seed", "rounds"))
        runs = experiment.simulator.run_all(missing, experiment.stop)
        for count, (job, run) in enumerate(zip(missing, runs, strict=True), start=1):
            done[job] = run.num_rounds if run.status == "target" else NEVER
            writer.writerow((*job.setting.pair, job.seed, done[job]))
            file.flush()
            left = (time.perf_counter() - start) / count * (len(missing) - count)
            print(f"\r{count} of {len(missing)} runs, {left:.0f} s left ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return done


def main() -> None:
    """Train what is missing of a grid."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=GRIDS)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of the study")
    parser.add_argument("--seeds", type=int, help="runs a setting (default: as the setup's grid)")
    options = parser.parse_intermixed_args()
    grid = GRIDS[options.setup]
    grid = replace(grid, seeds=options.seeds or grid.seeds)
    make_runs(options.setup, options.overrides, grid.jobs)


if __name__ == "__main__":
    main()
