"""Table I of the paper, measured: rounds to two losses for each sampled (K, E), over many seeds.

    python reproduction/table1.py setup1 --seeds 50
    python reproduction/table1.py setup2 --seeds 3 schedule=harmonic rounds=200
    python reproduction/table1.py setup3 --seeds 50 data-seed=7

Every finished run is a row of a file in reproduction/results, in the format of pilots.csv; the same
command later goes on where it stopped. The table is printed as Markdown, beside the published one.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path

from fedplan.records import RunRecord, Stop
from fedplan.simulation import Job
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.tables import read_pilots
from fedplan.theory.pilots import Pilot

HERE = Path(__file__).parent
COLUMNS = (
    "clients_per_round", "local_steps", "upper_loss", "lower_loss", "rounds_to_upper",
    "rounds_to_lower", "seed",
)  # fmt: skip
Rounds = tuple[int | None, int | None]
Results = dict[tuple[int, int, int], Rounds]


def read_results(path: Path) -> Results:
    """Runs finished before; the last line may have been cut off by a crash."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["seed"]]
    return {
        (int(row["clients_per_round"]), int(row["local_steps"]), int(row["seed"])): (
            int(row["rounds_to_upper"]) if row["rounds_to_upper"] else None,
            int(row["rounds_to_lower"]) if row["rounds_to_lower"] else None,
        )
        for row in rows
    }


def write_results(path: Path, results: Results, pilot: Pilot) -> None:
    """All runs so far, in place of the old file."""
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (clients, steps, seed), (upper, lower) in sorted(results.items()):
            losses = (pilot.upper_loss, pilot.lower_loss)
            rounds = ("" if upper is None else upper, "" if lower is None else lower)
            writer.writerow((clients, steps, *losses, *rounds, seed))
    draft.replace(path)


def measure(
    setup: str, overrides: list[str], pilots: list[Pilot], seeds: range, path: Path
) -> Results:
    """Make the runs that are missing."""
    results = read_results(path)
    jobs = [
        Job(clients_per_round=p.clients_per_round, local_steps=p.local_steps, seed=seed)
        for p in pilots
        for seed in seeds
        if (p.clients_per_round, p.local_steps, seed) not in results
    ]
    if not jobs:
        return results
    experiment = build_experiment(read_study(setup, overrides))
    stop = Stop(max_rounds=experiment.stop.max_rounds, target_loss=pilots[0].lower_loss)
    experiment.simulator.warm_up()
    path.parent.mkdir(exist_ok=True)
    start = time.perf_counter()
    for done, run in enumerate(experiment.simulator.run_all(jobs, stop), start=1):
        results[run.clients_per_round, run.local_steps, run.seed] = crossings(run, pilots[0])
        write_results(path, results, pilots[0])
        taken = time.perf_counter() - start
        print(f"\r{done} of {len(jobs)} runs, {taken:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return results


def crossings(run: RunRecord, pilot: Pilot) -> Rounds:
    """Rounds to the two losses."""
    return run.rounds_to(pilot.upper_loss), run.rounds_to(pilot.lower_loss)


def summary(found: list[int | None]) -> str:
    """Mean and standard deviation over the seeds, and how many never arrived."""
    arrived = [rounds for rounds in found if rounds is not None]
    missing = len(found) - len(arrived)
    if not arrived:
        return "never"
    spread = statistics.stdev(arrived) if len(arrived) > 1 else 0.0
    text = f"{statistics.mean(arrived):.1f} ± {spread:.1f}"
    return f"{text} ({missing} of {len(found)} never)" if missing else text


def print_table(pilots: list[Pilot], results: Results, seeds: range) -> None:
    """Print the table, and where the means are within 10% or 3 rounds of the published ones."""
    upper, lower = pilots[0].upper_loss, pilots[0].lower_loss
    print(f"| K, E | paper: {upper} | ours | paper: {lower} | ours | within 10% or 3 rounds |")
    print("|---|---|---|---|---|---|")
    for pilot in pilots:
        pair = (pilot.clients_per_round, pilot.local_steps)
        runs = [results[*pair, seed] for seed in seeds]
        cells, close = [], True
        for published, found in zip(
            (pilot.rounds_to_upper, pilot.rounds_to_lower), zip(*runs, strict=True), strict=True
        ):
            cells += [f"{published:g}", summary(list(found))]
            mean = statistics.mean(found) if None not in found else float("inf")
            close &= abs(mean - published) <= max(3.0, 0.1 * published)
        print(f"| {pair[0]}, {pair[1]} | {' | '.join(cells)} | {'yes' if close else 'no'} |")


def main() -> None:
    """Measure one setup and print it beside Table I."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setup", choices=["setup1", "setup2", "setup3"])
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of the study")
    parser.add_argument("--seeds", type=int, default=50, help="runs a pair (default: 50)")
    options = parser.parse_intermixed_args()
    pilots = read_pilots(HERE / "published" / f"{options.setup}.csv")
    seeds = range(options.seeds)
    name = "-".join([options.setup, *(text.replace("=", "-") for text in options.overrides)])
    path = HERE / "results" / f"table1-{name}.csv"
    results = measure(options.setup, options.overrides, pilots, seeds, path)
    print_table(pilots, results, seeds)


if __name__ == "__main__":
    main()
