"""FlowerRunner: any course on a live Flower federation.

It keeps the runners' contract: what the simulator promises, a federation of well-behaved clients
promises too. If clients fail, a round takes the answers that can be used, and says what was wrong
with the others: where K clients are drawn, others are asked in place of those that failed; where
groups take turns, those that failed are left out until their next turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedplan.core.course import Course, Decision, Steering, wants_reports
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RoundRecord, RunRecord, Status, Stop, Watch, check_run
from fedplan.core.setting import Setting
from fedplan.course.live import LiveSteering
from fedplan.errors import FedplanError, InputError
from fedplan.flower.conduct import Conduct
from fedplan.flower.epochs import Epochs
from fedplan.flower.exchange import Clock, Post, WallClock
from fedplan.flower.journal import Journal, State
from fedplan.flower.judging import Evaluate, Judge
from fedplan.flower.log import LOG
from fedplan.flower.models import Models, Weights, kept_after
from fedplan.flower.replies import Layout, ReplyChecks
from fedplan.flower.roster import Roster
from fedplan.flower.rounds import Made, Rounds, Turn
from fedplan.flower.rules import FailedRound, RoundRules, Silence
from fedplan.flower.sketching import Sketcher
from fedplan.flower.wrapped import Wrapped
from fedplan.profiling.observed import Ledger
from fedplan.simulation import Job
from fedplan.studies.sinks import Sink

Report = Callable[[Job, Made], None]


class FlowerRunner:
    """Trains on the nodes of a grid, from `initial_arrays`.

    initial_arrays : of any run, or a function of its seed.
    strategy : asks the clients, and makes a model of what they have trained; FedAvg by default.
    evaluate : loss and accuracy (or None) of the model after a round; None has clients evaluate,
        and takes `loss_metric` and `accuracy_metric` of what the strategy makes of that.
    learning_rate : that of each round is sent to the clients as `learning-rate`.
    train_config, evaluate_config : whatever else the clients need to know.
    epochs : how to ask clients that count epochs, and do not measure themselves.
    names : clients known from before, in their order.
    samples : how many each client has, if known; otherwise clients say so as they train.
    report : told of every round.
    sinks : told of the run so far, after every round.

    A message to a client has the records `arrays` and `config`, and `local-steps`, `server-round`
    and `seed` in its config; and `sketch-seed` where the course wants to know what half of the
    steps do.
    """

    def __init__(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | Callable[[int], ArrayRecord],
        *,
        strategy: Wrapped | None = None,
        evaluate: Evaluate | None = None,
        learning_rate: LearningRate | None = None,
        rules: RoundRules | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        loss_metric: str = "eval_loss",
        accuracy_metric: str = "eval_acc",
        epochs: Epochs | None = None,
        names: Sequence[str] = (),
        samples: Sequence[float] = (),
        journal: Journal | None = None,
        report: Report | None = None,
        sinks: Sequence[Sink] = (),
        clock: Clock | None = None,
    ) -> None:
        self.journal, self.report, self._sinks = journal, report, sinks
        self.weights: Weights = {}  # of the last run: the model that its last loss is of
        self._initial, self._samples = initial_arrays, tuple(samples)
        self.rules = rules = rules or RoundRules()
        post = Post(grid, clock or WallClock())
        if strategy is None:
            strategy = Wrapped(FedAvg(fraction_evaluate=0.0 if evaluate else 1.0))
        self._strategy = strategy
        self._rounds = Rounds(
            post=post,
            roster=Roster(post, rules.deadline_s, names),
            strategy=strategy,
            checks=ReplyChecks(
                Layout(self._initial_for(0)), strategy.weight_key, counts_epochs=epochs is not None
            ),
            rules=rules,
            learning_rate=learning_rate,
            train_config=train_config or ConfigRecord(),
            epochs=epochs,
        )
        self._judge = Judge(
            rounds=self._rounds,
            evaluate=evaluate,
            config=evaluate_config or ConfigRecord(),
            metrics=(loss_metric, accuracy_metric),
        )
        self._roster = self._rounds.roster

    @property
    def num_clients(self) -> int:
        """Clients known: those that are there, and those that were."""
        self._roster.settle()
        return len(self._roster.names)

    def wait_for(self, clients: int, seconds: float | None = None) -> int:
        """How many clients are there, once there are so many or the wait is over."""
        self._roster.wait_for(clients, self.rules.wait_s if seconds is None else seconds)
        self._roster.settle()
        return len(self._roster.present)

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients call themselves, in the order of their numbers."""
        return tuple(self._roster.names)

    @property
    def dropped_sketches(self) -> int:
        """Half-way sketches that could not be used."""
        return self._rounds.checks.dropped.total()

    def run_all(
        self,
        jobs: Iterable[Job],
        stop: Stop,
        *,
        progress: Callable[[Job, RoundRecord], None] | None = None,
        finished: Callable[[RunRecord], None] | None = None,
    ) -> Iterator[RunRecord]:
        """Make the runs, one after the other; those that were cut off are resumed.

        A round that the federation cannot make raises an error and does not end its run, which goes
        on once the clients are back.
        """

        def report(job: Job, made: Made) -> None:
            if progress is not None:
                progress(job, made.record)

        self.report = report
        for job in jobs:
            run = self.run(job.course, stop, seed=job.seed)
            if run.status == "unavailable":
                raise FedplanError(f"A round could not be made. {run.message}")
            if finished is not None:
                finished(run)
            yield run

    def run(self, course: Course, stop: Stop, *, seed: int = 0) -> RunRecord:
        """Train as the course steers until `stop` says so; a setting is a course, too."""
        self._check(course, stop)
        job = Job(course=course, seed=seed)
        state = self.journal.recall(job) if self.journal else None
        if state is None:
            state = State(rounds=(), models=(Layout(self._initial_for(seed)).arrays,))
        self._strategy.restore(state.strategy)
        training = _Training(job, stop, state, self._samples)
        ended = training.ended("unfinished").until(stop) if training.rounds else None
        if ended is None:
            ended = self._go_on(training)
        last = ended.rounds[-1] if ended.rounds else None
        self.weights = training.models.best(last) if last else training.models.weights
        return replace(ended, decisions=tuple(training.steering.decisions))

    def _initial_for(self, seed: int) -> ArrayRecord:
        return self._initial(seed) if callable(self._initial) else self._initial

    def _go_on(self, training: _Training) -> RunRecord:
        """Make rounds until the end."""
        silence = Silence(self.rules)
        while True:
            if training.rounds and training.steering.hopeless:
                return training.ended("hopeless", training.steering.hopeless)
            try:
                made, models = self._make(training)
                record = made.record
                if not math.isfinite(record.loss or 0.0):
                    return training.ended("diverged")
                status = training.take(record, models)
                self._keep(training, made)
                if record.round and not record.cohort:
                    silence.hear(record.round, record.observations, len(self.names))
            except FailedRound as failure:
                return training.ended(failure.status, str(failure))
            if status is not None:
                return training.ended(status)

    def _make(self, training: _Training) -> tuple[Made, Models]:
        """One round with its loss, and the models after it; round 0 only evaluates."""
        round_, models = training.next_round, training.models
        if round_:
            self._roster.refresh()
            setting = training.ask(len(self.names))
            turn = Turn(
                round=round_,
                setting=setting,
                seed=training.job.seed,
                weights=models.weights,
                sketcher=training.sketcher,
            )
            made = self._rounds.make(turn, training.ledger, training.conduct)
            models = models.after(round_, made.weights, setting.participation.averaged)
        else:
            made = Made(record=RoundRecord(round=0), weights=models.weights)
        both = training.spend(made.record)
        return self._judge.judged(made, models, training.conduct, both=both), models

    def _keep(self, training: _Training, made: Made) -> None:
        record = made.record
        if self.journal is not None:
            self.journal.keep(
                training.job, record, made.weights, self._strategy.state(), training.models.averaged
            )
        with_what = f" with {record.setting.label}" if record.setting else ""
        LOG.info("Round %d%s: loss %.4f, %.1f s", record.round, with_what, record.loss or 0.0,
                 record.seconds)  # fmt: skip
        for decision in training.news():
            who = f" and {decision.groups} groups" if decision.groups else ""
            LOG.info("From round %d on %d local steps%s. %s", decision.round, decision.local_steps,
                     who, decision.why)  # fmt: skip
        if self.report is not None:
            self.report(training.job, made)
        for sink in self._sinks:
            so_far = training.ended("unfinished")
            sink(replace(so_far, decisions=tuple(training.steering.decisions)))

    def _check(self, course: Course, stop: Stop) -> None:
        if wants_reports(course):
            raise InputError(
                "the course asks clients for losses and gradients, which those of a federation do "
                f"not tell: {course.identity}."
            )
        if course.setting.problems(self.num_clients):
            self.wait_for(course.setting.clients_per_round or len(self._roster.names) + 1)
        check_run(course.setting, stop, len(self._roster.names))


class _Training:
    """A run in progress, from the first round or from the last one stored."""

    def __init__(self, job: Job, stop: Stop, state: State, samples: Sequence[float]) -> None:
        self.job, self.rounds = job, list(state.rounds)
        self.models = Models(state.models, kept_after(state.rounds))
        self.ledger, self.conduct = Ledger(samples), Conduct()
        self.steering: Steering = job.course.begin()
        self.sketcher = Sketcher(self.models.weights, job.seed) if job.course.wants_signal else None
        self._watch = Watch(stop)
        self._status: Status | None = None
        for record in state.rounds:
            self._watch.spend(record.round, record.seconds, record.joules)
            if record.loss is not None:
                self._watch.arrives(record.loss)
            self.ledger.hear(record.observations)
            self.conduct.hear(record.observations)
            self.steering.tell(record)
        self._told = set(self.steering.decisions) if self.rounds else set()

    @property
    def next_round(self) -> int:
        """The number of the round to make; 0 is the evaluation before any."""
        return self.rounds[-1].round + 1 if self.rounds else 0

    def ask(self, clients: int) -> Setting:
        """How to train the next round with so many known clients."""
        if isinstance(self.steering, LiveSteering):
            self.steering.meet(clients)
        return self.steering.ask()

    def spend(self, record: RoundRecord) -> bool:
        """What a round has used up; whether the last model is to be judged beside the average."""
        self._status = self._watch.spend(record.round, record.seconds, record.joules)
        return bool(self._status) or self.job.course.wants_signal

    def take(self, record: RoundRecord, models: Models) -> Status | None:
        """Add a round; the status by which it ends the run, if it does."""
        if record.loss is not None and self._watch.arrives(record.loss):
            self._status = "target"
        self.models = models
        self.rounds.append(record)
        self.steering.tell(record)
        return self._status

    def news(self) -> list[Decision]:
        """The decisions that are new or changed since the last call."""
        found = [one for one in self.steering.decisions if one not in self._told]
        self._told.update(found)
        return found

    def ended(self, status: Status, message: str = "") -> RunRecord:
        """The run, ended with this status."""
        return RunRecord(
            setting=self.job.setting,
            seed=self.job.seed,
            status=status,
            rounds=tuple(self.rounds),
            message=message,
            identity=self.job.course.identity,
        )
