"""The suite: tasks of different kinds, what the best fixed K and E cost, and how courses do.

    python reproduction/suite.py grid
    python reproduction/suite.py grid --tasks short two-labels --threads 2
    python reproduction/suite.py grid --tasks short --quick --results quick
    python reproduction/suite.py best --tasks short
    python reproduction/suite.py compare --tasks short --courses online fedtune --seeds 1
    python reproduction/suite.py setups
    python reproduction/suite.py constants
    python reproduction/suite.py forecasts
    python reproduction/suite.py hopeless
    python reproduction/suite.py report

`grid` trains every uniform (K, E) of a task with every seed; each run is one row of a file in
reproduction/results, and the same command later goes on where it stopped. `best` prints, from these
rows, the setting that costs least on each fleet and at each energy weight: chosen on even seeds,
priced on odd ones. `compare` trains courses on every fleet, at every weight, with seeds of their
own (101 and on), a row for each run. `setups` trains the grids of the paper's setups that are
missing, and the online course on them. `constants` halves and doubles each constant of the online
course on the development half, and writes what that does to its mean bill. `forecasts` trains the
online course once on every cell, and writes how many rounds it was predicted to take on the way.
`hopeless` asks the online course for what cannot be reached, and writes how soon it gives up.
`report` prints from these rows what courses cost over the best setting, puts the tables into the
page and draws them.
--data is a folder with wisdm/wisdm.npz (arrays x, y and client) and hospitals/compute.csv and
network.csv; MNIST is the part of it that comes with fedplan.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from suite.constants import FLEETS, constants_table, measure
from suite.courses import CANDIDATES, FIRST_SEED, ONLINE, Comparison
from suite.forecasts import forecasts_table
from suite.forecasts import measure as measure_forecasts
from suite.hopeless import hopeless_table
from suite.hopeless import measure as measure_hopeless
from suite.pricing import Pricing, train_uniform
from suite.report import print_best
from suite.standing import draw, read_standings, setup_tables, tables, write_between
from suite.tasks import SETUPS, TASKS
from suite.trainings import Trainings

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
COMMANDS = ("grid", "best", "compare", "setups", "constants", "forecasts", "hopeless", "report")
EVERY = TASKS | SETUPS
SUITE = [name for name, task in TASKS.items() if task.half]


def read_options() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--tasks", nargs="*", choices=[*SUITE, *SETUPS], metavar="task",
                        help=f"of {', '.join(SUITE)}; of setups: {', '.join(SETUPS)} "
                             "(default: all)")  # fmt: skip
    names = ", ".join(CANDIDATES).replace("%", "%%")
    parser.add_argument("--courses", nargs="*", choices=CANDIDATES, default=list(CANDIDATES),
                        metavar="course", help=f"of {names} (default: all)")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=5, help="of courses (default: 5)")
    parser.add_argument("--quick", action="store_true", help="a small part of each task")
    parser.add_argument("--threads", type=int, default=1, help="runs at a time (default: 1)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder")
    parser.add_argument("--page", type=Path, default=HERE / "suite.md",
                        help="that `report` writes to (default: %(default)s)")  # fmt: skip
    options = parser.parse_args()
    options.tasks = options.tasks or list(SETUPS if options.command == "setups" else SUITE)
    return options


def main() -> None:
    """Train grids or courses, or say what came of them."""
    options = read_options()
    options.results.mkdir(exist_ok=True, parents=True)
    if options.command == "report":
        report(options)
        return
    if options.command == "constants":
        measure_constants(options)
        return
    trained = []
    for name in options.tasks:
        task = EVERY[name].quick() if options.quick else EVERY[name]
        trained.append(Trainings(task, options.data, options.results, options.threads))
        train_uniform(trained[-1])
        if options.command in ("compare", "setups"):
            comparison = Comparison(trained[-1], options.data, options.results, options.threads)
            courses = [ONLINE] if options.command == "setups" else options.courses
            comparison.make(courses, range(FIRST_SEED, FIRST_SEED + options.seeds))
        print(f"{name}: done", file=sys.stderr)
    if options.command == "best":
        print_best(trained, options.data)
    if options.command == "forecasts":
        measure_forecasts(trained, options.data, options.results / "suite-forecasts.csv")
    if options.command == "hopeless":
        measure_hopeless(trained, options.data, options.results / "suite-hopeless.csv")


def measure_constants(options: argparse.Namespace) -> None:
    """What each constant does, on the development half, in a file of its own."""
    pricings = []
    for name in options.tasks:
        if EVERY[name].half == "development":
            trainings = Trainings(EVERY[name], options.data, options.results, options.threads)
            pricings += [Pricing(trainings, fleet, options.data) for fleet in FLEETS]
    measure(pricings, options.results / "suite-constants.csv")


def report(options: argparse.Namespace) -> None:
    """Tables on the screen and on the page, and the figure."""
    results, page = options.results, options.page
    standings = read_standings(results, options.tasks)
    if not standings:
        raise SystemExit("no course has been trained: python reproduction/suite.py compare")
    texts = {"courses": tables(standings)}
    if of_setups := read_standings(results, SETUPS):
        texts["setups"] = setup_tables(of_setups)
    if (measured := results / "suite-constants.csv").exists():
        texts["constants"] = constants_table(measured)
    if (predicted := results / "suite-forecasts.csv").exists():
        texts["forecasts"] = forecasts_table(predicted)
    if (given_up := results / "suite-hopeless.csv").exists():
        texts["hopeless"] = hopeless_table(given_up)
    for mark, text in texts.items():
        print(text)
        write_between(page, mark, text)
    draw(standings, results / "suite.png")


if __name__ == "__main__":
    main()
