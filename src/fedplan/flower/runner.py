"""FlowerRunner: any course on a live Flower federation.

It keeps the runners' contract: what the simulator promises, a federation of well-behaved clients
promises too. Of others, a round takes the answers that can be used, and says what was wrong with
each: where K clients are drawn, others are asked in place of those that failed; where groups take
turns, those that failed are left out and come round again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import Grid

from fedplan.core.course import Course, wants_reports
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RoundRecord, RunRecord, Stop, check_run
from fedplan.errors import InputError
from fedplan.flower.averaging import Weights
from fedplan.flower.border import Border, Layout
from fedplan.flower.exchange import Clock, Post, WallClock
from fedplan.flower.judging import Evaluate, Judge
from fedplan.flower.log import LOG
from fedplan.flower.models import Models
from fedplan.flower.roster import Roster
from fedplan.flower.rounds import Made, Rounds, Turn
from fedplan.flower.rules import FailedRound, RoundRules, Silence
from fedplan.flower.training import State, Training
from fedplan.simulation import Job


class Journal(Protocol):
    """Keeps runs as they go, so that one that was cut off goes on."""

    def recall(self, job: Job) -> State | None:
        """Where a run stands; None where it has not begun."""
        ...

    def keep(self, job: Job, record: RoundRecord, weights: Weights, models: int) -> None:
        """Keep one more round and the model after it; of models, so many of the last."""
        ...


Report = Callable[[Job, Made], None]


class FlowerRunner:
    """Trains on the nodes of a grid, from `initial_arrays`.

    initial_arrays : of any run, or a function of its seed.
    evaluate : loss and accuracy (or None) of the model after a round; None asks all clients to
        evaluate, and takes the mean of `loss_metric` and `accuracy_metric`, by examples.
    learning_rate : sent to the clients as `learning-rate`, for every round its own.
    train_config, evaluate_config : whatever else the clients need to know.
    names : clients known from before, in their order.
    samples : how many each client has, where that is known; otherwise clients say it as they train.
    report : told of every round.

    A message to a client has the records `arrays` and `config`, and `local-steps`, `server-round`
    and `seed` in its config; and `sketch-seed` where the course wants to know what half of the
    steps do.
    """

    def __init__(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | Callable[[int], ArrayRecord],
        *,
        evaluate: Evaluate | None = None,
        learning_rate: LearningRate | None = None,
        rules: RoundRules | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        loss_metric: str = "eval_loss",
        accuracy_metric: str = "eval_acc",
        names: Sequence[str] = (),
        samples: Sequence[float] = (),
        journal: Journal | None = None,
        report: Report | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.journal, self.report = journal, report
        self.weights: Weights = {}  # of the last run: the model that its last loss is of
        self._initial, self._samples = initial_arrays, tuple(samples)
        self._layout = Layout(self._initial_for(0))
        rules = rules or RoundRules()
        post = Post(grid, clock or WallClock())
        self._rounds = Rounds(
            post=post,
            roster=Roster(post, rules.deadline_s, names),
            border=Border(self._layout),
            rules=rules,
            learning_rate=learning_rate,
            train_config=train_config or ConfigRecord(),
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

    @property
    def rules(self) -> RoundRules:
        """How long a round waits, and what makes it count."""
        return self._rounds.rules

    def wait_for(self, clients: int, seconds: float | None = None) -> int:
        """How many clients are there, once there are so many or the wait is over."""
        self._roster.wait_for(clients, self.rules.wait_s if seconds is None else seconds)
        self._roster.settle()
        return len(self._roster.present)

    @property
    def evaluates_centrally(self) -> bool:
        """Whether the server evaluates the model, not the clients."""
        return self._judge.evaluate is not None

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients call themselves, in the order of their numbers."""
        return tuple(self._roster.names)

    @property
    def dropped_sketches(self) -> int:
        """Half-way sketches that could not be used."""
        return self._rounds.border.dropped.total()

    def run(self, course: Course, stop: Stop, *, seed: int = 0) -> RunRecord:
        """Train as the course steers until `stop` says so; a setting is one."""
        self._check(course, stop)
        job = Job(course=course, seed=seed)
        state = self.journal.recall(job) if self.journal else None
        if state is None:
            state = State(rounds=(), models=(Layout(self._initial_for(seed)).arrays,))
        training = Training(job, stop, state, self._samples)
        ended = training.run.until(stop) if training.rounds else None
        if ended is None:
            ended = self._go_on(training)
        last = ended.rounds[-1] if ended.rounds else None
        self.weights = training.models.best(last) if last else training.models.weights
        return replace(ended, decisions=tuple(training.steering.decisions))

    def _initial_for(self, seed: int) -> ArrayRecord:
        return self._initial(seed) if callable(self._initial) else self._initial

    def _go_on(self, training: Training) -> RunRecord:
        """Make rounds until the end."""
        silence = Silence(self.rules)
        while True:
            if training.rounds and training.steering.hopeless:
                return training.ended("hopeless", training.steering.hopeless)
            try:
                made, models = self._make(training)
                if not math.isfinite(made.record.loss or 0.0):
                    return training.ended("diverged")
                status = training.take(made.record, models)
                self._keep(training, made)
                if made.record.round and not made.record.cohort:
                    silence.hear(
                        made.record.round, made.record.observations, len(self._roster.names)
                    )
            except FailedRound as failure:
                return training.ended(failure.status, str(failure))
            if status is not None:
                return training.ended(status)

    def _make(self, training: Training) -> tuple[Made, Models]:
        """One round with its loss, and the models after it; round 0 only evaluates."""
        job, round_, models = training.job, training.next_round, training.models
        if round_:
            self._roster.refresh()
            setting = training.ask(len(self._roster.names))
            turn = Turn(
                round=round_,
                setting=setting,
                seed=job.seed,
                weights=models.weights,
                sketcher=training.sketcher,
            )
            made = self._rounds.make(turn, training.ledger)
            models = models.after(round_, made.weights, setting.participation.averaged)
        else:
            record = RoundRecord(
                round=0, loss=None, accuracy=None, cohort=(), seconds=0.0, joules=0.0
            )
            made = Made(record=record, weights=models.weights, metrics={})
        both = training.spend(made.record)
        verdict = self._judge.judge(models, round_, both=both)
        record = replace(
            made.record,
            loss=verdict.loss,
            accuracy=verdict.accuracy,
            model_loss=verdict.model_loss,
        )
        return replace(made, record=record), models

    def _keep(self, training: Training, made: Made) -> None:
        record = made.record
        if self.journal is not None:
            self.journal.keep(training.job, record, made.weights, training.models.averaged)
        with_what = f" with {record.setting.label}" if record.setting else ""
        LOG.info("Round %d%s: loss %.4f, %.1f s", record.round, with_what, record.loss or 0.0,
                 record.seconds)  # fmt: skip
        for decision in training.news():
            who = f" and {decision.groups} groups" if decision.groups else ""
            LOG.info("From round %d on %d local steps%s. %s", decision.round, decision.local_steps,
                     who, decision.why)  # fmt: skip
        if self.report is not None:
            self.report(training.job, made)

    def _check(self, course: Course, stop: Stop) -> None:
        if wants_reports(course):
            raise InputError(
                "the course asks clients for losses and gradients, which those of a federation do "
                f"not tell: {course.identity}."
            )
        if course.setting.problems(self.num_clients):
            self.wait_for(course.setting.clients_per_round or len(self._roster.names) + 1)
        check_run(course.setting, stop, len(self._roster.names))
