"""How fast the simulator is by turns against uniform sampling; run with `make benchmark`.

Both train Setup 3's logistic regression, with the loss measured after every round, and make as many
local steps in all: K is the mean size of the groups. The two alternate, so that what else the
machine does hits both, and the median of the ratios is printed for each number of groups.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from fedplan import uniform
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.simulation import Simulator
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment, build_setting

LOCAL_STEPS = 30
GROUPS = (5, 10, 33)


def steps_per_second(simulator: Simulator, setting: Setting, rounds: int) -> float:
    """Local steps of all clients a second, evaluation included."""
    start = time.perf_counter()
    run = simulator.run(setting, Stop(max_rounds=rounds))
    return run.taken_part * run.local_steps / (time.perf_counter() - start)


def main() -> None:
    """Time both ways to train, one after the other, and print a row for each number of groups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=400)
    given = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    experiment = build_experiment(read_study("setup3", ["participation=turns"]))
    simulator = experiment.simulator
    simulator.warm_up()
    print(f"{'groups':>8} {'K':>4} {'turns/s':>12} {'uniform/s':>12} {'ratio':>7}  range of ratios")
    for groups in GROUPS:
        turns = build_setting(experiment, groups, LOCAL_STEPS)
        cycles = max(1, given.rounds // turns.participation.cycle)
        rounds = cycles * turns.participation.cycle
        taken_part = simulator.run(turns, Stop(max_rounds=rounds)).taken_part
        clients = round(taken_part / rounds)
        pairs = [
            (
                steps_per_second(simulator, turns, rounds),
                steps_per_second(
                    simulator, uniform(clients, LOCAL_STEPS), round(taken_part / clients)
                ),
            )
            for _ in range(given.repeats)
        ]
        ratios = [one / other for one, other in pairs]
        medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
        print(
            f"{turns.groups:>8} {clients:>4} {medians[0]:>12,.0f} {medians[1]:>12,.0f} "
            f"{statistics.median(ratios):>7.3f}  {min(ratios):.3f} to {max(ratios):.3f}"
        )


if __name__ == "__main__":
    main()
