"""FlowerRunner: FedAvg on a live Flower federation, with exactly K clients a round.

It keeps the runners' contract: what the simulator promises, a federation of well-behaved clients
promises too. Of others, a round takes the answers that can be used, asks other clients in place of
those that failed, and says what was wrong with each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from flwr.app import ArrayRecord, ConfigRecord
from flwr.serverapp import Grid

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Observation, RoundRecord, RunRecord, Stop, Watch, check_run
from fedplan.core.setting import Setting
from fedplan.errors import InputError
from fedplan.flower.averaging import Weights
from fedplan.flower.border import Border, Layout
from fedplan.flower.exchange import Clock, Post, WallClock
from fedplan.flower.log import LOG
from fedplan.flower.roster import Roster
from fedplan.flower.rounds import Evaluate, FailedRound, Made, RoundRules, Rounds
from fedplan.participation import Uniform
from fedplan.simulation import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands: its rounds, and the model after the last of them."""

    rounds: tuple[RoundRecord, ...]
    weights: Weights


class Journal(Protocol):
    """Keeps runs as they go, so that one that was cut off goes on."""

    def recall(self, job: Job) -> State | None:
        """Where a run stands; None where it has not begun."""
        ...

    def keep(self, job: Job, record: RoundRecord, weights: Weights) -> None:
        """Keep one more round, and the model after it."""
        ...


# Told of every round as it ends; where it returns True, the run stops there, unfinished.
Report = Callable[[Job, Made], bool | None]


class FlowerRunner:
    """Trains on the nodes of a grid, from `initial_arrays`.

    initial_arrays : of any run, or a function of its seed.
    evaluate : loss and accuracy (or None) of the model after a round; None asks all clients to
        evaluate, and takes the mean of `loss_metric` and `accuracy_metric`, by examples.
    learning_rate : sent to the clients as `learning-rate`, for every round its own.
    train_config, evaluate_config : whatever else the clients need to know.
    names : clients known from before, in their order.
    report : told of every round; where it returns True, the run stops there, unfinished.

    A message to a client has the records `arrays` and `config`, and `local-steps`, `server-round`
    and `seed` in its config.
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
        journal: Journal | None = None,
        report: Report | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.journal, self.report = journal, report
        self.weights: Weights = {}  # after the last round of the last run
        self._initial = initial_arrays
        self._layout = Layout(self._initial_for(0))
        rules = rules or RoundRules()
        post = Post(grid, clock or WallClock())
        self._rounds = Rounds(
            post=post,
            roster=Roster(post, rules.deadline_s, names),
            border=Border(self._layout),
            rules=rules,
            evaluate=evaluate,
            learning_rate=learning_rate,
            train_config=train_config or ConfigRecord(),
            evaluate_config=evaluate_config or ConfigRecord(),
            evaluate_metrics=(loss_metric, accuracy_metric),
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
        return self._rounds.evaluate is not None

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients call themselves, in the order of their numbers."""
        return tuple(self._roster.names)

    def run(self, setting: Setting, stop: Stop, *, seed: int = 0) -> RunRecord:
        """Train with this setting, by uniform sampling, until `stop` says so."""
        self._check(setting, stop)
        job = Job(course=setting, seed=seed)
        return self._continue(job, stop, self.journal.recall(job) if self.journal else None)

    def probe(self, local_steps: int) -> tuple[Observation, ...]:
        """Have every client there train once, from the first weights; nothing is averaged."""
        self._roster.settle()
        observations, _ = self._rounds.ask(
            list(self._roster.present), self._layout.arrays, local_steps, seed=0, round_=0
        )
        return tuple(observations)

    def _initial_for(self, seed: int) -> ArrayRecord:
        return self._initial(seed) if callable(self._initial) else self._initial

    def _continue(self, job: Job, stop: Stop, state: State | None) -> RunRecord:
        begun = RunRecord(
            setting=job.setting,
            seed=job.seed,
            status="unfinished",
            rounds=state.rounds if state else (),
        )
        self.weights = state.weights if state else Layout(self._initial_for(job.seed)).arrays
        if (ended := begun.until(stop)) is not None:
            return ended
        watch = _watching(stop, begun.rounds)
        rounds = list(begun.rounds)
        while True:
            round_ = rounds[-1].round + 1 if rounds else 0
            try:
                made = self._rounds.make(job, round_, self.weights)
            except FailedRound as failure:
                ended = replace(begun, status=failure.status, message=str(failure))
                return replace(ended, rounds=tuple(rounds))
            record = made.record
            status = watch.spend(round_, record.seconds, record.joules)
            if record.loss is None or not math.isfinite(record.loss):
                return replace(begun, status="diverged", rounds=tuple(rounds))
            LOG.info("Round %d with (%d, %d): loss %.4f, %.1f s", round_, *job.setting.pair,
                     record.loss, record.seconds)  # fmt: skip
            status = "target" if watch.arrives(record.loss) else status
            rounds.append(record)
            self.weights = made.weights
            if self.journal is not None:
                self.journal.keep(job, record, made.weights)
            left = self.report is not None and self.report(job, made)
            if status is not None or left:
                return replace(begun, status=status or "unfinished", rounds=tuple(rounds))

    def _check(self, setting: Setting, stop: Stop) -> None:
        law = setting.participation.law
        if law != Uniform.law:
            raise InputError(
                "a live federation draws its clients uniformly, for whoever is away must be "
                f"replaced, but got participation={law}. Set participation=uniform, or simulate "
                "it: leave out --runner flower."
            )
        clients, _ = setting.pair
        if clients > self.num_clients:
            self.wait_for(clients)
        check_run(setting, stop, len(self._roster.names))


def _watching(stop: Stop, rounds: Sequence[RoundRecord]) -> Watch:
    """A watch that has seen these rounds."""
    watch = Watch(stop)
    for record in rounds:
        watch.spend(record.round, record.seconds, record.joules)
        if record.loss is not None:
            watch.arrives(record.loss)
    return watch
