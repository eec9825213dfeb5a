"""Archive: the runs of one experiment, each made once and never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol, TypeVar

from fedplan.errors import InputError
from fedplan.records import RoundRecord, RunRecord, Stop
from fedplan.simulation import Clock, Job
from fedplan.store import Store

T = TypeVar("T")
Progress = Callable[[Job, RoundRecord], None]
Count = Callable[[int, int], None]


class Engine(Protocol):
    """Whatever makes many runs: the simulator on this machine, or a cluster."""

    num_clients: int

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        progress: Progress | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make the runs, in the order of the jobs; `finished` hears of each at once."""
        ...


class NoEngine:
    """Makes no runs: for what must be in the store already."""

    def __init__(self, num_clients: int, study: str) -> None:
        self.num_clients = num_clients
        self._study = study

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,  # noqa: ARG002
        *,
        progress: Progress | None = None,  # noqa: ARG002
        finished: Callable[[RunRecord], None] | None = None,  # noqa: ARG002
    ) -> Iterator[RunRecord]:
        """Refuse any job, and say which run is missing."""
        for job in jobs:
            raise InputError(
                f"a run of study {self._study} is not in the store, or not all of it: "
                f"clients-per-round={job.clients_per_round}, local-steps={job.local_steps}, seed "
                f"{job.seed}. Run `fedplan run` with the same study, changes and --store first."
            )
        return iter(())


class Archive:
    """Runs from the store where it has them, else from the engine, and then in the store.

    A run is saved the moment it ends. The store keeps who took part in a round, so seconds and
    joules are those of this archive's devices, whichever they were when the run was made.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        settings: Callable[[Stop], Mapping[str, Any]],
        clock: Clock | None = None,
    ) -> None:
        """Keep runs that end at `stop` under `settings(stop)`."""
        self.num_clients = engine.num_clients
        self._engine, self._store = engine, store
        self._settings, self._clock = settings, clock

    def find(self, job: Job, stop: Stop) -> RunRecord | None:
        """The run as far as `stop` lets it go, if the store has that much of it."""
        stored = self._store.find_run(
            self._settings(stop), job.clients_per_round, job.local_steps, job.seed
        )
        if stored is None:
            return None
        return (self._clock.reprice(stored) if self._clock else stored).until(stop)

    def run_all(
        self, jobs: Sequence[Job], stop: Stop, *, progress: Progress | None = None
    ) -> list[RunRecord]:
        """The runs of these jobs, in their order."""
        return self.map_all(jobs, stop, lambda run: run, progress=progress)

    def map_all(
        self,
        jobs: Sequence[Job],
        stop: Stop,
        take: Callable[[RunRecord], T],
        *,
        progress: Progress | None = None,
        count: Count | None = None,
    ) -> list[T]:
        """What `take` makes of each run, in the order of the jobs; no more of a run is kept.

        count : told how many runs are there, of how many: first how many the store had, then as
            each one ends, from the thread that made it.
        """
        kept: dict[Job, T] = {}
        missing = []
        settings = self._settings(stop)
        for job in dict.fromkeys(jobs):
            if (run := self.find(job, stop)) is None:
                missing.append(job)
            else:
                kept[job] = take(run)
        done, total = len(kept), len(kept) + len(missing)
        lock = Lock()

        def save(run: RunRecord) -> None:
            nonlocal done
            self._store.save_run(settings, run)
            if count is not None:
                with lock:
                    done += 1
                    count(done, total)

        if count is not None:
            count(done, total)
        made = self._engine.run_all(missing, stop, progress=progress, finished=save)
        for job, run in zip(missing, made, strict=True):
            kept[job] = take(run)
        return [kept[job] for job in jobs]
