"""Flower's Grid for light devices, so that fedplan's own runner trains on them unchanged."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from threading import Condition, Thread
from typing import Any
from uuid import uuid4

import numpy as np
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedplan.flower.app import pack, unpack
from fedplan.flower.client import partition_name
from fedplan.flower.exchange import POLL_S
from fedplan.flower.replies import (
    HALFWAY,
    LEARNING_RATE,
    LOCAL_STEPS,
    NAME,
    NUM_EXAMPLES,
    SEED,
    SERVER_ROUND,
    SKETCH_SEED,
    STEPS_DONE,
    TRAIN_SECONDS,
)
from light import receive, send

_FIRST_NODE = 1  # the node of client k is k + 1: no node of Flower's is 0
_TOGETHER_S = 0.002  # replies that come within this time are looked at together


class LightGrid(Grid):
    """Sends orders over the devices' connections; it is also the clock of whoever waits for them.

    late_s : of every reply, by how much training took longer than the device's own steps would.
    """

    now = staticmethod(time.monotonic)

    def __init__(self, connections: dict[int, socket.socket]) -> None:
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
        self._connections = connections
        self._sent: dict[str, Message] = {}
        self._replies: dict[str, Message] = {}
        self._news, self._is_new = Condition(), False
        self.late_s: list[float] = []
        for client in connections:
            Thread(target=self._listen, args=(client,), daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Let the time pass, but no longer than until a reply is there."""
        with self._news:
            if self._news.wait_for(lambda: self._is_new, min(POLL_S, seconds)):
                self._news.wait(_TOGETHER_S)
            self._is_new = False

    def set_run(self, run: Any) -> None:
        """There is one run."""

    @property
    def run(self) -> Any:
        """There is one run, and nobody asks for it."""
        raise NotImplementedError

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message to a node."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """One for each device."""
        return [client + _FIRST_NODE for client in self._connections]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send orders; who a device is, it has said when it connected."""
        ids = []
        for message in messages:
            vars(message.metadata)["_message_id"] = id_ = str(uuid4())
            client = message.metadata.dst_node_id - _FIRST_NODE
            with self._news:
                self._sent[id_] = message
            if message.metadata.message_type.startswith("query"):
                name = ConfigRecord({NAME: partition_name(client)})
                self._take(id_, RecordDict({"config": name}))
            else:
                self._order(client, id_, message.content)
            ids.append(id_)
        return ids

    def _order(self, client: int, id_: str, content: RecordDict) -> None:
        config = content.config_records["config"]
        order = {
            "id": id_,
            "steps": config[LOCAL_STEPS],
            "round": config[SERVER_ROUND],
            "seed": config[SEED],
            "rate": config[LEARNING_RATE],
            "sketch_seed": config.get(SKETCH_SEED),
        }
        send(self._connections[client], order, unpack(content.array_records["arrays"]))

    def _listen(self, client: int) -> None:
        while (heard := receive(self._connections[client])) is not None:
            about, body = heard
            model, sketch = body[: about["model_bytes"]], body[about["model_bytes"] :]
            metrics = MetricRecord(
                {
                    NUM_EXAMPLES: about["examples"],
                    TRAIN_SECONDS: about["seconds"],
                    STEPS_DONE: about["steps"],
                }
            )
            if sketch:
                metrics[HALFWAY] = np.frombuffer(sketch, dtype=np.float64).tolist()
            arrays = pack(np.frombuffer(model, dtype=np.float32))
            self.late_s.append(about["late"])
            self._take(about["id"], RecordDict({"arrays": arrays, "metrics": metrics}))

    def _take(self, id_: str, content: RecordDict) -> None:
        with self._news:
            message = self._sent.pop(id_)
            self._replies[id_] = Message(content, reply_to=message)
            self._is_new = True
            self._news.notify_all()

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies that are there."""
        with self._news:
            return [self._replies.pop(one) for one in message_ids if one in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Not used: fedplan pushes and pulls."""
        raise NotImplementedError
