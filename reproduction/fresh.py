"""Fresh tasks: what the online course costs where nothing was chosen, over the best fixed pair.

    python reproduction/fresh.py                     # what is missing, and the tables: hours
    python reproduction/fresh.py --tasks digits-iid-constant --seeds 1 --results quick

Each study in reproduction/fresh is compared by `fedplan compare` on two fleets at three energy
weights: the online course with the cheapest pair, of the grid that `fedplan sweep` tries and K=10,
E=20. That pair is chosen by the very seeds that price it, so the ratios are a little too high
rather than too low. Every cell is one row of results/fresh.csv; the store keeps every training.
`wisdm-harmonic` needs shared/data/wisdm/wisdm.npz beside the repository.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from suite.rows import Row, append_row, read_rows, table
from suite.standing import write_between

HERE = Path(__file__).parent
STUDIES = {path.stem: path for path in sorted((HERE / "fresh").glob("*.toml"))}
# These were looked at while the course was made, and some of them changed it.
SEEN = {
    "digits-dirichlet-01-step", "digits-dirichlet-02-exponential-150", "digits-iid-constant",
    "digits-iid-step", "digits-power-law-exponential", "digits-shards-cosine-120",
    "digits-shards-harmonic", "digits-shards-step-200", "synthetic-0-constant",
    "synthetic-05-cosine", "synthetic-05-step-150", "synthetic-1-exponential-100",
    "synthetic-1-harmonic-200", "synthetic-1-step-200", "synthetic-2-1-list",
}  # fmt: skip
FLEETS = {  # what takes the place of the studies' own keys
    "normal": (),
    "lognormal": (
        "distribution=lognormal", "fleet-seed=8",
        "step-time-s=0.2", "step-time-sd-s=0.2", "comm-time-s=2.0", "comm-time-sd-s=2.0",
        "step-energy-j=0.002", "step-energy-sd-j=0.002",
        "comm-energy-j=0.05", "comm-energy-sd-j=0.05",
    ),
}  # fmt: skip
WEIGHTS = ("0", "0.5", "1")
COURSES = ("online", "best-fixed", "K=10,E=20")
COLUMNS = ("task", "fleet", "weight", "seeds", "reached", "rounds", "cost", "best", "best_cost")


def measure(tasks: Sequence[str], seeds: int, path: Path) -> None:
    """Train what is missing of these tasks: a row for each fleet and weight."""
    done = {(row["task"], row["fleet"], row["weight"]) for row in read_rows(path)}
    for task in tasks:
        for fleet, overrides in FLEETS.items():
            for weight in WEIGHTS:
                if (task, fleet, weight) not in done:
                    words = (str(STUDIES[task]), f"energy-weight={weight}", *overrides)
                    append_row(path, COLUMNS, (task, fleet, weight, seeds, *_compare(words, seeds)))
                    print(f"{task}, {fleet}, {weight}: done", file=sys.stderr)


def _compare(words: Sequence[str], seeds: int) -> list[object]:
    courses = [word for course in COURSES for word in ("--course", course)]
    command = [sys.executable, "-m", "fedplan.cli", "compare", *words, *courses]
    command += ["--seeds", str(seeds), "--format", "json", "-q"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    online, *pairs = answer["courses"]
    arrived = [pair for pair in pairs if pair["reached"] == pair["seeds"]]
    best = min(arrived, key=lambda pair: pair["cost"])
    name = best["course"].removeprefix("best-fixed (").rstrip(")")
    return [online["reached"], online["rounds"], online["cost"], name, best["cost"]]


def tables(rows: Sequence[Row]) -> str:
    """The ratios over all cells, and task by task."""
    parts = {
        "fresh tasks": [row for row in rows if row["task"] not in SEEN],
        "tasks looked at before": [row for row in rows if row["task"] in SEEN],
    }
    heads = ("", "cells", "mean", "90% of cells", "worst", "runs that never arrive")
    lines = [(name, *_summary(own)) for name, own in parts.items() if own]
    found = []
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        ratios = [f"{_ratio(row):.2f} ({row['best']})" for row in own]
        found.append((task, *ratios))
    cells = [f"{fleet}, {weight}" for fleet in FLEETS for weight in WEIGHTS]
    return f"{table(heads, lines)}\n\n{table(('task', *cells), found)}"


def _summary(rows: Sequence[Row]) -> tuple[str, ...]:
    ratios = [_ratio(row) for row in rows]
    lost = sum(int(row["seeds"]) - int(row["reached"]) for row in rows)
    numbers = (np.mean(ratios), np.quantile(ratios, 0.9), max(ratios))
    total = sum(int(row["seeds"]) for row in rows)
    return str(len(rows)), *(f"{number:.2f}" for number in numbers), f"{lost} of {total}"


def _ratio(row: Row) -> float:
    return float(row["cost"]) / float(row["best_cost"])


def main() -> None:
    """Train what is missing, and put the tables into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="*", choices=STUDIES, default=list(STUDIES),
                        metavar="task", help="of reproduction/fresh (default: all)")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=4, help="of every course (default: 4)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder")
    options = parser.parse_args()
    options.results.mkdir(exist_ok=True, parents=True)
    path = options.results / "fresh.csv"
    measure(options.tasks, options.seeds, path)
    text = tables(read_rows(path))
    print(text)
    if options.results == HERE / "results":
        write_between(HERE / "fresh.md", "fresh", text)


if __name__ == "__main__":
    main()
