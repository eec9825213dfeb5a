"""RayEngine: runs on the processors of a Ray cluster; the only module that knows ray."""

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

from fedplan.core.records import RunRecord, Stop
from fedplan.errors import FedplanError, InputError, MissingExtraError
from fedplan.simulation import Job
from fedplan.studies.archive import Progress
from fedplan.studies.experiment import Experiment, build_experiment
from fedplan.studies.study import Study

# One run per processor: threads of a library would only get in each other's way.
_ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
_ANSWER_WITHIN_S = 10.0
_OURS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent home
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or ray warns of a future change
}


class RayEngine:
    """Makes the runs of an experiment on a cluster, one worker per processor.

    The cluster is the one that ray is connected to, else the one at $RAY_ADDRESS, else all
    processors of this machine. Every worker builds the experiment from its study, so the files
    that the study names must be there, at the same path, on every machine. The runs are those of
    the experiment's own simulator, bit for bit.
    """

    def __init__(self, experiment: Experiment) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError("A sweep on a cluster", "ray")
        self._study = experiment.study

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        progress: Progress | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make the runs, in the order of the jobs; `finished` is called with each as it arrives.

        `progress` is called with all rounds of a run once it has arrived.
        """
        waiting = iter(jobs)
        first = list(islice(waiting, 1))
        if not first:  # and no cluster is needed
            return
        arrived: dict[int, RunRecord] = {}
        due = 0
        with _cluster() as ray, _translated(ray):
            for place, job, run in _each(ray, self._study, chain(first, waiting), stop):
                if progress is not None:
                    for record in run.rounds:
                        progress(job, record)
                if finished is not None:
                    finished(run)
                arrived[place] = run
                while due in arrived:
                    yield arrived.pop(due)
                    due += 1


class _Worker:
    """One processor of the cluster."""

    def __init__(self, study: Study) -> None:
        self._simulator = build_experiment(study).simulator

    def run(self, place: int, job: Job, stop: Stop) -> tuple[int, Job, RunRecord]:
        return place, job, self._simulator.run(job.course, stop, seed=job.seed)


def _each(
    ray: Any, study: Study, jobs: Iterable[Job], stop: Stop
) -> Iterator[tuple[int, Job, RunRecord]]:
    """The runs as they arrive, each with its job and the place of it."""
    worker_type = ray.remote(num_cpus=1, runtime_env={"env_vars": _ONE_THREAD})(_Worker)
    # A worker beyond the processors that are free would keep a job waiting for one of them.
    free = max(int(ray.available_resources().get("CPU", 1)), 1)
    todo = iter(enumerate(jobs))
    under_way: dict[Any, Any] = {}  # the worker of each result

    def give(worker: Any, item: tuple[int, Job]) -> None:
        under_way[worker.run.remote(*item, stop)] = worker

    for item in islice(todo, free):
        give(worker_type.remote(study), item)
    while under_way:
        (done,), _ = ray.wait(list(under_way), num_returns=1)
        worker = under_way.pop(done)
        for item in islice(todo, 1):  # first, as saving the run may take a while
            give(worker, item)
        yield ray.get(done)


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected; a connection made here is closed."""
    for name, value in _OURS.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS", "local")
    try:
        _check_reachable(address)
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at RAY_ADDRESS={address} ({error}). Start one with `ray start "
            "--head`, or unset RAY_ADDRESS to use this machine."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise OSError where nobody listens; ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_WITHIN_S).close()


@contextmanager
def _translated(ray: Any) -> Iterator[None]:
    """The error of a worker, as one of fedplan's own."""
    try:
        yield
    except ray.exceptions.RayError as error:
        if isinstance(cause := getattr(error, "cause", None), FedplanError):
            raise cause from error
        reason = str(error).strip().splitlines()[-1].strip()
        raise FedplanError(
            f"a worker of the Ray cluster failed: {reason} What had ended before is stored: start "
            "again, or without --engine ray."
        ) from error
