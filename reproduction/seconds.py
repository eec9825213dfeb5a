"""Seconds of Setup 1: what each thing that the paper leaves open does to them.

    python reproduction/seconds.py

Trains K = 20, E = 100, the quickest of our grid, to the loss 0.365 with one thing changed at a time
(all 20 devices take part, so seeds hardly differ; near the target every sample and round is judged,
so another evaluation is a loss that is judged too high), and writes rounds and seconds, one row
for each,
to reproduction/results/setup1-seconds.csv. The same command goes on where it stopped.
"""

from __future__ import annotations

import csv
from pathlib import Path

from fedplan import uniform
from fedplan.core.records import Stop
from fedplan.simulation import Clock, Job
from fedplan.studies import build_experiment, read_study

RESULTS = Path(__file__).parent / "results" / "setup1-seconds.csv"
CLIENTS, STEPS = 20, 100
VARIANTS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "rate 0.01, not falling": ("schedule=constant",),
    "rate 0.01 * 0.995^r": ("decay=0.995",),
    "rate 0.009 * 0.996^r": ("learning-rate=0.009",),
    "batches of 32": ("batch-size=32",),
    "batches of 128": ("batch-size=128",),
    "a loss that is judged 0.01 too high": ("target-loss=0.355",),
    "a loss that is judged 0.025 too high": ("target-loss=0.34",),
    "images of draw 0": ("data-seed=0",),
    "images of draw 1": ("data-seed=1",),
    "images of draw 2": ("data-seed=2",),
    "images of all of MNIST": ("data=mnist",),
    "devices of draw 1": ("fleet-seed=1",),
    "devices of draw 2": ("fleet-seed=2",),
    "devices all alike": ("step-time-sd-s=0", "comm-time-sd-s=0"),
}
HEAD = ("changed", "settings", "rounds", "seconds")


def train(overrides: tuple[str, ...]) -> tuple[int | str, float | str]:
    """Rounds and seconds to the target; `never` within a thousand."""
    experiment = build_experiment(read_study("setup1", list(overrides)))
    experiment.simulator.warm_up()
    job = Job(course=uniform(CLIENTS, STEPS), seed=0)
    stop = Stop(max_rounds=1_000, target_loss=experiment.stop.target_loss)
    (run,) = experiment.simulator.run_all([job], stop)
    if run.status != "target" or experiment.fleet is None:
        return "never", "never"
    priced = Clock(experiment.fleet, experiment.num_clients).reprice(run)
    return run.num_rounds, round(priced.time_s, 1)


def main() -> None:
    """Train what is missing."""
    rows: dict[str, list[str]] = {}
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            rows = {row[0]: row for row in list(csv.reader(file))[1:]}
    for name, overrides in VARIANTS.items():
        if name not in rows:
            rows[name] = [name, " ".join(overrides), *map(str, train(overrides))]
            with RESULTS.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([HEAD, *rows.values()])
        print(*rows[name], sep="  ", flush=True)


if __name__ == "__main__":
    main()
