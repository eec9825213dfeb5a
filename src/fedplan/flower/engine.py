"""FlowerEngine: the runs of an archive, made on a live federation, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fedplan.core.records import RunRecord, Stop
from fedplan.errors import FedplanError
from fedplan.flower.rounds import Made
from fedplan.flower.runner import FlowerRunner
from fedplan.simulation import Job
from fedplan.studies.archive import Progress


class FlowerEngine:
    """Makes runs with a runner; where that has a journal, those that were cut off go on."""

    def __init__(self, runner: FlowerRunner) -> None:
        self._runner = runner
        self.num_clients = runner.num_clients

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        progress: Progress | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make the runs, in the order of the jobs.

        A round that the federation cannot make is no end of a run but of everything: clients that
        come back go on with it.
        """

        def report(job: Job, made: Made) -> None:
            if progress is not None:
                progress(job, made.record)

        self._runner.report = report
        for job in jobs:
            run = self._runner.run(job.course, stop, seed=job.seed)
            if run.status == "unavailable":
                raise FedplanError(f"A round could not be made. {run.message}")
            if finished is not None:
                finished(run)
            yield run
