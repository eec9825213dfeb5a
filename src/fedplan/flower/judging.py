"""Judging: the loss of a model, evaluated by the server or by the clients."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, MetricRecord

from fedplan.core.records import RoundRecord
from fedplan.errors import FedplanError, InputError
from fedplan.flower.conduct import Conduct
from fedplan.flower.exchange import Order
from fedplan.flower.log import LOG
from fedplan.flower.models import Models, Weights, to_record
from fedplan.flower.replies import SERVER_ROUND, Evaluated, Rejected
from fedplan.flower.rounds import Made, Rounds
from fedplan.flower.rules import FailedRound

Evaluate = Callable[[int, ArrayRecord], tuple[float, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judge:
    """Evaluates models; `FlowerRunner` explains its parts."""

    rounds: Rounds
    evaluate: Evaluate | None
    config: ConfigRecord
    metrics: tuple[str, str]

    def judged(self, made: Made, models: Models, conduct: Conduct, *, both: bool) -> Made:
        """The round with the better of the average and the last model after it.

        The last one is evaluated as often as in the simulator. Clients evaluate only the average,
        since that takes a round trip, if the strategy wants it or nobody else tells the loss.
        """
        record, average, last_loss = made.record, models.average(), None
        if not all(np.isfinite(value).all() for value in average.values()):
            return replace(made, record=replace(record, loss=math.nan))
        if self.evaluate is None:
            loss, accuracy, evaluated = self._ask_for_loss(average, record, conduct)
        else:
            loss, accuracy = self.evaluate(record.round, to_record(average))
            evaluated = self._ask(average, record, conduct)[0] if record.round else None
            looks = both or record.round % models.averaged == 0
            if models.averaged > 1 and looks:
                last_loss, last_accuracy = self.evaluate(record.round, to_record(models.weights))
                if last_loss < loss:
                    loss, accuracy = last_loss, last_accuracy
        record = replace(record, loss=loss, accuracy=accuracy, model_loss=last_loss)
        return replace(made, record=record, evaluated=evaluated)

    def _ask_for_loss(
        self, weights: Weights, record: RoundRecord, conduct: Conduct
    ) -> tuple[float, float | None, MetricRecord | None]:
        """Loss and accuracy by the clients' evaluation; NaN where most of them find NaN."""
        roster, rules = self.rounds.roster, self.rounds.rules
        if not roster.wait_for(1, rules.wait_s):
            raise FailedRound("unavailable", "No client is there to evaluate the model.")
        found, problems = self._ask(weights, record, conduct)
        if found is None and not problems:
            raise InputError(
                "nothing tells the loss: no evaluate_fn is given, and the strategy asks no client "
                "to evaluate. Give one, or let clients evaluate (fraction_evaluate=1.0)."
            )
        if found is None:
            text = f"No client has evaluated the model after round {record.round}: {problems[0]}."
            raise FailedRound("unavailable", text)
        loss_metric, accuracy_metric = self.metrics
        loss, accuracy = found.get(loss_metric), found.get(accuracy_metric)
        if not isinstance(loss, int | float):
            raise FedplanError(
                f"the strategy has made of the clients' evaluation {sorted(found)}, without a "
                f"number {loss_metric}. Give Planned the loss_metric that it has."
            )
        return float(loss), float(accuracy) if isinstance(accuracy, int | float) else None, found

    def _ask(
        self, weights: Weights, record: RoundRecord, conduct: Conduct
    ) -> tuple[MetricRecord | None, list[str]]:
        """What the strategy makes of the clients' evaluations, and what was wrong with answers.

        Clients are waited for as if they trained, which takes longer.
        """
        roster, strategy, round_ = self.rounds.roster, self.rounds.strategy, record.round
        client_of = {node: client for client, node in roster.present.items()}
        config = ConfigRecord({**self.config, SERVER_ROUND: round_})
        messages = strategy.ask_to_evaluate(
            round_, weights, config, self.rounds.post.grid, list(client_of)
        )
        # A strategy may remember nodes that have gone.
        orders = {client_of[n]: Order.of(one) for n, one in messages.items() if n in client_of}
        parts: dict[int, Evaluated] = {}
        problems: list[str] = []
        steps = record.setting.local_steps if record.setting else 1
        deadline_s = conduct.deadline_s(orders, steps, self.rounds.rules.deadline_s)
        for client, answer in self.rounds.exchange(orders, round_, deadline_s, conduct.spread):
            problem = answer.problem
            if answer.reply is not None:
                try:
                    checks = self.rounds.checks
                    parts[client] = checks.evaluated(client, answer.reply, *self.metrics)
                except Rejected as reason:
                    problem = str(reason)
            if problem:
                problems.append(problem)
                LOG.warning("Evaluation after round %d, client %d is not used: %s.", round_, client,
                            problem)  # fmt: skip
        sound = [parts[one] for one in sorted(parts) if math.isfinite(parts[one].loss)]
        if parts and 2 * len(sound) <= len(parts):
            return MetricRecord({self.metrics[0]: math.nan}), problems
        return strategy.average_evaluations(round_, sound) if sound else None, problems
