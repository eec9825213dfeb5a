"""Connections: nobody can block others by sending nothing or half a request."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

MOST_CONNECTIONS = 400  # far below the 1,024 files that a process may usually have open
HEAD_SECONDS = 10.0  # from the first byte of a request, or from the connection, to its last header
_ANSWER_SECONDS = 60.0  # after which a connection that does not read its answer counts as idle


def guarded(protocol: Any) -> Any:
    """A protocol of uvicorn's that gives up requests whose head does not come.

    Once there are `MOST_CONNECTIONS`, each new one replaces the one that has been idle for longest,
    of the address that has most.
    """
    return type("Guarded", (_Connection, protocol), {"places": set()})


if TYPE_CHECKING:
    _Protocol = Any
else:
    _Protocol = object


class _Connection(_Protocol):  # type: ignore[misc]
    """One connection, and the places that all of them have."""

    places: set[_Connection]

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._end: asyncio.TimerHandle | None = None
        self.since = time.monotonic()
        super().connection_made(transport)
        self.host = str((transport.get_extra_info("peername") or ("",))[0])
        if len(self.places) >= MOST_CONNECTIONS and not _make_room(self.places):
            transport.abort()
            return
        self.places.add(self)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.places.discard(self)
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._end is None and not self.is_asking:
            self._expect_head()
        super().data_received(data)
        if self.is_asking:
            self._expect_nothing()

    def on_response_complete(self) -> None:
        self.since = time.monotonic()
        super().on_response_complete()

    @property
    def is_asking(self) -> bool:
        """Whether a request has come that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_idle(self) -> bool:
        """Whether it keeps a place for nothing."""
        return not self.is_asking or time.monotonic() - self.since >= _ANSWER_SECONDS

    def give_up(self) -> None:
        """Close it, whatever is under way."""
        self.places.discard(self)
        self.transport.abort()

    def _expect_head(self) -> None:
        self.since = time.monotonic()
        self._end = self.loop.call_later(HEAD_SECONDS, self.give_up)

    def _expect_nothing(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


def _make_room(places: set[_Connection]) -> bool:
    """Give up one connection that keeps a place for nothing, if there is any."""
    idle = [each for each in places if each.is_idle]
    if not idle:
        return False
    most = Counter(each.host for each in places)
    min(idle, key=lambda each: (-most[each.host], each.since)).give_up()
    return True
