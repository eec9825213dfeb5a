"""How fast the simulator steps, against what the machine's arithmetic allows.

Prints local SGD steps a second with the global loss evaluated after every round, and the share of
the measured sgemm peak that training and evaluation together reach. Compilation is left out.
"""

from __future__ import annotations

import os
import time

import numpy as np

from fedplan.models import Logistic
from fedplan.records import Stop
from fedplan.simulation import Job, LearningRate, Simulator
from fedplan.tasks import FederatedData, federate, mnist_mini, synthetic, two_labels_balanced

SEEDS = 8


def sgemm_peak(seconds: float = 1.0) -> float:
    """Operations a second of single-precision matrix products on all cores."""
    a = np.random.default_rng(0).normal(size=(2048, 2048)).astype(np.float32)
    a @ a
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        a @ a
        done += 1
    return done * 2 * 2048**3 / (time.perf_counter() - start)


def measure(
    name: str, data: FederatedData, clients: int, steps: int, rounds: int, peak: float
) -> None:
    """Run the workload on all cores and print what it reached."""
    simulator = Simulator(Logistic(data), LearningRate(initial=0.01))
    simulator.warm_up()
    jobs = [Job(clients_per_round=clients, local_steps=steps, seed=s) for s in range(SEEDS)]
    start = time.perf_counter()
    list(simulator.run_all(jobs, Stop(max_rounds=rounds)))
    taken = time.perf_counter() - start
    total = SEEDS * rounds * clients * steps
    product = 2 * (data.num_features + 1) * data.num_classes  # of one sample with the weights
    work = total * 2 * 64 * product + SEEDS * (rounds + 1) * data.num_samples * product
    print(f"{name:<28} {total / taken:>10,.0f} steps/s  {work / taken / peak:>6.1%} of sgemm peak")


def main() -> None:
    """Measure the workloads with compiled models."""
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    peak = sgemm_peak()
    print(f"sgemm peak: {peak / 1e9:.0f} GFLOP/s")
    measure("logistic-60, K=20, E=40", synthetic(1, 1, seed=2130), 20, 40, 100, peak)
    digits = mnist_mini()
    data = federate(digits.x, digits.y, two_labels_balanced(digits.y, 20, 300))
    measure("logistic-784, K=20, E=100", data, 20, 100, 10, peak)


if __name__ == "__main__":
    main()
