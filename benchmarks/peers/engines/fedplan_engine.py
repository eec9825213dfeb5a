"""fedplan's own simulator: one seed a core, as `Simulator.run_all` runs them.

Rounds are timed by the simulator's progress callback, which tells exactly what is inside: with
evaluation, from the record of round 0 to that of the last round, so every round is trained and
evaluated; training only, from the record of round 0 to that of the last round but one, between
which nothing is evaluated (`Evaluation(every=...)` evaluates the first and the last round alone).
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

from common import MODES, Task, Workload, report

from fedplan import uniform
from fedplan.core.records import RoundRecord, Stop
from fedplan.models import Learner, Logistic
from fedplan.simulation import Evaluation, Job, LearningRate, Simulator
from fedplan.tasks import FederatedData

NEVER = 10**9


def make_learner(model: str, data: FederatedData, batch_size: int) -> Learner:
    """The model of this workload, bound to its data."""
    if model == "logistic":
        return Logistic(data, batch_size=batch_size)
    try:
        from fedplan.models import LeNet5
    except ImportError as error:
        raise SystemExit(f"this fedplan has no LeNet-5: {error}") from None
    return LeNet5(data, batch_size=batch_size)


def start_from(learner: Any, task: Task) -> None:
    """Make the shared first weights those of the learner."""
    first = {}
    for seed in task.workload.seeds:
        first[seed] = learner.initial(seed)
        layers = learner.unpack(first[seed])
        for layer, values in zip(layers, task.initial(seed), strict=True):
            layer[:] = values
    learner.initial = lambda seed: first[seed].copy()


def measure(simulator: Simulator, workload: Workload, mode: str) -> list[dict[str, Any]]:
    """Run enough rounds of all seeds at once, and cut out the part that counts."""
    extra = 0 if mode == "evaluation" else 1  # the last round, whose loss is always measured
    rounds = max(2, workload.min_rounds[mode])
    while True:
        runs = timed(simulator, workload, rounds + extra, extra)
        slowest = min(run["rounds"] / run["seconds"] for run in runs)
        wanted = int(slowest * workload.seconds) + 1
        if rounds >= 0.9 * wanted or min(run["seconds"] for run in runs) >= workload.seconds:
            return runs
        rounds = max(wanted, workload.min_rounds[mode])


def timed(
    simulator: Simulator, workload: Workload, max_rounds: int, extra: int
) -> list[dict[str, Any]]:
    """The seconds from round 0 to round `max_rounds - extra` of every seed."""
    ends: dict[int, dict[int, float]] = {seed: {} for seed in workload.seeds}

    def note(job: Job, record: RoundRecord) -> None:
        ends[job.seed][record.round] = time.perf_counter()

    jobs = [
        Job(course=uniform(workload.clients_per_round, workload.local_steps), seed=seed)
        for seed in workload.seeds
    ]
    stop = Stop(max_rounds=max_rounds)
    records = list(simulator.run_all(jobs, stop, threads=workload.cores, progress=note))
    rounds = max_rounds - extra
    return [
        {
            "seed": record.seed,
            "rounds": rounds,
            "steps": rounds * workload.steps_per_round,
            "seconds": ends[record.seed][rounds] - ends[record.seed][0],
            "first_loss": record.losses[0],
            "losses": [loss for loss in record.losses[1:] if loss is not None],
        }
        for record in records
    ]


def main() -> None:
    """Warm up, time both modes, print the line."""
    task = Task(*sys.argv[1:])
    workload = task.workload
    data = FederatedData(x=task.x, y=task.y, starts=task.starts, num_classes=workload.num_classes)
    learner = make_learner(workload.model, data, workload.batch_size)
    if workload.model != "logistic":  # which starts from zeros, here as everywhere
        start_from(learner, task)
    rate = LearningRate(initial=workload.learning_rate)
    results = {}
    for mode in MODES:
        every = 1 if mode == "evaluation" else NEVER
        simulator = Simulator(learner, rate, evaluation=Evaluation(every=every))
        simulator.warm_up()
        results[mode] = measure(simulator, workload, mode)
    versions = {name: version(name) for name in ("fedplan", "numpy", "numba")}
    setting = f"{workload.cores} seeds at once, a thread each"
    line = report("fedplan", setting, versions, results)
    line["first_losses"] = {str(run["seed"]): run["first_loss"] for run in results["evaluation"]}
    print(json.dumps(line))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
