"""The client's side: what an app needs so that fedplan can plan for it.

Two lines of a Flower app change. `ClientApp()` becomes `MeasuredClientApp()`, and the training
function goes through `training_steps(message, weights)`, whatever the framework:

>>> from flwr.app import MetricRecord, RecordDict
>>> app = MeasuredClientApp()
>>> @app.train()
... def train(message, context):
...     arrays = message.content["arrays"]
...     for _ in training_steps(message, lambda: arrays):  # the weights as they are by then
...         ...  # one step of SGD on one batch
...     metrics = MetricRecord({"num-examples": 100})
...     return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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
    WHO,
)
from fedplan.flower.sketching import Sketcher

# On a message: the steps that were read from it, and the sketch of the update half-way.
_ASKED, _TOLD = "_fedplan_local_steps", "_fedplan_halfway"
Handler = Callable[[Message, Context], Message]


def node_name(context: Context) -> str | None:
    """What a node is called: its `name`, else by its `partition-id`; None where it has neither."""
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
    steps = message.content.config_records.get("config", ConfigRecord()).get(LOCAL_STEPS)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise FedplanError(
            f"the message says no number of local steps (its config has {LOCAL_STEPS}={steps!r}). "
            "Use fedplan.flower.PlannedFedAvg on the server, or send it there: "
            f'train_config=ConfigRecord({{"{LOCAL_STEPS}": 10}}).'
        )
    vars(message)[_ASKED] = steps
    return steps


def training_steps(message: Message, weights: Callable[[], ArrayRecord]) -> Iterator[int]:
    """The steps of SGD to do, one after the other, as the plan has it.

    weights : the model as it is by then, as it will be replied with. It is asked for once, when
        half of the steps are done, and a few hundred numbers that sketch its change are sent along:
        they tell the server whether more local steps would pay.
    """
    steps = local_steps(message)
    for step in range(steps):
        if step and step == steps // 2 and wants_sketch(message):
            tell_halfway(message, weights())
        yield step


def wants_sketch(message: Message) -> bool:
    """Whether the server asks for the update half-way."""
    return SKETCH_SEED in message.content.config_records.get("config", ConfigRecord())


def tell_halfway(message: Message, weights: ArrayRecord) -> None:
    """Have the reply tell a sketch of what training has changed when half of the steps are done."""
    seed = message.content.config_records["config"][SKETCH_SEED]
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
        start = self._clock()
        try:
            reply = call_next(message, context)
        finally:
            seconds = self._clock() - start
            if self._meter is not None:
                joules = self._meter.stop()
        metrics = _metrics_of(reply)
        metrics[TRAIN_SECONDS] = seconds
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
    """The record to add to: the one with the examples, for Flower's strategies allow only one."""
    records = reply.content.metric_records
    for record in records.values():
        if NUM_EXAMPLES in record:
            return record
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
