"""How plans scale from 100 to 1,000,000 devices; run with `make benchmark`.

Prints, for each fleet size, the median and worst seconds of `make_plan(method="exact")`, and of
plans by turns, over several problems, how that grows against N log N, and the peak memory of the
process; then the seconds of `fedplan plan` on a CSV of a million devices, reading included.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fedplan import (
    Bound,
    Constraints,
    Fleet,
    Objective,
    Problem,
    draw_fleet,
    make_plan,
    write_fleet,
)
from fedplan.convergence.saturation import Saturation
from fedplan.planning.turns import plan_turns

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
REPEATS = 3


def fleet_of(num_clients: int, law: str) -> Fleet:
    """A fleet with the means of the paper's Setup 3; lognormal has the heavier tail."""
    spread = 1.0 if law == "lognormal" else 1 / 3
    return draw_fleet(
        num_clients,
        step_time_s=(0.1, 0.1 * spread),
        comm_time_s=(2.0, 2.0 * spread),
        step_energy_j=(1e-3, 1e-3 * spread),
        comm_energy_j=(2e-2, 2e-2 * spread),
        law="lognormal" if law == "lognormal" else "normal",
        seed=7,
    )


def problems(fleet: Fleet) -> dict[str, float]:
    """Seconds of each problem on this fleet, best of the repeats; every plan must be certified."""
    cases = {
        "time only, measured K term": (Bound(a0=3750, b0=1, c0=26), 0.0, None),
        "balanced, the paper's bound": (Bound(a0=3750, b0=1), 0.3, None),
        "time only, strong K term": (Bound(a0=3750, b0=1, c0=2000), 0.0, None),
        "balanced, deadline": (
            Bound(a0=3750, b0=1, c0=26),
            0.5,
            Constraints(deadline_s=2500, max_clients_per_round=len(fleet) // 2),
        ),
    }
    seconds = {}
    for name, (bound, weight, constraints) in cases.items():
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            plan = make_plan(_problem(fleet, weight, constraints), bound, method="exact")
            times.append(time.perf_counter() - start)
        assert plan.status == "infeasible" or (plan.certificate and plan.certificate.gap == 0)
        seconds[name] = min(times)
    return seconds


def plans_by_turns(fleet: Fleet) -> dict[str, float]:
    """Seconds of grouping the devices and choosing the local steps, best of the repeats."""
    seconds = {}
    for weight in (0.0, 0.5, 1.0):
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            plan_turns(_problem(fleet, weight, None), Saturation())
            times.append(time.perf_counter() - start)
        seconds[f"turns, energy weight {weight:g}"] = min(times)
    return seconds


def _problem(fleet: Fleet, weight: float, constraints: Constraints | None) -> Problem:
    limits = constraints or Constraints()
    return Problem(fleet=fleet, objective=Objective.weighted(weight), limits=limits)


def measure(num_clients: int, cases: Callable[[Fleet], dict[str, float]]) -> None:
    """Child process: time the problems of one size and print them with the peak memory."""
    for law in ("normal", "lognormal"):
        fleet = fleet_of(num_clients, law)
        for name, seconds in (cases(fleet)).items():
            print(f"{seconds:.6f}\t{law}, {name}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}\tpeak")


def csv_seconds() -> float:
    """Seconds of `fedplan plan` on a million-row CSV, process start and reading included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.csv"
        write_fleet(path, fleet_of(1_000_000, "lognormal"))
        command = [sys.executable, "-m", "fedplan.cli", "plan", "--fleet", str(path)]
        command += ["--bound", "a0=3750,b0=1,c0=26", "--target-gap", "1", "--format", "json"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def main() -> None:
    """Measure every size in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--turns", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.size is not None:
        measure(given.size, plans_by_turns if given.turns else problems)
        return
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    for title, flags in (("certified (K, E)", []), ("groups that take turns", ["--turns"])):
        _table(title, flags)
    print(f"fedplan plan on a million-row CSV, end to end: {csv_seconds():.2f} s")


def _table(title: str, flags: list[str]) -> None:
    print(title)
    print(f"{'devices':>10} {'median s':>10} {'worst s':>10} {'s / N log2 N':>13} {'peak MB':>8}")
    for num_clients in SIZES:
        child = subprocess.run(
            [sys.executable, __file__, "--size", str(num_clients), *flags],
            check=True,
            capture_output=True,
            text=True,
        )
        *lines, peak = (line.split("\t") for line in child.stdout.splitlines())
        times = [float(seconds) for seconds, _ in lines]
        worst = max(times)
        growth = worst / (num_clients * math.log2(num_clients))
        print(
            f"{num_clients:>10,} {statistics.median(times):>10.4f} {worst:>10.4f} "
            f"{growth:>13.2e} {float(peak[0]) / 1e6:>8.0f}  slowest: {lines[times.index(worst)][1]}"
        )


if __name__ == "__main__":
    main()
