"""Simulated FedAvg: Algorithm 1 of the paper, as fast as the machine allows."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Event, Lock

import numpy as np

from fedplan.core.course import Course, wants_reports
from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RoundRecord, RunRecord, Status, Stop, Watch, check_run
from fedplan.core.setting import Cohort, Setting
from fedplan.core.signal import ClientReports, Signal, Sketch
from fedplan.errors import require
from fedplan.models.learner import FloatArray, Learner, stratified_rows
from fedplan.participation.draws import present
from fedplan.simulation.clock import Clock
from fedplan.simulation.reports import Reporter

NEAR = 0.1  # within this share of the target, every round is evaluated on every sample
_NOBODY = Cohort(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run to make; a setting is the simplest course."""

    course: Course
    seed: int

    @property
    def setting(self) -> Setting:
        """What the run begins with."""
        return self.course.setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """When, and on how many samples, the global loss is measured.

    every : rounds between evaluations; the last round is always evaluated.
    subset : about this many samples, the same in every round, stratified by class; None
        for all.
    both : if clients take turns, evaluate the last model too every time; otherwise in every
        other cycle and at the end.

    From a loss within a tenth of the target on, every round is measured, and on all samples: a run
    only ever ends on the loss of all samples. Where losses jump by more than that from round to
    round, a first crossing can go unseen. Before that, the accuracy on test samples is measured in
    so few of these rounds that they cost no larger share of all samples than the training samples.
    """

    every: int = 1
    subset: int | None = None
    both: bool = False

    def __post_init__(self) -> None:
        rules = {
            "every >= 1": self.every >= 1,
            "subset >= 1": self.subset is None or self.subset >= 1,
        }
        require(rules, every=self.every, subset=self.subset)

    def test_every(self, samples: int) -> int:
        """Rounds from one look at the test samples to the next, of so many training samples.

        >>> Evaluation().test_every(60_000), Evaluation(every=2, subset=6_000).test_every(60_000)
        (1, 20)
        """
        return self.every * max(1, math.ceil(samples / (self.subset or samples)))


class Simulator:
    """Runs FedAvg with one model on one data set; the same job gives the same run.

    >>> from fedplan.models.logistic import Logistic
    >>> from fedplan.participation import uniform
    >>> from fedplan.tasks import synthetic
    >>> learner = Logistic(synthetic(1, 1, num_clients=5))
    >>> simulator = Simulator(learner, LearningRate(initial=0.05))
    >>> run = simulator.run(uniform(2, 10), Stop(max_rounds=3), seed=1)
    >>> run.status, run.num_rounds, run.losses[-1] < run.losses[0]
    ('rounds', 3, True)
    """

    def __init__(
        self,
        learner: Learner,
        learning_rate: LearningRate,
        fleet: Fleet | None = None,
        evaluation: Evaluation | None = None,
        dropout: float = 0.0,
    ) -> None:
        """`dropout` is the probability that a client is absent when its turn comes."""
        require({"0 <= dropout < 1": 0 <= dropout < 1}, dropout=dropout)
        self.num_clients = len(learner.sizes)
        self.learner = learner
        self._learning_rate = learning_rate
        self._clock = None if fleet is None else Clock(fleet, self.num_clients)
        self._evaluation = evaluation or Evaluation()
        self._samples = learner.sizes.astype(np.float64)
        self._dropout = dropout
        self._reporter = Reporter(learner)
        self._all = learner.samples()
        self._some = self._all
        wanted = self._evaluation.subset
        if wanted is not None and wanted < len(learner.labels):
            self._some = learner.samples(stratified_rows(learner.labels, wanted))
        self._test = learner.test_samples()
        self._test_every = self._evaluation.test_every(len(learner.labels))

    def warm_up(self) -> None:
        """Compile what a run needs, or load it from the cache; takes seconds the first time."""
        weights, first = self.learner.initial(0), np.zeros(1, dtype=np.int64)
        self.learner.train_round(weights, first, np.ones(1), 1, self._learning_rate.at(0), 0, 1)
        self.learner.evaluate(weights, self.learner.samples(first))

    def run(
        self,
        course: Course,
        stop: Stop,
        *,
        seed: int = 0,
        progress: Callable[[RoundRecord], None] | None = None,
    ) -> RunRecord:
        """Train from the learner's initial weights, steered by the course, until `stop`."""
        check_run(course.setting, stop, self.num_clients)
        steering, watch = course.begin(), Watch(stop)
        reporter = self._reporter if wants_reports(course) else None
        model = _Model(self.learner, seed, reporter, sketched=course.wants_signal)
        rounds: list[RoundRecord] = []
        status: Status | None = None
        setting, near = None, False
        while status is None:
            round_ = len(rounds)
            cohort = _NOBODY
            if round_ > 0:
                setting = steering.ask()
                cohort = self._train(model, setting, seed, round_)
            took_s, used_j = self._price(cohort, setting.local_steps if setting else 0)
            status = watch.spend(round_, took_s, used_j)
            record = RoundRecord(
                round=round_,
                cohort=tuple(cohort.clients.tolist()),
                shares=tuple(cohort.shares.tolist()),
                setting=setting,
                seconds=took_s,
                joules=used_j,
                signal=model.signal,
                reports=model.reports,
            )
            if near or status or round_ % self._evaluation.every == 0:
                both = bool(status) or course.wants_signal
                record, loss = self._judge(record, model, stop, both=both, last=bool(status))
                if not math.isfinite(loss):
                    status = "diverged"
                    break
                near = stop.is_near(loss, NEAR)
                status = "target" if watch.arrives(loss) else status
            rounds.append(record)
            steering.tell(record)
            if progress is not None:
                progress(record)
            if status is None and steering.hopeless:
                status = "hopeless"
        return RunRecord(
            setting=course.setting,
            seed=seed,
            status=status,
            rounds=tuple(rounds),
            message=steering.hopeless or "" if status == "hopeless" else "",
            identity=course.identity,
            decisions=tuple(steering.decisions),
        )

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        threads: int | None = None,
        progress: Callable[[Job, RoundRecord], None] | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make many runs, one thread each, in the order of the jobs.

        A job is taken from `jobs` only when a thread is free to begin it. Leaving the iteration
        early ends the runs in progress, each at its next round. `progress` is told of every round
        and `finished` of every run as soon as it ends, both from the training threads.
        """
        left, turn = Event(), Lock()
        waiting = iter(jobs)
        begun: SimpleQueue[Future[RunRecord | None]] = SimpleQueue()

        def make(job: Job) -> RunRecord:
            def report(record: RoundRecord) -> None:
                if left.is_set():
                    raise CancelledError
                if progress is not None:
                    progress(job, record)

            run = self.run(job.course, stop, seed=job.seed, progress=report)
            if finished is not None:
                finished(run)
            return run

        def work() -> None:
            while not left.is_set():
                future: Future[RunRecord | None] = Future()
                try:
                    with turn:
                        begun.put(future)
                        job = next(waiting, None)
                    future.set_result(None if job is None else make(job))
                except BaseException as error:
                    future.set_exception(error)  # raised where the runs are iterated
                    return
                if job is None:
                    return

        workers = threads or os.cpu_count() or 1
        pool = ThreadPoolExecutor(workers)
        try:
            for _ in range(workers):
                pool.submit(work)
            while (run := begun.get().result()) is not None:
                yield run
        finally:
            left.set()
            pool.shutdown(wait=False, cancel_futures=True)  # a round may take long

    def _train(self, model: _Model, setting: Setting, seed: int, round_: int) -> Cohort:
        """One round with this setting, and who took part; absent clients are not waited for."""
        cohort = setting.participation.cohort(self._samples, seed, round_)
        if self._dropout:
            there = present(seed, round_, cohort.clients, self._dropout)
            cohort = Cohort(cohort.clients[there], cohort.shares[there])
        model.train(cohort, setting, self._learning_rate.at(round_ - 1), round_)
        return cohort

    def _price(self, cohort: Cohort, local_steps: int) -> tuple[float, float]:
        if self._clock is None or not cohort.clients.size:
            return 0.0, 0.0
        return self._clock.round_cost(cohort.clients, local_steps)

    def _judge(
        self, record: RoundRecord, model: _Model, stop: Stop, *, both: bool, last: bool
    ) -> tuple[RoundRecord, float]:
        """The round with the loss and accuracy of the better of two models, and that loss.

        Where clients take turns, the average of the last models is judged in every round. The last
        model is judged, too, in every other cycle, so that turns train as fast as uniform sampling,
        or when asked for.
        """
        weights, averaged = model.average()
        loss, accuracy = self._measure(weights, stop, last=last)
        last_loss = None
        now = model.trained % (2 * averaged) < self._evaluation.every
        if averaged > 1 and (now or both or self._evaluation.both):
            last_loss, last_accuracy = self._measure(model.weights, stop, last=last)
            if last_loss < loss:
                weights, loss, accuracy = model.weights, last_loss, last_accuracy
        right = None
        wanted = last or record.round % self._test_every == 0 or stop.is_near(loss, NEAR)
        if self._test is not None and wanted and math.isfinite(loss):
            _, right = self.learner.evaluate(weights, self._test)
        judged = replace(
            record, loss=loss, accuracy=accuracy, test_accuracy=right, model_loss=last_loss
        )
        return judged, loss

    def _measure(self, weights: FloatArray, stop: Stop, *, last: bool) -> tuple[float, float]:
        """Loss and accuracy, on all samples where it matters."""
        if not np.isfinite(weights).all():
            return math.nan, math.nan
        loss, accuracy = self.learner.evaluate(weights, self._some)
        if self._some is not self._all and (last or stop.is_near(loss, NEAR)):
            loss, accuracy = self.learner.evaluate(weights, self._all)
        return loss, accuracy


class _Model:
    """The model in training, those before it that are averaged, and what the round reports."""

    def __init__(
        self, learner: Learner, seed: int, reporter: Reporter | None, *, sketched: bool
    ) -> None:
        self.weights = learner.initial(seed)
        self.trained = 0
        self.signal: Signal | None = None
        self.reports: ClientReports | None = None
        self._learner, self._seed, self._reporter = learner, seed, reporter
        self._models: deque[FloatArray] = deque()
        self._sum = np.zeros_like(self.weights, dtype=np.float64)
        self._sketch = Sketch(self.weights.size) if sketched else None
        self._halfway = np.empty_like(self.weights) if sketched else None

    @np.errstate(over="ignore", invalid="ignore")  # a run that diverges says so itself
    def train(self, cohort: Cohort, setting: Setting, rate: float, round_: int) -> None:
        """One round of this cohort."""
        if self._reporter is not None:
            self.reports = self._reporter(
                self.weights, cohort.clients, setting.local_steps, rate, self._seed, round_
            )
        before = self.weights.copy() if self._sketch else self.weights
        self._learner.train_round(
            self.weights, cohort.clients, cohort.shares, setting.local_steps, rate, self._seed,
            round_, self._halfway,
        )  # fmt: skip
        if self._sketch is not None and self._halfway is not None:
            self.signal = Signal(
                whole=self._sketch(self.weights - before),
                halfway=self._sketch(self._halfway - before),
            )
        self.trained += 1
        self._keep(setting.participation.averaged)

    def _keep(self, averaged: int) -> None:
        """Add the model to the sum of the last ones, and let go of those that are too old.

        A running sum, so that many groups cost no more than few. Single precision added up in
        double hardly rounds: what a model adds is what it takes away again.
        """
        if averaged > 1:
            self._models.append(self.weights.copy())
            self._sum += self.weights
        # Of the later half of the rounds alone: earlier models would hold the average back.
        allowed = min(averaged, (self.trained + 1) // 2) if averaged > 1 else 0
        while len(self._models) > allowed:
            self._sum -= self._models.popleft()

    def average(self) -> tuple[FloatArray, int]:
        """The average of the last models, and how many they are; the last itself if it is alone."""
        if len(self._models) < 2:
            return self.weights, 1
        return (self._sum / len(self._models)).astype(np.float32), len(self._models)
