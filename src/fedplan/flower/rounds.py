"""One round on a live federation: who is asked, what of the answers is used, what the loss is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Observation, RoundRecord, Status
from fedplan.errors import InputError
from fedplan.flower.averaging import Weights, average, average_metrics
from fedplan.flower.border import (
    LEARNING_RATE,
    LOCAL_STEPS,
    NOT_FINITE,
    SEED,
    SERVER_ROUND,
    Border,
    Contribution,
    Evaluated,
    Rejected,
)
from fedplan.flower.exchange import Answer, Post
from fedplan.flower.log import LOG
from fedplan.flower.roster import Roster
from fedplan.participation.draws import pick
from fedplan.simulation import Job

Evaluate = Callable[[int, ArrayRecord], tuple[float, float | None]]


class FailedRound(Exception):  # noqa: N818
    """A round that could not be made; how the run ends with it, and why."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


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
class Made:
    """A round, the model after it, and the apps' own metrics, averaged over the cohort."""

    record: RoundRecord
    weights: Weights
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rounds:
    """Makes rounds; `FlowerRunner` explains its parts."""

    post: Post
    roster: Roster
    border: Border
    rules: RoundRules
    evaluate: Evaluate | None
    learning_rate: LearningRate | None
    train_config: ConfigRecord
    evaluate_config: ConfigRecord
    evaluate_metrics: tuple[str, str]

    def make(self, job: Job, round_: int, weights: Weights) -> Made:
        """Train, average and evaluate; round 0 only evaluates."""
        record = RoundRecord(
            round=round_, loss=None, accuracy=None, cohort=(), seconds=0.0, joules=0.0
        )
        metrics: dict[str, float] = {}
        if round_ > 0:
            record, parts = self._train(job, record, weights)
            weights, metrics = average(weights, parts), average_metrics(parts)
        loss, accuracy = self._measure(weights, round_)
        record = replace(record, loss=loss, accuracy=accuracy)
        return Made(record=record, weights=weights, metrics=metrics)

    def _train(
        self, job: Job, record: RoundRecord, weights: Weights
    ) -> tuple[RoundRecord, list[Contribution]]:
        """Ask K clients, and others in place of those that fail, until enough have answered."""
        clients, _ = job.setting.pair
        start = self.post.clock.now()
        parts: dict[int, Contribution] = {}
        observations: list[Observation] = []
        for attempt in range(self.rules.max_repeats + 1):
            wanted = self._deal(job, record.round, set(parts), observations)
            seen, fresh = self.ask(
                wanted, weights, job.setting.local_steps, seed=job.seed, round_=record.round
            )
            observations += seen
            parts |= fresh
            if len(parts) >= self.rules.needed(clients):
                break
            if attempt == self.rules.max_repeats:
                raise _too_few(len(parts), clients, record.round, observations)
        cohort = tuple(sorted(parts))
        ordered = [parts[client] for client in cohort]
        examples = sum(part.examples for part in ordered)
        record = replace(
            record,
            cohort=cohort,
            shares=tuple(part.examples / examples for part in ordered),
            setting=job.setting,
            seconds=self.post.clock.now() - start,
            joules=math.fsum(part.joules or 0.0 for part in ordered),
            observations=tuple(observations),
        )
        return record, ordered

    def _deal(
        self, job: Job, round_: int, answered: set[int], observations: Sequence[Observation]
    ) -> list[int]:
        """Whom to ask now: the round's cohort, then the next of the deal for those that failed.

        Where nobody is left, those that failed are asked again.
        """
        clients, _ = job.setting.pair
        if not self.roster.wait_for(clients, self.rules.wait_s):
            there = len(self.roster.present)
            raise FailedRound(
                "unavailable",
                f"Round {round_} needs {clients} clients, but after "
                f"{self.rules.wait_s:g} s {there} are there. Start more nodes, or lower "
                "clients_per_round.",
            )
        present = list(self.roster.present)
        failed = {one.client for one in observations} - answered
        wanted = clients - len(answered)
        chosen: list[int] = []
        for size in range(clients, len(present) + 1):
            places = pick(job.seed, round_, len(present), size)
            dealt = [present[place] for place in places]
            chosen = [one for one in dealt if one not in answered and one not in failed]
            if len(chosen) >= wanted:
                break
        again = [client for client in present if client in failed]
        return sorted([*chosen, *again][:wanted])

    def ask(
        self, clients: Sequence[int], weights: Weights, local_steps: int, *, seed: int, round_: int
    ) -> tuple[list[Observation], dict[int, Contribution]]:
        """Have these clients train; what was observed of each, and what can be used."""
        config = ConfigRecord(dict(self.train_config))
        config[LOCAL_STEPS], config[SERVER_ROUND], config[SEED] = local_steps, round_, seed
        if self.learning_rate is not None:
            config[LEARNING_RATE] = self.learning_rate.at(max(round_ - 1, 0))
        parts: dict[int, Contribution] = {}
        seen: dict[int, Observation] = {}

        def receive(client: int, answer: Answer) -> None:
            part, problem = None, answer.problem
            if answer.reply is not None:
                try:
                    part = self.border.trained(
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
        present = self.roster.present
        arrays = to_record(weights)
        content = {present[c]: RecordDict({"arrays": arrays, "config": config}) for c in clients}
        client_of = {present[client]: client for client in clients}
        heard: set[int] = set()

        def received(node: int, answer: Answer) -> None:
            heard.add(node)
            receive(client_of[node], answer)

        answers = self.post.exchange(
            content, message_type, str(round_), self.rules.deadline_s, received
        )
        for node in answers.keys() - heard:
            receive(client_of[node], answers[node])

    def _measure(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        if not all(np.isfinite(value).all() for value in weights.values()):
            return math.nan, None
        if self.evaluate is not None:
            return self.evaluate(round_, to_record(weights))
        return self._ask_for_loss(weights, round_)

    def _ask_for_loss(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        """The mean over the clients; NaN where most of them find NaN, and one alone does not."""
        if not self.roster.wait_for(1, self.rules.wait_s):
            raise FailedRound("unavailable", "No client is there to evaluate the model.")
        config = ConfigRecord({**self.evaluate_config, SERVER_ROUND: round_})
        parts: dict[int, Evaluated] = {}
        problems: list[str] = []

        def receive(client: int, answer: Answer) -> None:
            if answer.reply is None:
                problems.append(answer.problem)
                return
            try:
                parts[client] = self.border.evaluated(client, answer.reply, *self.evaluate_metrics)
            except Rejected as reason:
                problems.append(str(reason))

        clients = list(self.roster.present)
        self._exchange(clients, weights, config, "evaluate", round_, receive)
        if not parts:
            raise FailedRound(
                "unavailable",
                f"No client has evaluated the model after round {round_}: {problems[0]}.",
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


def to_record(weights: Weights) -> ArrayRecord:
    """The model as Flower sends it."""
    return ArrayRecord({name: Array(value) for name, value in weights.items()})


def _too_few(
    answered: int, clients_per_round: int, round_: int, observations: Sequence[Observation]
) -> FailedRound:
    problems = [(one.client, one.problem) for one in observations if one.problem]
    not_finite = sum(problem == NOT_FINITE for _, problem in problems)
    client, last = problems[-1]
    return FailedRound(
        "diverged" if 2 * not_finite > len(problems) else "unavailable",
        f"Round {round_} needs {clients_per_round} answers, but got {answered} that can be used, "
        f"and {len(problems)} that cannot; the last of those from client {client}: {last}.",
    )
