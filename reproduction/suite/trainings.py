"""Trainings of one task, kept as rows of a small file: those that are there are not made again."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from threading import Lock

import numpy as np

from fedplan import Fleet, uniform
from fedplan.core.fleet import FloatArray
from fedplan.core.records import RoundRecord, Stop
from fedplan.core.setting import Setting
from fedplan.models import Learner
from fedplan.participation.draws import present
from fedplan.simulation import Clock, Evaluation, Simulator
from suite.rows import append_row, read_rows
from suite.task import Task

SWEEPS = Path(__file__).parents[1] / "results"
NEVER = 0  # rounds, in a file: not within the rounds allowed
SMOOTH = 10  # rounds whose single models' losses are averaged
LONGEST, AT_LEAST = 4, 150  # a run ends after so many times the rounds of all clients, or so many
COLUMNS = ("law", "groups", "cycle", "local_steps", "seed", "rounds", "smooth_rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """When a run arrived: by the judged model, and by the mean of ten single models' losses."""

    rounds: int
    smooth_rounds: int


Key = tuple[str, int, int]  # law, local steps, seed
Work = tuple[Setting, int]  # setting, seed


class _EnoughError(Exception):
    """A run has shown what it was made for."""


def law_name(setting: Setting) -> str:
    """K, or a digest of who trains when, by which a training is found again."""
    if setting.clients_per_round is not None:
        return str(setting.clients_per_round)
    written = setting.to_dict() | {"averaged": setting.participation.averaged}
    del written["local_steps"]  # which stands beside it
    return "turns-" + hashlib.sha256(json.dumps(written).encode()).hexdigest()[:10]


class Trainings:
    """Makes and finds runs of one task."""

    def __init__(self, task: Task, data: Path, results: Path, threads: int) -> None:
        self.task, self._data, self._threads = task, data, threads
        self._path = results / f"suite-runs-{task.runs or task.name}.csv"
        self._lock = Lock()
        self._done: dict[Key, Reached] = {}
        if task.grid:
            self._read(SWEEPS / f"grid-{task.grid}.csv")
        self._read(self._path)

    def _read(self, path: Path) -> None:
        """The runs of a file, of trainings or of `fedplan sweep`."""
        for row in read_rows(path):
            law = row.get("law") or row["clients_per_round"]
            self._done[law, int(row["local_steps"]), int(row["seed"])] = Reached(
                rounds=int(row["rounds"]), smooth_rounds=int(row.get("smooth_rounds", NEVER))
            )

    @cached_property
    def learner(self) -> Learner:
        """The model and its data."""
        return self.task.make(self._data)

    @cached_property
    def simulator(self) -> Simulator:
        """What trains."""
        made = Simulator(
            self.learner, self.task.rate, evaluation=self.evaluation, dropout=self.task.dropout,
        )  # fmt: skip
        made.warm_up()
        return made

    @property
    def evaluation(self) -> Evaluation:
        """How losses are measured."""
        return Evaluation(both=True, subset=self.task.subset)

    @cached_property
    def samples(self) -> FloatArray:
        """How many samples each client holds."""
        return self.learner.sizes.astype(np.float64)

    def full_rounds(self, steps: int, seeds: Iterable[int] | None = None) -> float:
        """R_N(E): rounds with all clients, the mean over their seeds; infinite where some fail.

        seeds : only these, of those that all clients are trained with.
        """
        clients = self.task.clients[-1]
        of = self.task.seeds_of(clients)
        counted = of if seeds is None else [seed for seed in of if seed in set(seeds)]
        work = [(uniform(clients, steps), seed) for seed in counted]
        rounds = [run.rounds for run in self.make(work)]
        return float("inf") if NEVER in rounds else fmean(rounds)

    def make(self, work: Iterable[Work]) -> list[Reached]:
        """The runs of these settings and seeds; those that are missing are trained, and kept."""
        wanted = list(work)
        missing = {_key(*one): one for one in wanted if _key(*one) not in self._done}
        start, count = time.perf_counter(), 0
        with ThreadPoolExecutor(self._threads) as pool:
            for _ in pool.map(self._train, missing.values()):
                count += 1
                spent = time.perf_counter() - start
                left = spent / count * (len(missing) - count)
                text = f"{self.task.name}: {count} of {len(missing)} runs, {left:.0f} s left   "
                print(f"\r{text}", end="", file=sys.stderr, flush=True)
        if missing:
            print(f"\r{self.task.name}: {count} runs in {spent:.0f} s{' ' * 30}", file=sys.stderr)
        return [self._done[_key(*one)] for one in wanted]

    def price(self, setting: Setting, seed: int, rounds: int, fleet: Fleet) -> FloatArray:
        """Seconds, joules and clients of a run's first rounds, by those who took part."""
        law, clock = setting.participation, Clock(fleet, self.samples.size)
        numbers = range(1, rounds + 1)
        cohorts = [law.cohort(self.samples, seed, number).clients for number in numbers]
        if self.task.dropout:
            cohorts = [
                clients[present(seed, round_, clients, self.task.dropout)]
                for round_, clients in enumerate(cohorts, start=1)
            ]
        named = [clients.tolist() for clients in cohorts]
        costs: FloatArray = np.array(clock.round_costs(named, [setting.local_steps] * rounds))
        return np.array([*costs.sum(axis=0), sum(map(len, cohorts))])

    def _train(self, work: Work) -> None:
        setting, seed = work
        target, most = self.task.target, self.task.max_rounds
        if setting.clients_per_round != self.task.clients[-1]:
            full = self.full_rounds(setting.local_steps)
            most = int(min(most, max(LONGEST * full, AT_LEAST)))
        reached = {"rounds": NEVER, "smooth_rounds": NEVER}
        last: deque[float] = deque(maxlen=SMOOTH)

        def look(record: RoundRecord) -> None:
            if record.loss is None or not record.round:
                return
            last.append(record.loss if record.model_loss is None else record.model_loss)
            if not reached["rounds"] and record.loss <= target:
                reached["rounds"] = record.round
            if not reached["smooth_rounds"] and len(last) == SMOOTH and fmean(last) <= target:
                reached["smooth_rounds"] = record.round
            if all(reached.values()):
                raise _EnoughError

        with suppress(_EnoughError):
            self.simulator.run(setting, Stop(max_rounds=most), seed=seed, progress=look)
        self._keep(setting, seed, Reached(**reached))

    def _keep(self, setting: Setting, seed: int, found: Reached) -> None:
        row = (
            law_name(setting), setting.groups or 1, setting.participation.cycle,
            setting.local_steps, seed, found.rounds, found.smooth_rounds,
        )  # fmt: skip
        with self._lock:
            append_row(self._path, COLUMNS, row)
            self._done[_key(setting, seed)] = found


def _key(setting: Setting, seed: int) -> Key:
    return law_name(setting), setting.local_steps, seed
