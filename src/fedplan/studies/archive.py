"""Archive: the runs of one experiment, each made once and never lost."""

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol, TypeVar

from fedplan.core.records import RoundRecord, RunRecord, Stop
from fedplan.simulation import Clock, Job
from fedplan.store import Store

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
Progress = Callable[[Job, RoundRecord], None]
Count = Callable[[int, int], None]


class Engine(Protocol):
    """Anything that makes many runs: the simulator on this machine, or a cluster."""

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        progress: Progress | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make the runs, in the order of the jobs; `finished` is called with each as it ends.

        A job is taken from `jobs` only when it can begin.
        """
        ...


class Archive:
    """Runs from the store if it has them, else from the engine, which are then stored.

    Without an engine nothing is trained or written: runs extend as far as the store has them.

    A run is saved the moment it ends. The store is asked again before each run is begun, for other
    processes may have made it meanwhile; what is found, begun and stored is logged. The store keeps
    who took part in a round, so seconds and joules are those of this archive's devices, whichever
    they were when the run was made.
    """

    def __init__(
        self,
        engine: Engine | None,
        store: Store,
        settings: Callable[[Stop], Mapping[str, Any]],
        clock: Clock | None = None,
    ) -> None:
        """Store runs that end at `stop` under `settings(stop)`."""
        self._engine, self._store = engine, store
        self._settings, self._clock = settings, clock

    def find(self, job: Job, stop: Stop) -> RunRecord | None:
        """The run up to `stop`, if the store has that much of it."""
        run = self._stored(job, stop)
        return None if run is None else run.until(stop)

    def _stored(self, job: Job, stop: Stop) -> RunRecord | None:
        run = self._store.find_run(self._settings(stop), job.course, job.seed)
        return run if run is None or self._clock is None else self._clock.reprice(run)

    def run_all(
        self, jobs: Sequence[Job], stop: Stop, *, progress: Progress | None = None
    ) -> list[RunRecord]:
        """The runs of these jobs, in their order.

        Without an engine, those that have begun: "unfinished" if `stop` would let them continue.
        """
        if self._engine is not None:
            return self.map_all(jobs, stop, lambda run: run, progress=progress)
        begun = (run for job in jobs if (run := self._stored(job, stop)) is not None)
        return [run.until(stop) or replace(run, status="unfinished", message="") for run in begun]

    def map_all(
        self,
        jobs: Sequence[Job],
        stop: Stop,
        take: Callable[[RunRecord], T],
        *,
        progress: Progress | None = None,
        count: Count | None = None,
    ) -> list[T]:
        """The result of `take` for each run, in the order of the jobs; the runs are not kept.

        Without an engine, only for runs that the store has to their end.

        take : called from any thread.
        count : told how many of the runs are done: first how many the store had, then as
            each one ends or is found, from the thread that did so.
        """
        settings = self._settings(stop)
        kept = self._take_found(jobs, stop, take)
        waiting = [job for job in dict.fromkeys(jobs) if job not in kept]
        begun: list[Job] = []
        done, total = len(kept), len(kept) + len(waiting)
        lock = Lock()

        def note_done(*, by_others: bool) -> None:
            nonlocal done
            with lock:
                if by_others:
                    # In the same order as another process, every run would be made twice.
                    random.shuffle(waiting)
                done += 1
                if count is not None:
                    count(done, total)

        def next_jobs() -> Iterator[Job]:
            while waiting:
                with lock:
                    job = waiting.pop(0)
                if found := self._take_found([job], stop, take):
                    kept.update(found)
                    note_done(by_others=True)
                    continue
                _LOG.info("training: %s", _words(job, stop))
                begun.append(job)
                yield job

        def save(run: RunRecord) -> None:
            is_new = self._store.save_run(settings, run)
            word = "stored" if is_new else "made by others too"
            _LOG.info("%s: %s (%d rounds)", word, _words(run, stop), run.num_rounds)
            note_done(by_others=not is_new)

        if count is not None:
            count(done, total)
        if self._engine is not None:
            made = self._engine.run_all(next_jobs(), stop, progress=progress, finished=save)
            for place, run in enumerate(made):
                kept[begun[place]] = take(run)
        return [kept[job] for job in jobs if job in kept]

    def _take_found(
        self, jobs: Sequence[Job], stop: Stop, take: Callable[[RunRecord], T]
    ) -> dict[Job, T]:
        """The result of `take` for each run that the store has to its end."""
        kept = {}
        for job in dict.fromkeys(jobs):
            if (run := self.find(job, stop)) is not None:
                _LOG.info("found: %s", _words(job, stop))
                kept[job] = take(run)
        return kept


def _words(run: Job | RunRecord, stop: Stop) -> str:
    """Which run, and how far it goes."""
    steered = run.course if isinstance(run, RunRecord) else run.course.identity.partition("/")[0]
    words = f"{steered}, from " if steered else ""
    words += f"{run.setting.label}, seed {run.seed}, to "
    if stop.target_loss is not None:
        words += f"loss {stop.target_loss:.6g} or "
    return f"{words}round {stop.max_rounds}"
