"""What every engine shares: the workload it reads, the clock it is timed with, the line it prints.

Stands on the standard library and NumPy alone, for every engine runs in its peer's environment.

An engine is called as `python <engine>.py DATA.npz WORKLOAD.json`. It starts as many worker
processes as suits it best, waits until all have warmed up (imports, compilation and the first use
of every shape are over), lets them go at the same moment, and prints one line of JSON. A worker's
speed is its local steps over its own seconds, from the moment of go to the end of a whole round;
the speeds of workers that ran at the same time add up.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

ONE, A_CORE = "one worker", "a worker a core"
MODES = ("training", "evaluation")
MARK = "@peer "  # starts the lines a worker writes to its parent; anything else is the peer's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What to run: K of N clients, E steps, a fresh uniform batch of min(64, n_k) each.

    seconds : a timing ends with the first round that ends after so many seconds;
    min_rounds : but not before so many rounds, for each of the two modes;
    workers : ONE worker that uses all cores, or one A_CORE;
    lean : whether to shave off what an app would have, where an engine has both.
    """

    name: str
    model: str
    num_classes: int
    clients_per_round: int
    local_steps: int
    batch_size: int
    learning_rate: float
    seeds: Sequence[int]
    cores: int
    seconds: float
    min_rounds: dict[str, int]
    workers: str
    lean: bool

    @property
    def steps_per_round(self) -> int:
        """Local steps of all clients of a round."""
        return self.clients_per_round * self.local_steps


class Task:
    """The data, which client holds what, who is drawn in which round, and the first weights."""

    def __init__(self, data: str, workload: str) -> None:
        self.workload = Workload(**json.loads(Path(workload).read_text()))
        with np.load(data) as arrays:
            self.x: NDArray[np.float32] = arrays["x"]
            self.y: NDArray[np.int64] = arrays["y"]
            self.starts: NDArray[np.int64] = arrays["starts"]
            self._cohorts: NDArray[np.int64] = arrays["cohorts"]  # (seeds, rounds, K)
            self._initial = {
                seed: [arrays[name] for name in sorted(arrays) if name.startswith(f"w{seed}_")]
                for seed in self.workload.seeds
            }
        self.sizes = np.diff(self.starts)
        self.batches = np.minimum(self.sizes, self.workload.batch_size)

    def cohort(self, seed: int, round_: int) -> list[int]:
        """The clients of a round, counted from 1; the same for every engine."""
        cohorts = self._cohorts[self.workload.seeds.index(seed)]
        clients: list[int] = cohorts[(round_ - 1) % len(cohorts)].tolist()
        return clients

    def initial(self, seed: int) -> list[NDArray[np.float32]]:
        """Weights and biases by layer; dense ones (outputs, inputs), OIHW for convolutions."""
        return [array.copy() for array in self._initial[seed]]


class Engine(Protocol):
    """One federation on one share of the cores."""

    def warm_up(self) -> None:
        """Compile, load and touch whatever the first timed round would otherwise wait for."""
        ...

    def run(self, seed: int, after_round: Callable[[], bool]) -> None:
        """Train from the first weights, calling `after_round` after every round until it is True.

        The round must be over by then: nothing may be left to run in the background.
        """
        ...

    def evaluate(self) -> float:
        """Mean loss of the present weights over all training samples."""
        ...


def measure(engine: Engine, workload: Workload, seed: int, mode: str) -> dict[str, Any]:
    """Time rounds, with or without the loss after each."""
    losses: list[float] = []
    rounds = 0

    def after_round() -> bool:
        nonlocal rounds
        rounds += 1
        if mode == "evaluation":
            losses.append(engine.evaluate())
        enough = time.perf_counter() - start >= workload.seconds
        return enough and rounds >= workload.min_rounds[mode]

    start = time.perf_counter()
    engine.run(seed, after_round)
    seconds = time.perf_counter() - start
    steps = rounds * workload.steps_per_round
    return {"seed": seed, "rounds": rounds, "steps": steps, "seconds": seconds, "losses": losses}


def work(engine: Engine, task: Task, seed: int) -> None:
    """A worker's life: warm up, then every mode in turn, each at the parent's go."""
    engine.warm_up()
    for mode in MODES:
        tell("ready")
        if sys.stdin.readline().strip() != "go":
            raise SystemExit("the parent process has gone")
        tell(measure(engine, task.workload, seed, mode))


def tell(message: object) -> None:
    """Write a line to the parent."""
    print(MARK + json.dumps(message), flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A worker's place: its number, how many there are, and the cores each has to itself."""

    number: int
    workers: int
    cores: int


def main(
    name: str,
    packages: Sequence[str],
    settings: Mapping[str, str],
    run_worker: Callable[[Task, int, Share], None],
) -> None:
    """The engine's command line: the parent starts itself again, once a worker.

    settings : what it means for this engine to have ONE worker, or one A_CORE.
    run_worker : called in a worker with the task, its seed and its share of the cores.
    """
    data, workload, *rest = sys.argv[1:]
    task = Task(data, workload)
    cores = task.workload.cores
    if rest:
        number, count = map(int, rest)
        share = Share(number=number, workers=count, cores=cores // count)
        run_worker(task, task.workload.seeds[number], share)
        return
    versions = {package: version(package) for package in packages}
    workers = task.workload.workers
    results = _run_workers([data, workload], cores if workers == A_CORE else 1)
    print(json.dumps(report(name, settings[workers], versions, results)))


def _run_workers(paths: list[str], count: int) -> dict[str, list[dict[str, Any]]]:
    workers = [
        subprocess.Popen(
            [sys.executable, sys.argv[0], *paths, str(number), str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(count)
    ]  # fmt: skip
    try:
        results = {mode: _all_at_once(workers) for mode in MODES}
        for worker in workers:
            worker.communicate()
    finally:
        for worker in workers:
            worker.kill()
    return results


def _all_at_once(workers: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    for worker in workers:
        heard = _hear(worker)
        assert heard == "ready", heard
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [_hear(worker) for worker in workers]


def _hear(worker: subprocess.Popen[str]) -> Any:
    assert worker.stdout is not None
    for line in worker.stdout:
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
        print(line, end="", file=sys.stderr)
    raise SystemExit(f"a worker ended early, with exit code {worker.wait()}")


def report(
    name: str, setting: str, versions: dict[str, str], results: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """What an engine prints: speeds of each mode, and the losses by seed."""
    return {
        "engine": name,
        "setting": setting,
        "versions": {"python": platform.python_version(), **versions},
        "load_average": os.getloadavg()[0],
        "modes": {
            mode: {
                "steps_per_s": sum(run["steps"] / run["seconds"] for run in runs),
                "rounds": [run["rounds"] for run in runs],
                "seconds": [run["seconds"] for run in runs],
            }
            for mode, runs in results.items()
        },
        "losses": {str(run["seed"]): run["losses"] for run in results["evaluation"]},
    }
