"""Exchange: send messages to nodes and collect replies until a deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Protocol

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from httpx import HTTPError

from fedplan.flower.epochs import Asked
from fedplan.flower.replies import clean

POLL_S = 0.1
SLACK_S = 30.0  # for a client beyond its usual time: starting a process takes some when busy
PATIENCE_S = 0.25  # for one reply to be read, before the next one is looked at
# How much longer a message lives than its deadline, so that fedplan reports a late answer, and not
# Flower, which would say that the message is not in its database.
AFTERLIFE_S = 10.0


class Clock(Protocol):
    """Seconds that pass."""

    def now(self) -> float:
        """Seconds since some moment."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait until it is worth looking for replies again, at most so many seconds."""
        ...


class WallClock:
    """Real seconds, whatever happens to the date."""

    now = staticmethod(time.monotonic)
    wait = staticmethod(lambda seconds: time.sleep(min(POLL_S, seconds)))


@dataclass(frozen=True, slots=True)
class Order:
    """What a node is to do; `asked` where that is to train."""

    content: RecordDict
    message_type: str
    asked: Asked | None = None

    @classmethod
    def of(cls, message: Message, asked: Asked | None = None) -> Order:
        """The order in a strategy's message; deadline and group are the round's."""
        return cls(message.content, message.metadata.message_type, asked)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one message: a reply, or why there is none.

    seconds : from sending to the reply; None if none came.
    """

    reply: Message | None
    seconds: float | None
    problem: str = ""


class Post:
    """Sends messages and fetches their replies.

    A reply is matched to its message by the message's id, never by the sender that it names:
    errors that Flower reports in a node's place carry a useless sender. A message is asked for
    only while its deadline has not passed, so that no late reply is taken for one of another round.
    """

    def __init__(self, grid: Grid, clock: Clock) -> None:
        self.grid, self.clock = grid, clock
        # Flower's simulation engine: nodes are processes of this machine, and wait for its cores.
        self.is_simulated = type(grid).__name__ == "InMemoryGrid"
        self._reading: dict[str, Future[Answer | None]] = {}  # by message id: those being read

    def send(
        self, orders: Mapping[int, Order], group: str, deadline_s: float
    ) -> dict[int, Outgoing]:
        """Send each node its order."""
        start, ttl = self.clock.now(), deadline_s + AFTERLIFE_S
        messages = {
            node: Message(order.content, node, order.message_type, ttl=ttl, group_id=group)
            for node, order in orders.items()
        }
        accepted = set(self.grid.push_messages(list(messages.values())))
        return {
            node: Outgoing(
                message_id=message.metadata.message_id,
                sent=start,
                accepted=message.metadata.message_id in accepted,
            )
            for node, message in messages.items()
        }

    def fetch(self, outgoing: Mapping[int, Outgoing]) -> dict[int, Answer]:
        """The answers that are there, without waiting."""
        return {
            node: answer
            for node, sent in outgoing.items()
            if (answer := self._look(sent)) is not None
        }

    def exchange(
        self, orders: Mapping[int, Order], group: str, deadline_s: float, spread: float = math.inf
    ) -> Iterator[tuple[int, Answer]]:
        """Send, and yield each node's answer once it is there; missing ones at the deadline.

        spread : once half have answered, the others have so many times as long as these took, and
            `SLACK_S`.
        """
        waiting = self.send(orders, group, deadline_s)
        start = self.clock.now()
        while True:
            for node, answer in self.fetch(waiting).items():
                del waiting[node]
                if len(waiting) == len(orders) // 2:
                    took = max(self.clock.now() - start, POLL_S)
                    deadline_s = min(deadline_s, spread * took + SLACK_S)
                yield node, answer
            left = start + deadline_s - self.clock.now()
            if not waiting or left <= 0:
                break
            self.clock.wait(left)
        for node, sent in waiting.items():
            self._reading.pop(sent.message_id, None)
            yield node, Answer(None, None, f"no answer within {deadline_s:g} s")

    def _look(self, sent: Outgoing) -> Answer | None:
        """The answer, if it is there; one that takes long is read in the background.

        Flower announces a reply when its upload begins, and reads it when that has ended, however
        long it takes. A slow network must neither hold up what others have sent nor the deadline.
        """
        begun = self._reading.pop(sent.message_id, None)
        reading = begun or self._read(sent)
        try:
            return reading.result(timeout=0 if begun else PATIENCE_S)
        except TimeoutError:
            if reading.done():  # just now, or it was the reading that timed out
                return reading.result()
            self._reading[sent.message_id] = reading
            return None

    def _read(self, sent: Outgoing) -> Future[Answer | None]:
        reading: Future[Answer | None] = Future()

        def read() -> None:
            try:
                reading.set_result(self._fetch_one(sent))
            except Exception as error:
                reading.set_exception(error)

        # Not of a pool, whose threads would be waited for when the server ends.
        Thread(target=read, daemon=True).start()
        return reading

    def _fetch_one(self, sent: Outgoing) -> Answer | None:
        # One at a time, so that a malformed reply does not cost those of others.
        if not sent.accepted:
            return Answer(None, None, "the message could not be sent")
        try:
            replies = list(self.grid.pull_messages([sent.message_id]))
        except (HTTPError, OSError):  # the connection to Flower is lost, which is no client's doing
            raise
        except Exception as error:  # whatever Flower raises on a malformed reply
            problem = f"its answer cannot be read: {clean(repr(error))}"
            return Answer(None, self.clock.now() - sent.sent, problem)
        for reply in replies:
            if reply.metadata.reply_to_message_id == sent.message_id:
                return Answer(reply, self.clock.now() - sent.sent)
        return None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message under way."""

    message_id: str
    sent: float
    accepted: bool
