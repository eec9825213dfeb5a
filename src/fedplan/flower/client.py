"""The client side: what an app needs so that fedplan can plan for it.

`ClientApp()` becomes `MeasuredClientApp()`, and the training loop takes its batches from
`steps(message, weights, batches)`, whatever the framework:

>>> from flwr.app import MetricRecord, RecordDict
>>> app = MeasuredClientApp()
>>> @app.train()
... def train(message, context):
...     arrays, batches = message.content["arrays"], [1, 2, 3]
...     for batch in steps(message, lambda: arrays, batches):  # the weights as they are by then
...         ...  # one step of SGD on one batch
...     metrics = MetricRecord({"num-examples": 100})
...     return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Protocol

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedplan.errors import FedplanError
from fedplan.flower.replies import (
    HALFWAY,
    JOULES,
    LOCAL_STEPS,
    NAME,
    NUM_EXAMPLES,
    SKETCH_SEED,
    STEPS_DONE,
    TRAIN_SECONDS,
    WAITED_SECONDS,
    WHO,
)
from fedplan.flower.sketching import Sketcher

# On a message: the steps that were read from it, and the sketch of the update half-way.
_ASKED, _TOLD = "_fedplan_local_steps", "_fedplan_halfway"
Handler = Callable[[Message, Context], Message]


def node_name(context: Context) -> str | None:
    """What a node is called: its `name`, else by its `partition-id`; None if it has neither."""
    config = context.node_config
    if "name" in config:
        return str(config["name"])
    return partition_name(config["partition-id"]) if "partition-id" in config else None


def partition_name(partition: object) -> str:
    """What the node of a partition is called."""
    return f"partition-{partition}"


class Meter(Protocol):
    """Whatever counts the joules a device uses."""

    def start(self) -> None:
        """Begin to count."""
        ...

    def stop(self) -> float:
        """Joules since the start."""
        ...


class MeasuredClientApp(ClientApp):
    """A ClientApp that says how long its training took, and who it is.

    mods : of your own; they see what the measurement has added.
    meter : counts the joules of this device while it trains; without one, none are reported.
    name : what this node is called, however often it restarts.
    clock : seconds, for tests.

    What is measured goes into the metrics the training function replies with, so that the app works
    under Flower's own strategies too.
    """

    def __init__(
        self,
        *,
        mods: list[Any] | None = None,
        meter: Meter | None = None,
        name: Callable[[Context], str | None] = node_name,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # Last, and so next to the function: other mods' work is not training.
        super().__init__(mods=[*(mods or []), _Measure(meter, clock)])
        self.query(WHO.partition(".")[2])(_introducing(name))


def local_steps(message: Message) -> int:
    """How many steps of SGD the training function is to do, as the plan has it."""
    asked = _from_config(message, LOCAL_STEPS)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise FedplanError(
            f"the message says no number of local steps (its config has {LOCAL_STEPS}={asked!r}). "
            "Use fedplan.flower.Planned on the server, or send it there: "
            f'train_config=ConfigRecord({{"{LOCAL_STEPS}": 10}}).'
        )
    vars(message)[_ASKED] = asked
    return asked


def _from_config(message: Message, key: str) -> object:
    """What the server has sent under this key, whatever its strategy calls the record."""
    records = message.content.config_records.values()
    return next((record[key] for record in records if key in record), None)


def steps(message: Message, weights: Any, batches: Iterable[Any] | None = None) -> Steps:
    """The batches to train on, one for each local step, as the plan has it.

    weights : the model: one of PyTorch, or a function that returns it as an ArrayRecord, as it
        will be replied with. It is looked at once, when half of the steps are done, and a few
        hundred numbers that sketch its change are sent along: they tell the server whether more
        local steps would pay.
    batches : whatever the loop goes over, a DataLoader say; it is iterated as often as needed.
        Without it, steps are numbered from 0.

    A loop over epochs may stay: the first epoch has all of the steps, and others have none.
    """
    return Steps(message, weights, batches)


class Steps:
    """What `steps` returns: an iterable that ends when the steps are done, of that length."""

    def __init__(self, message: Message, weights: Any, batches: Iterable[Any] | None) -> None:
        self._message, self._weights = message, weights
        self._steps, self._done = local_steps(message), 0
        self._batches = count() if batches is None else _over_and_over(batches)

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        while self._done < self._steps:
            if self._done and self._done == self._steps // 2 and wants_sketch(self._message):
                tell_halfway(self._message, self._model())
            self._done += 1
            yield next(self._batches)

    def _model(self) -> ArrayRecord:
        model = self._weights
        found = model.state_dict() if hasattr(model, "state_dict") else model()
        return found if isinstance(found, ArrayRecord) else ArrayRecord(found)


def _over_and_over(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise FedplanError("there is no batch to train on: the training data is empty.")


def wants_sketch(message: Message) -> bool:
    """Whether the server asks for the update half-way."""
    return _from_config(message, SKETCH_SEED) is not None


def tell_halfway(message: Message, weights: ArrayRecord) -> None:
    """Have the reply sketch what training has changed after half of the steps."""
    seed = _from_config(message, SKETCH_SEED)
    if not isinstance(seed, int):
        raise FedplanError(f"{SKETCH_SEED} must be a whole number, but the server sent {seed!r}.")
    (sent,) = message.content.array_records.values()
    old = {name: array.numpy() for name, array in sent.items()}
    new = {name: array.numpy() for name, array in weights.items()}
    vars(message)[_TOLD] = Sketcher(old, seed)(new, old).tolist()


class _Measure:
    """The mod: times the training function, and adds what it measured to the reply's metrics."""

    def __init__(self, meter: Meter | None, clock: Callable[[], float]) -> None:
        self._meter, self._clock = meter, clock

    def __call__(self, message: Message, context: Context, call_next: Handler) -> Message:
        if message.metadata.message_type.partition(".")[0] != "train":
            return call_next(message, context)
        joules = None
        if self._meter is not None:
            self._meter.start()
        start, waited = self._clock(), time.time() - message.metadata.created_at
        try:
            reply = call_next(message, context)
        finally:
            seconds = self._clock() - start
            if self._meter is not None:
                joules = self._meter.stop()
        if reply.has_error():  # it says itself what went wrong
            return reply
        metrics = _metrics_of(reply)
        metrics[TRAIN_SECONDS], metrics[WAITED_SECONDS] = seconds, waited
        if joules is not None:
            metrics[JOULES] = joules
        # Only what was asked for can have been done; a loop that never asked is left without, and
        # the server refuses its reply rather than average a run of unknown length.
        if STEPS_DONE not in metrics and _ASKED in vars(message):
            metrics[STEPS_DONE] = vars(message)[_ASKED]
        if _TOLD in vars(message):
            metrics[HALFWAY] = vars(message)[_TOLD]
        return reply


def _metrics_of(reply: Message) -> MetricRecord:
    """The record to add to: Flower's strategies allow only one."""
    records = reply.content.metric_records
    if len(records) == 1:
        return next(iter(records.values()))
    raise FedplanError(
        f"the training function must reply with one MetricRecord that has {NUM_EXAMPLES!r}, the "
        f"number of samples it trains on, but its metric records are {sorted(records)}."
    )


def _introducing(name_of: Callable[[Context], str | None]) -> Handler:
    """Say what this node is called, which its id does not: that changes with every restart."""

    def introduce(message: Message, context: Context) -> Message:
        name = name_of(context)
        known = ConfigRecord() if name is None else ConfigRecord({NAME: name})
        return Message(RecordDict({"config": known}), reply_to=message)

    return introduce
