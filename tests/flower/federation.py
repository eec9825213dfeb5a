"""A federation in this process: Flower's Grid, running a real ClientApp on real messages.

Time is virtual: it passes when the server waits, and for a client while it trains. The server
looks for replies when it would on a real clock, but not where none can be there yet. Every message
goes over the wire format and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np
from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.task_identity import TaskIdentity

from fedplan.core.learning_rate import LearningRate
from fedplan.flower import FlowerRunner, RoundRules, exchange
from fedplan.flower.app import client_app, pack, unpack
from fedplan.flower.exchange import POLL_S

TICKS = 1024  # a second: whole ticks make differences of times exact
# Virtual time would pass to the deadline while a busy machine is still reading an answer.
exchange.PATIENCE_S = 60.0


class VirtualClock:
    """Seconds that pass when somebody says so."""

    def __init__(self):
        self._ticks = 0
        self._of_client = 0
        self.next_reply = lambda: math.inf  # when it is there

    def now(self):
        return self._ticks / TICKS

    def sleep(self, seconds):
        self._ticks += _ticks(seconds)

    def wait(self, seconds):
        """Sleep from one poll to the next until a reply is there, or so long."""
        until = min(self.next_reply() - self.now(), seconds)
        polls = max(1, math.ceil(until * TICKS / _ticks(POLL_S)))
        self._ticks += min(polls * _ticks(POLL_S), _ticks(seconds))

    def client_now(self):
        return (self._ticks + self._of_client) / TICKS

    def train(self, seconds):
        self._of_client += round(seconds * TICKS)

    def take(self):
        """Seconds the client has taken since it was last asked."""
        ticks, self._of_client = self._of_client, 0
        return ticks / TICKS


def _ticks(seconds):
    return max(1, math.ceil(seconds * TICKS))


class TimedLearner:
    """A learner whose local steps take (virtual) time, on every client its own."""

    def __init__(self, learner, clock, step_s):
        self._learner, self._clock, self._step_s = learner, clock, step_s
        self.joules = self._joules_before = 0.0
        self.all_samples = learner.samples()

    def __getattr__(self, name):
        return getattr(self._learner, name)

    def start(self):
        self._joules_before = self.joules

    def stop(self):
        return self.joules - self._joules_before

    def train_round(self, weights, cohort, shares, steps, rate, seed, round_, halfway=None):
        self._learner.train_round(weights, cohort, shares, steps, rate, seed, round_, halfway)
        self._clock.train(steps * self._step_s[cohort[0]])
        self.joules += 2.0 * steps


@dataclass
class Node:
    """One node; `tamper` changes what it trained, `comm_s` is how long messages take."""

    config: dict
    comm_s: float = 0.5
    tamper: Callable[[Message, Message], Message | None] | None = None
    tamper_evaluation: Callable[[Message, Message], Message | None] | None = None
    nameless: bool = False  # never says who it is
    state: RecordDict = field(default_factory=RecordDict)


class InProcessGrid(Grid):
    """Runs one app on every node; a reply is there once its time has come."""

    def __init__(self, app, nodes: dict[int, Node], clock: VirtualClock):
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
        self.app, self.nodes, self.clock = app, nodes, clock
        self.sent: list[Message] = []
        self.run_config: dict[str, str | int | float | bool] = {}
        self._replies: dict[str, tuple[float, Message]] = {}
        clock.next_reply = self._next_reply

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid4())
            self.sent.append(message)
            ids.append(message.metadata.message_id)
            if message.metadata.dst_node_id in self.nodes:
                self._answer(message)
        return ids

    def _answer(self, message):
        node = self.nodes[message.metadata.dst_node_id]
        received = over_the_wire(message)
        context = Context(1, message.metadata.dst_node_id, node.config, node.state, self.run_config)
        try:
            reply = self.app(received, context)
        except Exception as error:  # as Flower does
            reply = Message(Error(2, f"{type(error).__name__}: {error}"), reply_to=received)
        seconds = self.clock.take() + node.comm_s
        kind = message.metadata.message_type
        if node.tamper is not None and kind == "train":
            reply = node.tamper(message, reply)
        if node.tamper_evaluation is not None and kind == "evaluate":
            reply = node.tamper_evaluation(message, reply)
        if node.nameless and kind.startswith("query"):
            return
        if reply is not None:
            there = self.clock.now() + seconds
            self._replies[message.metadata.message_id] = (there, reply)

    def pull_messages(self, message_ids):
        for message_id in message_ids:
            there, reply = self._replies.get(message_id, (math.inf, None))
            if there <= self.clock.now():
                yield over_the_wire(reply)
                del self._replies[message_id]

    def _next_reply(self):
        """When the next reply is there; now, where one is there that nobody has read yet."""
        return min((there for there, _ in list(self._replies.values())), default=math.inf)

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError("fedplan pushes and pulls")


def over_the_wire(message: Message) -> Message:
    """What the other side gets."""
    contents = {id_: one.deflate() for id_, one in get_all_nested_objects(message).items()}
    copy = inflate_object_from_contents(message.object_id, contents)
    copy.metadata.__dict__["_message_id"] = message.metadata.message_id
    return copy


def make_nodes(count, *, first_id=1000, **options):
    """Nodes with odd ids, which say nothing about their partitions."""
    order = np.random.default_rng(first_id).permutation(count)
    return {
        first_id + 7 * int(place): Node({"partition-id": int(partition)}, **options)
        for place, partition in enumerate(order)
    }


@dataclass
class Federation:
    """A grid and everything around it."""

    learner: TimedLearner
    clock: VirtualClock
    grid: InProcessGrid
    rate: LearningRate

    @property
    def initial(self):
        return pack(self.learner.initial(0))

    def evaluate(self, _round, arrays):
        return self.learner.evaluate(unpack(arrays), self.learner.all_samples)

    def runner(self, **options):
        options.setdefault("rules", RoundRules(deadline_s=60.0, wait_s=10.0))
        options.setdefault("evaluate", self.evaluate)
        options.setdefault("learning_rate", self.rate)
        return FlowerRunner(self.grid, self.initial, clock=self.clock, **options)

    def node_of(self, partition):
        return next(
            node for node in self.grid.nodes.values() if node.config["partition-id"] == partition
        )


def federation_of(learner, step_s, comm_s, rate, first_id=1000):
    """Nodes that train the learner's clients, each with its seconds of a step and of messages."""
    clock = VirtualClock()
    timed = TimedLearner(learner, clock, step_s)
    app = client_app(lambda _context: timed, meter=timed, clock=clock.client_now)
    nodes = make_nodes(len(step_s), first_id=first_id)
    for node in nodes.values():
        node.comm_s = float(comm_s[node.config["partition-id"]])
    return Federation(timed, clock, InProcessGrid(app, nodes, clock), rate)
