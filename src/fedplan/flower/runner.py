"""FlowerRunner: FedAvg on a live Flower federation, with exactly K clients a round.

It keeps the runners' contract: what the simulator promises, a federation of well-behaved clients
promises too. Of others, a round takes the answers that can be used, asks other clients in place of
those that failed, and says what was wrong with each.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.serverapp import Grid

from fedplan.errors import InputError
from fedplan.flower.averaging import Weights, average, average_metrics
from fedplan.flower.exchange import Answer, Clock, Post, WallClock
from fedplan.flower.metrics import (
    LEARNING_RATE,
    LOCAL_STEPS,
    NOT_FINITE,
    SEED,
    SERVER_ROUND,
    Border,
    Contribution,
    Evaluated,
    Layout,
    Rejected,
)
from fedplan.flower.roster import Roster
from fedplan.models.draws import draw_cohort
from fedplan.records import Observation, RoundRecord, RunRecord, Status, Stop, Watch
from fedplan.theory.learning_rate import LearningRate

LOG = logging.getLogger(__name__)
Evaluate = Callable[[int, ArrayRecord], tuple[float, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """How long a round waits, and what makes it count.

    deadline_s : for an answer; what comes later is not used.
    wait_s : for enough clients to be there.
    min_replies : answers that make a round; None for all K, as the plan has it.
    max_repeats : how often other clients are asked in place of those that failed.
    """

    deadline_s: float = 3600.0
    wait_s: float = 300.0
    min_replies: int | None = None
    max_repeats: int = 3

    def __post_init__(self) -> None:
        problems = []
        if not self.deadline_s > 0:
            problems.append(f"`deadline_s > 0` must hold, but got {self.deadline_s}.")
        if not self.wait_s >= 0:
            problems.append(f"`wait_s >= 0` must hold, but got {self.wait_s}.")
        if self.min_replies is not None and self.min_replies < 1:
            problems.append(f"`min_replies >= 1` must hold, but got {self.min_replies}.")
        if self.max_repeats < 0:
            problems.append(f"`max_repeats >= 0` must hold, but got {self.max_repeats}.")
        if problems:
            raise InputError(problems)

    def needed(self, clients_per_round: int) -> int:
        """Answers that make a round of so many clients."""
        return min(self.min_replies or clients_per_round, clients_per_round)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands: its rounds, and the model after the last of them."""

    rounds: tuple[RoundRecord, ...]
    weights: Weights


class Journal(Protocol):
    """Keeps runs as they go, so that one that was cut off goes on."""

    def recall(self, clients_per_round: int, local_steps: int, seed: int) -> State | None:
        """Where a run stands; None where it has not begun."""
        ...

    def keep(
        self,
        clients_per_round: int,
        local_steps: int,
        seed: int,
        record: RoundRecord,
        weights: Weights,
    ) -> None:
        """Keep one more round, and the model after it."""
        ...

    def finish(self, run: RunRecord) -> None:
        """Keep how a run has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """One round as it ends: for progress, and for whoever decides while training goes on.

    metrics : the apps' own, averaged over the cohort.
    """

    clients_per_round: int
    local_steps: int
    record: RoundRecord
    metrics: dict[str, float]


class _Failed(Exception):  # noqa: N818
    """A round that could not be made."""

    def __init__(self, status: Status, message: str, observations: Sequence[Observation]) -> None:
        super().__init__(message)
        self.status, self.observations = status, tuple(observations)


class FlowerRunner:
    """Trains on the nodes of a grid, from `initial_arrays`.

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
        initial_arrays: ArrayRecord,
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
        report: Callable[[RoundReport], bool | None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.journal, self.report = journal, report
        self.weights: Weights = {}  # after the last round of the last run
        self._layout = Layout(initial_arrays)
        self._border = Border(self._layout)
        self._evaluate, self._learning_rate = evaluate, learning_rate
        self._rules = rules or RoundRules()
        self._configs = (train_config or ConfigRecord(), evaluate_config or ConfigRecord())
        self._metrics = (loss_metric, accuracy_metric)
        self._post = Post(grid, clock or WallClock())
        self._roster = Roster(self._post, self._rules.deadline_s, names)

    @property
    def num_clients(self) -> int:
        """Clients known: those that are there, and those that were."""
        self._roster.settle()
        return len(self._roster.names)

    @property
    def evaluates_centrally(self) -> bool:
        """Whether the server evaluates the model, not the clients."""
        return self._evaluate is not None

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients call themselves, in the order of their numbers."""
        return tuple(self._roster.names)

    def run(
        self, clients_per_round: int, local_steps: int, stop: Stop, *, seed: int = 0
    ) -> RunRecord:
        """Train with K clients a round and E local steps until `stop` says so."""
        self._check(clients_per_round, local_steps, stop)
        setting = (clients_per_round, local_steps, seed)
        state = self.journal.recall(*setting) if self.journal else None
        run = self._continue(setting, stop, state)
        if self.journal is not None and run.status != "unfinished":
            self.journal.finish(run)
        return run

    def probe(self, local_steps: int) -> tuple[Observation, ...]:
        """Have every client there train once, from the first weights; nothing is averaged."""
        self._roster.settle()
        observations, _ = self._ask(
            list(self._roster.present), self._layout.arrays, local_steps, seed=0, round_=0
        )
        return tuple(observations)

    def _continue(
        self, setting: tuple[int, int, int], stop: Stop, state: State | None
    ) -> RunRecord:
        clients, steps, seed = setting
        begun = RunRecord(
            clients_per_round=clients, local_steps=steps, seed=seed, status="unfinished",
            rounds=state.rounds if state else (),
        )  # fmt: skip
        self.weights = state.weights if state else self._layout.arrays
        if (ended := begun.until(stop)) is not None:
            return ended
        watch = _watching(stop, begun.rounds)
        rounds = list(begun.rounds)
        while True:
            round_ = rounds[-1].round + 1 if rounds else 0
            try:
                made, weights, metrics = self._make_round(setting, round_)
            except _Failed as failure:
                return replace(
                    begun, status=failure.status, rounds=tuple(rounds), message=str(failure)
                )
            status = watch.spend(round_, made.seconds, made.joules)
            if made.loss is None or not math.isfinite(made.loss):
                return replace(begun, status="diverged", rounds=tuple(rounds))
            status = "target" if watch.arrives(made.loss) else status
            rounds.append(made)
            self.weights = weights
            if self.journal is not None:
                self.journal.keep(*setting, made, self.weights)
            left = self._tell(setting, made, metrics)
            if status is not None or left:
                return replace(begun, status=status or "unfinished", rounds=tuple(rounds))

    def _tell(
        self, setting: tuple[int, int, int], made: RoundRecord, metrics: dict[str, float]
    ) -> bool:
        if self.report is None:
            return False
        told = RoundReport(
            clients_per_round=setting[0], local_steps=setting[1], record=made, metrics=metrics
        )
        return bool(self.report(told))

    def _make_round(
        self, setting: tuple[int, int, int], round_: int
    ) -> tuple[RoundRecord, Weights, dict[str, float]]:
        """Train, average and evaluate; round 0 only evaluates."""
        made = RoundRecord(
            round=round_, loss=None, accuracy=None, cohort=(), seconds=0.0, joules=0.0
        )
        weights, metrics = self.weights, {}
        if round_ > 0:
            made, parts = self._train(setting, made)
            weights, metrics = average(self.weights, parts), average_metrics(parts)
        loss, accuracy = self._measure(weights, round_)
        return replace(made, loss=loss, accuracy=accuracy), weights, metrics

    def _train(
        self, setting: tuple[int, int, int], made: RoundRecord
    ) -> tuple[RoundRecord, list[Contribution]]:
        """Ask K clients, and others in place of those that fail, until enough have answered."""
        clients, steps, seed = setting
        start = self._post.clock.now()
        parts: dict[int, Contribution] = {}
        observations: list[Observation] = []
        for attempt in range(self._rules.max_repeats + 1):
            wanted = self._deal(clients, seed, made.round, set(parts), observations)
            seen, fresh = self._ask(wanted, self.weights, steps, seed=seed, round_=made.round)
            observations += seen
            parts |= fresh
            if len(parts) >= self._rules.needed(clients):
                break
            if attempt == self._rules.max_repeats:
                raise _too_few(len(parts), clients, made.round, observations)
        cohort = tuple(sorted(parts))
        ordered = [parts[client] for client in cohort]
        made = replace(
            made,
            cohort=cohort,
            seconds=self._post.clock.now() - start,
            joules=math.fsum(part.joules or 0.0 for part in ordered),
            observations=tuple(observations),
        )
        return made, ordered

    def _deal(
        self,
        clients_per_round: int,
        seed: int,
        round_: int,
        answered: set[int],
        observations: Sequence[Observation],
    ) -> list[int]:
        """Whom to ask now: the round's cohort, then the next of the deal for those that failed.

        Where nobody is left, those that failed are asked again.
        """
        if not self._roster.wait_for(clients_per_round, self._rules.wait_s):
            there = len(self._roster.present)
            raise _Failed(
                "unavailable",
                f"Round {round_} needs {clients_per_round} clients, but after "
                f"{self._rules.wait_s:g} s {there} are there. Start more nodes, or lower "
                "clients_per_round.",
                observations,
            )
        present = list(self._roster.present)
        failed = {one.client for one in observations} - answered
        wanted = clients_per_round - len(answered)
        chosen: list[int] = []
        for size in range(clients_per_round, len(present) + 1):
            dealt = [present[place] for place in draw_cohort(seed, round_, len(present), size)]
            chosen = [one for one in dealt if one not in answered and one not in failed]
            if len(chosen) >= wanted:
                break
        again = [client for client in present if client in failed]
        return sorted([*chosen, *again][:wanted])

    def _ask(
        self, clients: Sequence[int], weights: Weights, local_steps: int, *, seed: int, round_: int
    ) -> tuple[list[Observation], dict[int, Contribution]]:
        """Have these clients train; what was observed of each, and what can be used."""
        config = ConfigRecord(dict(self._configs[0]))
        config[LOCAL_STEPS], config[SERVER_ROUND], config[SEED] = local_steps, round_, seed
        if self._learning_rate is not None:
            config[LEARNING_RATE] = self._learning_rate.at(max(round_ - 1, 0))
        parts: dict[int, Contribution] = {}
        seen: dict[int, Observation] = {}

        def receive(client: int, answer: Answer) -> None:
            part, problem = None, answer.problem
            if answer.reply is not None:
                try:
                    part = self._border.trained(
                        client, answer.reply, local_steps, answer.seconds or 0.0
                    )
                    parts[client] = part
                except Rejected as reason:
                    problem = str(reason)
            if problem:
                LOG.warning("Round %d, client %d is not used: %s.", round_, client, problem)
            seen[client] = Observation(
                client=client,
                local_steps=local_steps,
                train_seconds=part.train_seconds if part else None,
                round_trip_seconds=answer.seconds,
                joules=part.joules if part else None,
                problem=problem,
            )

        self._exchange(clients, weights, config, "train", round_, receive)
        return [seen[client] for client in clients], parts

    def _exchange(
        self,
        clients: Sequence[int],
        weights: Weights,
        config: ConfigRecord,
        message_type: str,
        round_: int,
        receive: Callable[[int, Answer], None],
    ) -> None:
        """Send the model to these clients, and hand on what comes back, or that nothing did."""
        present = self._roster.present
        arrays = to_record(weights)
        content = {present[c]: RecordDict({"arrays": arrays, "config": config}) for c in clients}
        client_of = {present[client]: client for client in clients}
        heard: set[int] = set()

        def received(node: int, answer: Answer) -> None:
            heard.add(node)
            receive(client_of[node], answer)

        answers = self._post.exchange(
            content, message_type, str(round_), self._rules.deadline_s, received
        )
        for node in answers.keys() - heard:
            receive(client_of[node], answers[node])

    def _measure(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        if not all(np.isfinite(value).all() for value in weights.values()):
            return math.nan, None
        if self._evaluate is not None:
            return self._evaluate(round_, to_record(weights))
        return self._ask_for_loss(weights, round_)

    def _ask_for_loss(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        """The mean over the clients; NaN where most of them find NaN, and one alone does not."""
        if not self._roster.wait_for(1, self._rules.wait_s):
            raise _Failed("unavailable", "No client is there to evaluate the model.", ())
        config = ConfigRecord({**self._configs[1], SERVER_ROUND: round_})
        parts: dict[int, Evaluated] = {}
        problems: list[str] = []

        def receive(client: int, answer: Answer) -> None:
            if answer.reply is None:
                problems.append(answer.problem)
                return
            try:
                parts[client] = self._border.evaluated(client, answer.reply, *self._metrics)
            except Rejected as reason:
                problems.append(str(reason))

        clients = list(self._roster.present)
        self._exchange(clients, weights, config, "evaluate", round_, receive)
        if not parts:
            raise _Failed(
                "unavailable",
                f"No client has evaluated the model after round {round_}: {problems[0]}.",
                (),
            )
        sound = [parts[c] for c in sorted(parts) if math.isfinite(parts[c].loss)]
        if 2 * len(sound) <= len(parts):
            return math.nan, None
        total = math.fsum(part.examples for part in sound)
        loss = math.fsum(part.loss * part.examples for part in sound) / total
        right = [part.accuracy for part in sound]
        if None in right:
            return loss, None
        return loss, math.fsum((p.accuracy or 0.0) * p.examples for p in sound) / total

    def _check(self, clients_per_round: int, local_steps: int, stop: Stop) -> None:
        problems = []
        if clients_per_round > self.num_clients:
            self._roster.wait_for(clients_per_round, self._rules.wait_s)
        if not 1 <= clients_per_round <= len(self._roster.names):
            problems.append(
                "`1 <= clients_per_round <= num_clients` must hold, but got clients_per_round="
                f"{clients_per_round}, num_clients={len(self._roster.names)}."
            )
        if local_steps < 1:
            problems.append(f"`local_steps >= 1` must hold, but got local_steps={local_steps}.")
        if stop.max_rounds < 1:
            problems.append(f"`max_rounds >= 1` must hold, but got max_rounds={stop.max_rounds}.")
        if problems:
            raise InputError(problems)


def to_record(weights: Weights) -> ArrayRecord:
    """The model as Flower sends it."""
    return ArrayRecord({name: Array(value) for name, value in weights.items()})


def _watching(stop: Stop, rounds: Sequence[RoundRecord]) -> Watch:
    """A watch that has seen these rounds."""
    watch = Watch(stop)
    for record in rounds:
        watch.spend(record.round, record.seconds, record.joules)
        if record.loss is not None:
            watch.arrives(record.loss)
    return watch


def _too_few(
    answered: int, clients_per_round: int, round_: int, observations: Sequence[Observation]
) -> _Failed:
    problems = [(one.client, one.problem) for one in observations if one.problem]
    not_finite = sum(problem == NOT_FINITE for _, problem in problems)
    client, last = problems[-1]
    return _Failed(
        "diverged" if 2 * not_finite > len(problems) else "unavailable",
        f"Round {round_} needs {clients_per_round} answers, but got {answered} that can be used, "
        f"and {len(problems)} that cannot; the last of those from client {client}: {last}.",
        observations,
    )
