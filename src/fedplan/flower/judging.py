"""Judging: the loss of a model, by the server or by all clients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord

from fedplan.core.records import RoundRecord
from fedplan.flower.models import Models, Weights, to_record
from fedplan.flower.replies import SERVER_ROUND, Evaluated, Rejected
from fedplan.flower.rounds import Rounds
from fedplan.flower.rules import FailedRound

Evaluate = Callable[[int, ArrayRecord], tuple[float, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Evaluates models; `FlowerRunner` explains its parts."""

    rounds: Rounds
    evaluate: Evaluate | None
    config: ConfigRecord
    metrics: tuple[str, str]

    def judged(self, record: RoundRecord, models: Models, *, both: bool) -> RoundRecord:
        """The round with the better of the average and the last model after it.

        The last one is looked at as often as simulated. Where clients evaluate, which takes a round
        trip, the average alone is judged.
        """
        loss, accuracy = self._measure(models.average(), record.round)
        last_loss = None
        looks = both or record.round % models.averaged == 0
        if models.averaged > 1 and self.evaluate is not None and looks:
            last_loss, last_accuracy = self._measure(models.weights, record.round)
            if last_loss < loss:
                loss, accuracy = last_loss, last_accuracy
        return replace(record, loss=loss, accuracy=accuracy, model_loss=last_loss)

    def _measure(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        if not all(np.isfinite(value).all() for value in weights.values()):
            return math.nan, None
        if self.evaluate is not None:
            return self.evaluate(round_, to_record(weights))
        return self._ask_for_loss(weights, round_)

    def _ask_for_loss(self, weights: Weights, round_: int) -> tuple[float, float | None]:
        """The mean over the clients; NaN where most of them find NaN, and one alone does not."""
        roster, rules = self.rounds.roster, self.rounds.rules
        if not roster.wait_for(1, rules.wait_s):
            raise FailedRound("unavailable", "No client is there to evaluate the model.")
        config = ConfigRecord({**self.config, SERVER_ROUND: round_})
        parts: dict[int, Evaluated] = {}
        problems: list[str] = []
        asked = list(roster.present)
        for client, answer in self.rounds.exchange(asked, weights, config, "evaluate", round_):
            if answer.reply is None:
                problems.append(answer.problem)
                continue
            try:
                parts[client] = self.rounds.checks.evaluated(client, answer.reply, *self.metrics)
            except Rejected as reason:
                problems.append(str(reason))
        if not parts:
            raise FailedRound(
                "unavailable",
                f"No client has evaluated the model after round {round_}: {problems[0]}.",
            )
        return _mean([parts[client] for client in sorted(parts)])


def _mean(parts: list[Evaluated]) -> tuple[float, float | None]:
    sound = [part for part in parts if math.isfinite(part.loss)]
    if 2 * len(sound) <= len(parts):
        return math.nan, None
    total = math.fsum(part.examples for part in sound)
    loss = math.fsum(part.loss * part.examples for part in sound) / total
    right = [part.accuracy for part in sound]
    if None in right:
        return loss, None
    return loss, math.fsum((p.accuracy or 0.0) * p.examples for p in sound) / total
