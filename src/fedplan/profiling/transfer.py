"""The time of a model exchange: its bytes, down from a server and up again.

The protocol, over plain TCP: the client sends a magic word and a size; the server answers with one
byte, yes or no, and so many bytes; the client sends as many back, and the server confirms by one
byte more. That is an exchange; others may follow on the same connection. The bytes are noise that
nobody looks at. Nothing is stored or interpreted, and sizes, counts and waits are bounded.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from fedplan.errors import FedplanError, InputError
from fedplan.profiling.meters import Meter, Window, metered
from fedplan.profiling.regression import Measured, median_of

DEFAULT_PORT = 8765
BYTES_PER_PARAMETER = 4
MOST_BYTES = 1 << 30
MOST_EXCHANGES = 5_000  # of one connection
FEWEST_EXCHANGES = 5  # that are counted
_REQUEST = struct.Struct("!8sQ")
_MAGIC = b"fedplan1"
_YES, _NO = b"\x06", b"\x15"
# How long either side tolerates silence. The client tolerates more: another device may come first,
# and if that is gone, the server notices only after its own limit.
_SERVER_SILENCE_S, _CLIENT_SILENCE_S = 10.0, 30.0
_CONNECTION_S = 900.0  # how long a connection may last in all
# Noise, so that nothing on the way makes it smaller; longer than the window of common compressors.
_NOISE = os.urandom(1 << 18)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, option: str) -> Address:
    """HOST:PORT as an address.

    >>> str(parse_address("[::1]:8765", "--server")), parse_address("pi", "--server").port
    ('[::1]:8765', 8765)
    """
    found = re.fullmatch(r"(?:\[([^][]+)\]|([^][:]+))(?::(\d{1,5}))?", text, re.ASCII)
    with suppress(UnicodeError):  # a name with two dots in a row, or with a part that is too long
        if found and (port := int(found[3] or DEFAULT_PORT)) <= 65535:
            host = found[1] or found[2]
            host.encode("idna")
            return Address(host, port)
    raise InputError(
        f"{option} must be HOST:PORT with a port up to 65535, as in 127.0.0.1:{DEFAULT_PORT} "
        f"or [::1]:{DEFAULT_PORT}, but got {text!r}."
    )


def open_listener(address: Address, *, allow_network: bool = False) -> socket.socket:
    """A socket to `serve` on, for this machine alone unless the network is allowed."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InputError(f"--listen: {address.host} is no address ({error.strerror}).") from error
    if not allow_network and not ipaddress.ip_address(str(place[0]).split("%")[0]).is_loopback:
        raise InputError(
            f"--listen {address} is open to the network, and whoever reaches it can keep this "
            f"machine sending and receiving (up to {MOST_BYTES >> 30} GiB per exchange, nothing "
            "encrypted, nobody asked for a password). Add --allow-network if that is meant, on a "
            "network you trust, while devices are measured; or listen on 127.0.0.1."
        )
    try:
        return socket.create_server(place[:2], family=family, backlog=16)
    except OSError as error:
        raise FedplanError(
            f"cannot listen on {address} ({error.strerror}). Choose another."
        ) from error


def serve(listener: socket.socket, report: Callable[[str], None] = lambda _: None) -> None:
    """Exchange bytes with anyone who connects, for ever, one device at a time.

    One at a time, because two would share the line and each would measure half of it. A peer's
    error ends its connection and is reported.
    """
    while True:
        connection, peer = listener.accept()
        with connection:
            try:
                done = _serve_one(connection)
                report(f"{peer[0]}: {done} exchanges")
            except (OSError, FedplanError) as error:
                report(f"{peer[0]}: refused or lost ({error})")


def _serve_one(connection: socket.socket) -> int:
    """Serve one connection to its end; how many exchanges it made."""
    line = _Line(connection, _SERVER_SILENCE_S)
    for done in range(MOST_EXCHANGES):
        if line.has_ended():
            return done
        magic, size = _REQUEST.unpack(line.receive(_REQUEST.size))
        if magic != _MAGIC:
            raise FedplanError("this is not a fedplan profile")
        if not 0 < size <= MOST_BYTES:
            line.send(_NO)
            raise FedplanError(f"asked for {size:,} bytes; at most {MOST_BYTES:,} are exchanged")
        line.send(_YES)
        line.send_noise(size)
        line.receive_noise(size)
        line.send(_YES)
    return MOST_EXCHANGES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTiming:
    """How long an exchange takes; `window` covers those that count."""

    comm_time_s: Measured
    num_exchanges: int
    window: Window


def time_exchanges(
    server: Address, size: int, *, seconds: float, meter: Meter | None = None
) -> ExchangeTiming:
    """Time exchanges of `size` bytes down and up on one connection, as many as fit in `seconds`.

    The first is not counted: it opens the connection, as a federation's client does only once.
    """
    if not 0 < size <= MOST_BYTES:
        raise InputError(f"a model of {size:,} bytes is not exchanged: at most {MOST_BYTES:,} are.")
    took: list[float] = []
    try:
        with socket.create_connection(
            (server.host, server.port), timeout=_CLIENT_SILENCE_S
        ) as connection:
            line = _Line(connection, _CLIENT_SILENCE_S)
            _exchange(line, size)
            with metered(meter) as window:
                end = time.perf_counter() + seconds
                while len(took) < MOST_EXCHANGES - 1:
                    started = time.perf_counter()
                    _exchange(line, size)
                    took.append(time.perf_counter() - started)
                    if len(took) >= FEWEST_EXCHANGES and time.perf_counter() >= end:
                        break
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise FedplanError(
            f"--server {server}: no exchange with it ({reason}). Start `fedplan profile --listen` "
            "there, see that no firewall is between, and that no other device is being measured."
        ) from error
    return ExchangeTiming(comm_time_s=median_of(took), num_exchanges=len(took), window=window)


def _exchange(line: _Line, size: int) -> None:
    line.send(_REQUEST.pack(_MAGIC, size))
    if line.receive(1) != _YES:
        raise ConnectionError("the server refused")
    line.receive_noise(size)
    line.send_noise(size)
    if line.receive(1) != _YES:
        raise ConnectionError("the server did not confirm")


class _Line:
    """A connection with a limit on every wait, and on all of them together."""

    def __init__(self, connection: socket.socket, silence_s: float) -> None:
        self._connection = connection
        self._silence_s = silence_s
        self._end = time.monotonic() + _CONNECTION_S
        self._buffer = memoryview(bytearray(1 << 18))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _wait_at_most(self) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"longer than {_CONNECTION_S:g} s in all")
        self._connection.settimeout(min(left, self._silence_s))

    def send(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            self._wait_at_most()
            rest = rest[self._connection.send(rest) :]

    def send_noise(self, size: int) -> None:
        noise = memoryview(_NOISE)
        while size:
            part = noise[: min(size, len(noise))]
            self.send(part)
            size -= len(part)

    def has_ended(self) -> bool:
        """Whether the peer has closed the connection instead of sending more."""
        self._wait_at_most()
        return not self._connection.recv(1, socket.MSG_PEEK)

    def receive(self, size: int) -> bytes:
        return b"".join(map(bytes, self._parts(size)))

    def receive_noise(self, size: int) -> None:
        for _ in self._parts(size):
            pass

    def _parts(self, size: int) -> Iterator[memoryview]:
        """So many bytes as they come; each part is overwritten by the next."""
        while size:
            self._wait_at_most()
            count = self._connection.recv_into(self._buffer, min(size, len(self._buffer)))
            if count == 0:
                raise ConnectionError("the other side closed the connection")
            yield self._buffer[:count]
            size -= count
