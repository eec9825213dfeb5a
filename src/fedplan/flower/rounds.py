"""One round on a live federation: whom to ask, and which answers to use."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import ConfigRecord, MetricRecord

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Observation, RoundRecord
from fedplan.core.setting import Setting
from fedplan.core.signal import Signal
from fedplan.flower.conduct import AWAY, RESTS, Conduct
from fedplan.flower.epochs import Asked, Epochs
from fedplan.flower.exchange import Answer, Order, Post
from fedplan.flower.log import LOG
from fedplan.flower.models import Weights
from fedplan.flower.replies import (
    LEARNING_RATE,
    LOCAL_STEPS,
    SEED,
    SERVER_ROUND,
    SKETCH_SEED,
    Contribution,
    Rejected,
    ReplyChecks,
)
from fedplan.flower.roster import Roster
from fedplan.flower.rules import FailedRound, RoundRules, too_few
from fedplan.flower.sketching import Sketcher
from fedplan.flower.wrapped import Wrapped
from fedplan.participation import Uniform
from fedplan.participation.draws import pick
from fedplan.participation.grouping import RAREST
from fedplan.profiling.observed import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A round, the model after it, and what the strategy made of the clients' own metrics.

    metrics, evaluated : of training, and of the clients' evaluation; None if there are none.
    """

    record: RoundRecord
    weights: Weights
    metrics: MetricRecord | None = None
    evaluated: MetricRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a round is made with; a `sketcher` if it is to tell what half of its steps did."""

    round: int
    setting: Setting
    seed: int
    weights: Weights
    sketcher: Sketcher | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rounds:
    """Makes rounds; `FlowerRunner` explains its parts."""

    post: Post
    roster: Roster
    strategy: Wrapped
    checks: ReplyChecks
    rules: RoundRules
    learning_rate: LearningRate | None
    train_config: ConfigRecord
    epochs: Epochs | None = None

    def make(self, turn: Turn, ledger: Ledger, conduct: Conduct) -> Made:
        """Train and average; the loss is not known yet."""
        is_drawn = isinstance(turn.setting.participation, Uniform)
        started = self.post.clock.now()
        ask = self._ask_until_enough if is_drawn else self._ask_group
        observations, parts = ask(turn, conduct)
        seconds = self.post.clock.now() - started
        conduct.hear(observations)
        ledger.hear(observations)
        cohort = tuple(sorted(parts))
        ordered = [parts[client] for client in cohort]
        shares = _by_examples(ordered) if is_drawn else self._by_law(turn, cohort, ledger)
        record = RoundRecord(
            round=turn.round,
            cohort=cohort,
            shares=shares,
            setting=turn.setting,
            seconds=seconds,
            joules=math.fsum(part.joules or 0.0 for part in ordered),
            observations=tuple(observations),
            signal=self._signal(turn, parts, shares),
        )
        weights, metrics = self.strategy.average(
            turn.round, self.checks.layout, turn.weights, ordered, shares
        )
        return Made(record=record, weights=weights, metrics=metrics)

    def _signal(
        self, turn: Turn, parts: Mapping[int, Contribution], shares: Sequence[float]
    ) -> Signal | None:
        """What the round says of its local steps, if anything."""
        if turn.sketcher is None:
            return None
        cohort = sorted(parts)
        updates = [
            (share, parts[client].weights, parts[client].halfway)
            for client, share in zip(cohort, shares, strict=True)
        ]
        if self.epochs is not None:
            halves = [parts[client].asked.half for client in cohort]
            return turn.sketcher.one_sided(turn.weights, updates, halves)
        signal, dropped = turn.sketcher.signal(turn.weights, updates)
        for place in dropped:
            self.checks.drop_sketch(cohort[place], "it is far longer than the whole update")
        return signal

    def _ask_group(
        self, turn: Turn, conduct: Conduct
    ) -> tuple[list[Observation], dict[int, Contribution]]:
        """Ask those whose turn it is; those that are away or fail are left out until the next."""
        if not self.roster.wait_for(1, self.rules.wait_s):
            raise FailedRound(
                "unavailable",
                f"Round {turn.round} has nobody to ask: after {self.rules.wait_s:g} s no client is "
                "there. Start nodes.",
            )
        everyone = np.ones(len(self.roster.names))
        drawn = turn.setting.participation.cohort(everyone, turn.seed, turn.round).clients.tolist()
        present = self.roster.present
        missed = {client: AWAY for client in drawn if client not in present}
        missed |= {c: RESTS for c in drawn if c in present and conduct.rests(c)}
        asked = [client for client in drawn if client not in missed]
        seen, parts = self._collect(self._orders(asked, turn, conduct), turn, conduct)
        for problem in dict.fromkeys(missed.values()):
            who = ", ".join(str(client) for client in missed if missed[client] == problem)
            LOG.warning("Round %d goes without client %s: %s.", turn.round, who, problem)
        seen += [_observed(client, turn, problem) for client, problem in missed.items()]
        return sorted(seen, key=lambda one: one.client), parts

    def _by_law(self, turn: Turn, cohort: Sequence[int], ledger: Ledger) -> tuple[float, ...]:
        """The shares of those that answered, by the samples known by now.

        They are cut for a client that turns out to have far more than its group was made for.
        """
        samples = ledger.samples(len(self.roster.names))
        whole = turn.setting.participation.cohort(samples, turn.seed, turn.round)
        shares = dict(zip(whole.clients.tolist(), whole.shares.tolist(), strict=True))
        return tuple(min(shares[client], RAREST) for client in cohort)

    def _ask_until_enough(
        self, turn: Turn, conduct: Conduct
    ) -> tuple[list[Observation], dict[int, Contribution]]:
        """Ask K clients, and others in place of those that fail, until enough have answered.

        A client that replaces another gets its order: the strategy is asked once per round.
        """
        clients, _ = turn.setting.pair
        parts: dict[int, Contribution] = {}
        observations: list[Observation] = []
        orders = self._orders(self._deal(turn, conduct, set(), observations), turn, conduct)
        for attempt in range(self.rules.max_repeats + 1):
            seen, fresh = self._collect(orders, turn, conduct)
            observations += seen
            parts |= fresh
            if len(parts) >= self.rules.needed(clients):
                break
            if attempt == self.rules.max_repeats:
                raise too_few(len(parts), clients, turn.round, observations)
            left = [order for client, order in orders.items() if client not in parts]
            others = self._deal(turn, conduct, set(parts), observations)
            orders = dict(zip(others, left, strict=False))  # fewer, where nodes have left
        return observations, parts

    def _deal(
        self, turn: Turn, conduct: Conduct, answered: set[int], observations: Sequence[Observation]
    ) -> list[int]:
        """Whom to ask now: the round's cohort, then the next of the deal for those that failed.

        If nobody else is left, those that failed now or in earlier rounds are asked again.
        """
        clients, _ = turn.setting.pair
        if not self.roster.wait_for(clients, self.rules.wait_s):
            there = len(self.roster.present)
            raise FailedRound(
                "unavailable",
                f"Round {turn.round} needs {clients} clients, but after "
                f"{self.rules.wait_s:g} s {there} are there. Start more nodes, or lower "
                "clients_per_round.",
            )
        present = list(self.roster.present)
        failed = {one.client for one in observations} - answered
        failed |= {client for client in present if conduct.rests(client)} - answered
        wanted = clients - len(answered)
        chosen: list[int] = []
        for size in range(clients, len(present) + 1):
            places = pick(turn.seed, turn.round, len(present), size)
            dealt = [present[place] for place in places]
            chosen = [one for one in dealt if one not in answered and one not in failed]
            if len(chosen) >= wanted:
                break
        again = [client for client in present if client in failed]
        return sorted([*chosen, *again][:wanted])

    def _orders(self, clients: Sequence[int], turn: Turn, conduct: Conduct) -> dict[int, Order]:
        """What the strategy has these clients do."""
        if not clients:
            return {}
        config = ConfigRecord(dict(self.train_config))
        config[LOCAL_STEPS] = turn.setting.local_steps
        config[SERVER_ROUND], config[SEED] = turn.round, turn.seed
        if self.learning_rate is not None:
            config[LEARNING_RATE] = self.learning_rate.at(max(turn.round - 1, 0))
        if turn.sketcher is not None and self.epochs is None:
            config[SKETCH_SEED] = turn.seed
        present = self.roster.present
        nodes = [present[client] for client in clients]
        messages = self.strategy.ask_to_train(
            turn.round, turn.weights, config, self.post.grid, nodes
        )
        asked = Asked(turn.setting.local_steps)
        if self.epochs is not None:
            half = turn.sketcher is not None and conduct.halves(clients)
            asked = self.epochs.ask(turn.setting.local_steps, half=half)
            for message in messages.values():
                for record in message.content.config_records.values():
                    record[self.epochs.key], record[LOCAL_STEPS] = asked.epochs, asked.steps
        return {one: Order.of(messages[present[one]], asked) for one in clients}

    def _collect(
        self, orders: Mapping[int, Order], turn: Turn, conduct: Conduct
    ) -> tuple[list[Observation], dict[int, Contribution]]:
        """Have clients train; what was observed of each, and what can be used."""
        steps = max((order.asked.steps for order in orders.values() if order.asked), default=1)
        deadline_s, spread = self.rules.deadline_s, math.inf
        if not self.post.is_simulated:  # where clients wait for each other
            deadline_s = conduct.deadline_s(orders, steps, deadline_s)
            spread = conduct.spread
        parts: dict[int, Contribution] = {}
        seen: dict[int, Observation] = {}
        for client, answer in self.exchange(orders, turn.round, deadline_s, spread):
            seen[client] = _observed(client, turn, answer.problem, answer.seconds)
            if answer.reply is not None:
                try:
                    asked = orders[client].asked or Asked(steps)
                    part = self.checks.trained(client, answer.reply, asked, answer.seconds or 0.0)
                except Rejected as reason:
                    seen[client] = replace(seen[client], problem=str(reason))
                else:
                    parts[client] = part
                    seen[client] = replace(
                        seen[client],
                        local_steps=part.asked.steps,
                        round_trip_seconds=self._own_seconds(answer, part),
                        train_seconds=part.train_seconds,
                        joules=part.joules,
                        examples=part.examples,
                    )
            if problem := seen[client].problem:
                LOG.warning("Round %d, client %d is not used: %s.", turn.round, client, problem)
        return [seen[client] for client in orders], parts

    def _own_seconds(self, answer: Answer, part: Contribution) -> float | None:
        """A client's round trip; in a simulation, without its wait for the machine's cores."""
        if answer.seconds is None or not self.post.is_simulated:
            return answer.seconds
        return max(answer.seconds - part.waited_seconds, part.train_seconds)

    def exchange(
        self, orders: Mapping[int, Order], round_: int, deadline_s: float, spread: float = math.inf
    ) -> Iterator[tuple[int, Answer]]:
        """Give clients their orders, and yield each one's answer, or that there was none."""
        present = self.roster.present
        client_of = {present[client]: client for client in orders}
        to_send = {present[client]: order for client, order in orders.items()}
        for node, answer in self.post.exchange(to_send, str(round_), deadline_s, spread):
            yield client_of[node], answer


def _observed(client: int, turn: Turn, problem: str, seconds: float | None = None) -> Observation:
    return Observation(
        client=client,
        local_steps=turn.setting.local_steps,
        train_seconds=None,
        round_trip_seconds=seconds,
        problem=problem,
    )


def _by_examples(parts: Sequence[Contribution]) -> tuple[float, ...]:
    total = sum(part.examples for part in parts)
    return tuple(part.examples / total for part in parts)
