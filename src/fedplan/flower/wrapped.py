"""The wrapped strategy: Flower's hooks, called for the nodes and steps that fedplan chose.

A law's shares s_k need not add up to 1, and Flower's strategies average with weights that do. With
S the sum of the shares, they are given w + S (w_k - w) with the weight s_k / S: the mean of those
is w + sum of s_k (w_k - w), a median or an adaptive server rate sees the same updates, and where
S = 1 replies reach the strategy as they came.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedplan.errors import FedplanError, InputError
from fedplan.flower.models import Weights, to_record
from fedplan.flower.replies import (
    LOCAL_STEPS,
    NUM_EXAMPLES,
    Contribution,
    Evaluated,
    Layout,
    Metric,
)
from fedplan.flower.strategy_state import StrategyState, configuration_of

# What a strategy may ask for by itself; fedplan decides who trains, so these have no effect then.
_FEWEST = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
_USUAL = 2  # nodes that FedAvg wants unless told otherwise
_INSTEAD = {
    "min_train_nodes": "constraints=Constraints(min_clients_per_round={value})",
    "min_available_nodes": "min_clients={value}",
}
_LOOKS = 20  # at the nodes in one hook; a strategy that looks on waits for nodes that never come


class Chosen:
    """The grid, as if it had only these nodes."""

    def __init__(self, grid: Grid, nodes: Sequence[int], user: str) -> None:
        self._grid, self._nodes, self._user, self._looks = grid, list(nodes), user, 0

    def get_node_ids(self) -> Iterable[int]:
        """The nodes that fedplan has chosen."""
        self._looks += 1
        if self._looks > _LOOKS:
            raise FedplanError(
                f"{self._user} waits for more than the {len(self._nodes)} nodes that are to take "
                "part. fedplan decides who does: have it ask those that grid.get_node_ids() gives."
            )
        return list(self._nodes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)


class Wrapped:
    """A strategy of Flower's whose hooks are called for chosen nodes.

    strategy : any of the Message API; one that wraps another, like those of differential privacy,
        is checked and kept together with it.
    hooks : what is called, where that is not the strategy itself.
    """

    def __init__(self, strategy: Strategy, hooks: Strategy | None = None) -> None:
        self.strategy, self._hooks = strategy, hooks or strategy
        self.layers = layers_of(self.strategy)
        if problems := [text for layer in self.layers for text in _problems(layer)]:
            raise InputError(problems)
        self.configuration = configuration_of(self.layers)
        self._fresh = StrategyState.of(self.layers)
        keys = [layer.weighted_by_key for layer in self.layers if hasattr(layer, "weighted_by_key")]
        self.weight_key: str = keys[0] if keys else NUM_EXAMPLES

    def ask_to_train(
        self, round_: int, weights: Weights, config: ConfigRecord, grid: Grid, nodes: Sequence[int]
    ) -> dict[int, Message]:
        """The messages by which these nodes are asked to train."""
        name = f"{self._name}.configure_train"
        with self._among(len(nodes)):
            self._expect(len(nodes))
            chosen = cast(Grid, Chosen(grid, nodes, name))
            made = self._hooks.configure_train(round_, to_record(weights), config, chosen)
            messages = {message.metadata.dst_node_id: message for message in made}
        if messages.keys() != set(nodes):
            raise FedplanError(
                f"{name} has messages for {len(messages)} nodes, and {len(nodes)} are to train. "
                "fedplan decides who trains: have it ask every node of grid.get_node_ids()."
            )
        for message in messages.values():
            records = message.content.config_records.values()
            if not any(one.get(LOCAL_STEPS) == config[LOCAL_STEPS] for one in records):
                raise FedplanError(
                    f"{name} has messages without {LOCAL_STEPS}={config[LOCAL_STEPS]!r}. fedplan "
                    "decides how long clients train: send them the config that the hook is given."
                )
        return messages

    def ask_to_evaluate(
        self, round_: int, weights: Weights, config: ConfigRecord, grid: Grid, nodes: Sequence[int]
    ) -> dict[int, Message]:
        """The messages by which nodes are asked to evaluate: as many as the strategy wants."""
        with self._among(len(nodes)):
            chosen = cast(Grid, Chosen(grid, nodes, f"{self._name}.configure_evaluate"))
            made = self._hooks.configure_evaluate(round_, to_record(weights), config, chosen)
            return {message.metadata.dst_node_id: message for message in made}

    def average(
        self,
        round_: int,
        layout: Layout,
        old: Weights,
        parts: Sequence[Contribution],
        shares: Sequence[float],
    ) -> tuple[Weights, MetricRecord | None]:
        """The model that the strategy makes of a round, and its metrics; `old` if it makes none.

        The strategy does not hear of a round without any answer.
        """
        if not parts:
            return old, None
        self._expect(len(parts))
        replies = _scaled(old, parts, shares, self.weight_key)
        arrays, metrics = self._hooks.aggregate_train(round_, replies)
        if arrays is None:
            return old, metrics
        return layout.cast(arrays, f"{self._name}.aggregate_train"), metrics

    def average_evaluations(self, round_: int, parts: Sequence[Evaluated]) -> MetricRecord | None:
        """What the strategy makes of the clients' evaluations."""
        for part, metrics in zip(parts, _common(parts), strict=True):
            (name,) = part.reply.content.metric_records
            part.reply.content[name] = MetricRecord({**metrics, self.weight_key: part.examples})
        return self._hooks.aggregate_evaluate(round_, [part.reply for part in parts])

    def state(self) -> StrategyState:
        """What the strategy remembers."""
        return StrategyState.of(self.layers)

    def restore(self, state: StrategyState | None) -> None:
        """Have it remember that; without it, what it was made with."""
        (state or self._fresh).restore(self.layers)

    @property
    def _name(self) -> str:
        return type(self.strategy).__name__

    @contextmanager
    def _among(self, nodes: int) -> Iterator[None]:
        """Have the strategy wait for no more nodes than there are to choose from."""
        before = [
            (layer, name, getattr(layer, name))
            for layer in self.layers
            for name in _FEWEST
            if hasattr(layer, name)
        ]
        try:
            for layer, name, value in before:
                setattr(layer, name, min(value, nodes))
            yield
        finally:
            for layer, name, value in before:
                setattr(layer, name, value)

    def _expect(self, clients: int) -> None:
        """Tell differential privacy for how many clients its noise is."""
        for layer in self.layers:
            if hasattr(layer, "num_sampled_clients"):
                layer.num_sampled_clients = clients


def layers_of(strategy: Strategy) -> list[Any]:
    """The strategy, the one that it wraps, and so on."""
    layers: list[Any] = []
    while isinstance(strategy, Strategy):
        layers.append(strategy)
        strategy = getattr(strategy, "strategy", None)  # type: ignore[assignment]
    return layers


def _problems(layer: Any) -> Iterator[str]:
    """What of a strategy cannot be honoured, and what to do instead."""
    name = type(layer).__name__
    if type(layer).start is not Strategy.start:
        yield (
            f"{name}.start cannot be honoured: training by plan has a loop of its own. Move what "
            "it does to the hooks of the strategy, or to evaluate_fn, which every round calls."
        )
    share = getattr(layer, "fraction_train", 1.0)
    if share != 1.0:
        yield (
            f"{name}(fraction_train={share:g}) cannot be honoured: fedplan decides who trains. "
            "Leave it out; constraints=Constraints(max_clients_per_round=...) limits how many, and "
            "plan=(K, E) fixes it."
        )
    for key, instead in _INSTEAD.items():
        if (value := getattr(layer, key, _USUAL)) > _USUAL:
            yield (
                f"{name}({key}={value}) cannot be honoured: fedplan decides who trains. "
                f"Give {instead.format(value=value)} instead."
            )


def _scaled(
    old: Weights, parts: Sequence[Contribution], shares: Sequence[float], weight_key: str
) -> list[Message]:
    """The replies, changed so that a weighted mean of them is what the law wants."""
    total, examples = math.fsum(shares), math.fsum(part.examples for part in parts)
    replies = []
    for part, share, metrics in zip(parts, shares, _common(parts), strict=True):
        content = part.reply.content
        (arrays,), (name,) = content.array_records, content.metric_records
        weight = share / total * examples
        own = part.examples if math.isclose(weight, part.examples) else weight
        content[name] = MetricRecord({**metrics, weight_key: own})
        if not math.isclose(total, 1.0):
            content[arrays] = ArrayRecord(
                {
                    name: Array(_moved(before, part.weights[name], total))
                    for name, before in old.items()
                }
            )
        replies.append(part.reply)
    return replies


def _common(parts: Sequence[Contribution | Evaluated]) -> list[dict[str, Metric]]:
    """The metrics that all clients have, as Flower wants it; lists must be of one length."""
    kept = [
        key
        for key in parts[0].metrics
        if all(key in part.metrics for part in parts)
        and len({np.shape(part.metrics[key]) for part in parts}) == 1
    ]
    return [{key: part.metrics[key] for key in kept} for part in parts]


def _moved(old: Any, new: Any, scale: float) -> Any:
    """The way from one array to another, taken `scale` times; whole numbers stay whole."""
    way = old + scale * (new.astype(np.float64) - old)
    return (way if old.dtype.kind == "f" else np.rint(way)).astype(old.dtype)
