"""The suite: tasks of different kinds, and what the best fixed K and E cost on each.

    python reproduction/suite.py grid
    python reproduction/suite.py grid --tasks short two-labels --threads 2
    python reproduction/suite.py grid --tasks short --quick --results quick
    python reproduction/suite.py best --tasks short

`grid` trains every uniform (K, E) of a task with every seed; each run is one row of a file in
reproduction/results, and the same command later goes on where it stopped. `best` prints, from these
rows, the setting that costs least on each fleet and at each energy weight: chosen on even seeds,
priced on odd ones. --data is a folder with wisdm/wisdm.npz (arrays x, y and client) and
hospitals/compute.csv and network.csv; MNIST is the part of it that comes with fedplan.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from suite.pricing import train_uniform
from suite.report import print_best
from suite.tasks import TASKS
from suite.trainings import Trainings

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"


def main() -> None:
    """Train the grids, or say what came of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("grid", "best"))
    suite = [name for name, task in TASKS.items() if task.half]
    parser.add_argument("--tasks", nargs="*", choices=suite, default=suite, metavar="task",
                        help=f"of {', '.join(suite)} (default: all)")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a small part of each task")
    parser.add_argument("--threads", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder")
    options = parser.parse_args()
    options.results.mkdir(exist_ok=True, parents=True)
    trained = []
    for name in options.tasks:
        task = TASKS[name].quick() if options.quick else TASKS[name]
        trained.append(Trainings(task, options.data, options.results, options.threads))
        train_uniform(trained[-1])
        print(f"{name}: done", file=sys.stderr)
    if options.command == "best":
        print_best(trained, options.data)


if __name__ == "__main__":
    main()
