"""Planned FedAdam against plain FedAvg on a real Flower deployment, in pairs that alternate.

    python benchmarks/flower_pairs.py --pairs 5 --output benchmarks/flower_pairs.csv

A SuperLink and four SuperNodes, each a process, on this machine; the slowest node takes four times
as long for a batch as the quickest (it waits, so that two cores are enough). Both apps are in
`examples/flower_app_quickstart`: `plain` is FedAvg with all nodes and one epoch in every round, and
the other is `Planned(FedAdam())`; README.md says how their rates were chosen. The clock starts with
`flwr run`. It stops for FedAvg, which knows no target, with the first round at the target, and for
Planned when the command has ended. Each run has a federation of its own; which of the two is first
alternates.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from flower.deployment import Deployment, deployed  # noqa: E402 - the tests have it

SECONDS_PER_BATCH = (0.02, 0.03, 0.05, 0.08)
APPS = {
    "plain": ROOT / "examples" / "flower_app_quickstart" / "plain",
    "planned": ROOT / "examples" / "flower_app_quickstart",
}
SERVER_RATE = 0.1  # FedAdam's own by default, with which the pairs were measured
POLL_S = 0.2
_LOSS = re.compile(r"'loss': ([0-9.eE+-]+)")
_ROUND = re.compile(r"Round (\d+) with .*: loss ([0-9.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run: its seconds from the command to the target, its rounds and its last loss."""

    pair: int
    app: str
    seconds: float
    rounds: int
    loss: float
    reached: bool


def measure(app: str, pair: int, target: float, limit_s: float) -> Measured:
    """Run an app on a federation of its own until the target, or for so long at most."""
    nodes = len(SECONDS_PER_BATCH)
    with (
        TemporaryDirectory(prefix="pairs-") as folder,
        deployed(Path(folder), nodes, SECONDS_PER_BATCH) as deployment,
    ):
        config = {"target_loss": target, "server_rate": SERVER_RATE} if app == "planned" else {}
        began = time.monotonic()
        process = deployment.begin(APPS[app], nodes=nodes, **config)
        losses: list[float] = []
        while time.monotonic() - began < limit_s:
            ended = process.poll() is not None
            losses = losses_of(app, deployment)
            if ended or (app == "plain" and losses and losses[-1] <= target):
                break
            time.sleep(POLL_S)
        seconds = time.monotonic() - began
        log = deployment.said("run")
    reached = bool(losses) and losses[-1] <= target
    if app == "planned":
        reached = reached and "Training has ended (target)" in log
    if not reached:
        sys.stderr.write(log)
    last = losses[-1] if losses else float("nan")
    return Measured(
        pair=pair, app=app, seconds=seconds, rounds=len(losses), loss=last, reached=reached
    )


def losses_of(app: str, deployment: Deployment) -> list[float]:
    """The loss after each round so far, by the log."""
    log = deployment.said("run")
    if app == "planned":
        return [float(loss) for _, loss in _ROUND.findall(log)]
    lines = [line for line in log.splitlines() if "MetricRecord: " in line]
    return [float(found[1]) for line in lines if (found := _LOSS.search(line))]


def main() -> None:
    """Measure, print and write each run as it ends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--target", type=float, default=0.3)
    parser.add_argument("--limit-s", type=float, default=300.0, help="of one run")
    parser.add_argument("--output", type=Path, help="a CSV file, one row per run")
    words = parser.parse_args()
    rows: list[Measured] = []
    for pair in range(1, words.pairs + 1):
        for app in ("plain", "planned") if pair % 2 else ("planned", "plain"):
            rows.append(measure(app, pair, words.target, words.limit_s))
            print(rows[-1], flush=True)
            if words.output:
                with words.output.open("w", newline="") as file:
                    writer = csv.DictWriter(file, asdict(rows[0]))
                    writer.writeheader()
                    writer.writerows(map(asdict, rows))
    seconds = {(row.pair, row.app): row.seconds for row in rows}
    won = sum(
        row.reached and seconds[row.pair, "planned"] <= seconds[row.pair, "plain"]
        for row in rows
        if row.app == "planned"
    )
    print(f"Planned was at most as long as plain FedAvg in {won} of {words.pairs} pairs.")


if __name__ == "__main__":
    main()
