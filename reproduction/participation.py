"""Groups that take turns, measured: what training by turns costs, beside the best K at random.

    python reproduction/participation.py
    python reproduction/participation.py --tasks wisdm setup3 --threads 2
    python reproduction/participation.py --tasks wisdm --quick --results quick
    python reproduction/participation.py --constants --tasks wisdm
    python reproduction/participation.py --later --tasks wisdm
    python reproduction/participation.py --after --tasks wisdm

For every task, an exhaustive grid of (K, E) is trained once and priced on every fleet; turns are
trained for every fleet and energy weight, with the groups that fedplan's formula chooses. Settings
are chosen on even seeds and priced on odd ones. Every run is a row of a file in
reproduction/results, so the same command later goes on where it stopped; cells, fits and the page's
figure follow from the rows. --data is a folder with wisdm/wisdm.npz (arrays x, y and client) and
hospitals/compute.csv and network.csv; MNIST is the part of it that comes with fedplan.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from participation.after import after
from participation.cells import fit, make_cells
from participation.constants import matters
from participation.later import later
from participation.report import draw, print_summary
from suite.rows import read_rows
from suite.tasks import TASKS
from suite.trainings import Trainings

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
LEFT_OUT = ("power-law-step", "long", "torch-mlp")  # not measured by turns alone yet


def write_rows(path: Path, task: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Put the rows of one task into a file, in place of those it had of the task."""
    others = [row for row in read_rows(path) if row["task"] != task]
    places = {name: place for place, name in enumerate(TASKS)}
    every = sorted([*others, *rows], key=lambda row: places.get(str(row["task"]), len(places)))
    with path.open("w", encoding="utf-8", newline="") as file:
        columns = list(dict.fromkeys(name for row in every for name in row))
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)


def main() -> None:
    """Train what is missing, and say what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    measured = [name for name in TASKS if name not in LEFT_OUT]
    names, left_out = ", ".join(TASKS), ", ".join(LEFT_OUT)
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=measured, metavar="task",
                        help=f"of {names} (default: all but {left_out})")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a small part of each task")
    parser.add_argument("--constants", action="store_true",
                        help="by how much each constant matters, halved and doubled")  # fmt: skip
    parser.add_argument("--later", action="store_true",
                        help="losses 200 rounds after the target, beside all clients'")  # fmt: skip
    parser.add_argument("--after", action="store_true",
                        help="whether models stay at the target once they are there")  # fmt: skip
    parser.add_argument("--threads", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder")
    options = parser.parse_args()
    options.results.mkdir(exist_ok=True, parents=True)
    for name in options.tasks:
        task = TASKS[name].quick() if options.quick else TASKS[name]
        trainings = Trainings(task, options.data, options.results, options.threads)
        if options.constants:
            write_rows(options.results / "participation-constants.csv", name,
                       matters(trainings, options.data))  # fmt: skip
        elif options.after:
            write_rows(options.results / "participation-after.csv", name,
                       after(trainings, options.data, options.results))  # fmt: skip
        elif options.later:
            write_rows(options.results / "participation-later.csv", name,
                       later(trainings, options.data, options.results))  # fmt: skip
        else:
            cells = list(make_cells(trainings, options.data))
            rows = [cell.row for cell in cells]
            write_rows(options.results / "participation-cells.csv", name, rows)
            write_rows(options.results / "participation-fits.csv", name, [fit(trainings)])
        print(f"{name}: done", file=sys.stderr)
    print_summary(options.results)
    draw(options.results, options.results / "participation.png")


if __name__ == "__main__":
    main()
