"""FedAvg, simulated: Algorithm 1 of the paper at the speed of the machine."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedplan.errors import InputError
from fedplan.records import RoundRecord, RunRecord, Status, Stop
from fedplan.simulation.clock import Clock
from fedplan.simulation.draws import draw_cohort
from fedplan.simulation.logistic import FloatArray, kernels, pack
from fedplan.tasks.dataset import FederatedData
from fedplan.theory.fleet import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    """The learning rate of each round, r counting from 0.

    `constant`: initial; `exponential`: initial * decay**r; `harmonic`: initial / (1 + r).

    >>> LearningRate(initial=0.1, schedule="harmonic").at(4)
    0.02
    """

    initial: float
    schedule: Literal["constant", "exponential", "harmonic"] = "constant"
    decay: float = 1.0

    def __post_init__(self) -> None:
        problems = []
        if not 0 < self.initial < math.inf:
            problems.append(f"`initial > 0 and finite` must hold, but got initial={self.initial}.")
        if not 0 < self.decay <= 1:
            problems.append(f"`0 < decay <= 1` must hold, but got decay={self.decay}.")
        if self.schedule not in ("constant", "exponential", "harmonic"):
            problems.append(
                f"schedule must be constant, exponential or harmonic, but got {self.schedule!r}."
            )
        if problems:
            raise InputError(problems)

    def at(self, r: int) -> float:
        """The rate of round r + 1."""
        if self.schedule == "exponential":
            return self.initial * self.decay**r
        return self.initial / (1 + r) if self.schedule == "harmonic" else self.initial


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to make."""

    clients_per_round: int
    local_steps: int
    seed: int


class Simulator:
    """Runs FedAvg with logistic regression on one data set; the same job gives the same run.

    >>> from fedplan.tasks import synthetic
    >>> simulator = Simulator(synthetic(1, 1, num_clients=5), LearningRate(initial=0.05))
    >>> run = simulator.run(2, 10, Stop(max_rounds=3), seed=1)
    >>> run.status, run.num_rounds, run.losses[-1] < run.losses[0]
    ('rounds', 3, True)
    """

    def __init__(
        self, data: FederatedData, learning_rate: LearningRate, fleet: Fleet | None = None
    ) -> None:
        self.num_clients = data.num_clients
        self.learning_rate = learning_rate
        self._clock = None if fleet is None else Clock(fleet, data.num_clients)
        self._data = pack(data)
        self._kernels = kernels(data.num_classes)

    def run(
        self,
        clients_per_round: int,
        local_steps: int,
        stop: Stop,
        *,
        seed: int = 0,
        progress: Callable[[RoundRecord], None] | None = None,
    ) -> RunRecord:
        """Train from zero weights until `stop` says so."""
        self._check(clients_per_round, local_steps, stop)
        rounds: list[RoundRecord] = []
        status: Status = "rounds"
        below, seconds, joules = 0, 0.0, 0.0
        for record in self._rounds(clients_per_round, local_steps, seed):
            if not math.isfinite(record.loss):
                status = "diverged"
                break
            rounds.append(record)
            if progress is not None:
                progress(record)
            below = below + 1 if self._arrived(record, stop) else 0
            seconds, joules = seconds + record.seconds, joules + record.joules
            if below >= stop.patience:
                status = "target"
            elif seconds > stop.max_time_s:
                status = "time"
            elif joules > stop.max_energy_j:
                status = "energy"
            elif record.round < stop.max_rounds:
                continue
            break
        return RunRecord(
            clients_per_round=clients_per_round,
            local_steps=local_steps,
            seed=seed,
            status=status,
            rounds=tuple(rounds),
        )

    def run_all(
        self, jobs: Iterable[Job], stop: Stop, *, threads: int | None = None
    ) -> Iterator[RunRecord]:
        """Make many runs, one thread each, in the order of the jobs."""

        def make(job: Job) -> RunRecord:
            return self.run(job.clients_per_round, job.local_steps, stop, seed=job.seed)

        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            yield from pool.map(make, jobs)

    @staticmethod
    def _arrived(record: RoundRecord, stop: Stop) -> bool:
        return stop.target_loss is not None and record.loss <= stop.target_loss

    def _rounds(self, clients_per_round: int, steps: int, seed: int) -> Iterator[RoundRecord]:
        data, kernel = self._data, self._kernels
        weights = np.zeros(data.num_classes * data.width, dtype=np.float32)
        loss, accuracy = self._evaluate(weights)
        yield RoundRecord(round=0, loss=loss, accuracy=accuracy, cohort=(), seconds=0.0, joules=0.0)
        round_ = 0
        while True:
            round_ += 1
            cohort = draw_cohort(seed, round_, self.num_clients, clients_per_round)
            rate = self.learning_rate.at(round_ - 1)
            kernel.train_round(
                weights, data.rows, data.labels, data.starts, cohort, steps, rate, seed, round_,
                data.used, data.width,
            )  # fmt: skip
            loss, accuracy = self._evaluate(weights)
            clients = tuple(cohort.tolist())
            seconds, joules = self._clock.round_cost(clients, steps) if self._clock else (0.0, 0.0)
            yield RoundRecord(
                round=round_, loss=loss, accuracy=accuracy, cohort=clients, seconds=seconds,
                joules=joules,
            )  # fmt: skip

    def _evaluate(self, weights: FloatArray) -> tuple[float, float]:
        data = self._data
        if not np.isfinite(weights).all():
            return math.nan, math.nan
        return self._kernels.evaluate(weights, data.columns, data.labels, data.used, data.width)

    def _check(self, clients_per_round: int, local_steps: int, stop: Stop) -> None:
        problems = []
        if not 1 <= clients_per_round <= self.num_clients:
            problems.append(
                "`1 <= clients_per_round <= num_clients` must hold, but got clients_per_round="
                f"{clients_per_round}, num_clients={self.num_clients}."
            )
        if local_steps < 1:
            problems.append(f"`local_steps >= 1` must hold, but got local_steps={local_steps}.")
        if stop.max_rounds < 1:
            problems.append(f"`max_rounds >= 1` must hold, but got max_rounds={stop.max_rounds}.")
        if problems:
            raise InputError(problems)
