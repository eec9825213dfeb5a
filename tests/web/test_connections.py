"""Half-sent requests: given up in time, and never in the way of others."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from served import end_server, start_server

from fedplan.web.connections import HEAD_SECONDS, MOST_CONNECTIONS

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@pytest.fixture
def own_server(tmp_path):
    server = start_server(tmp_path)
    yield server
    assert end_server(server) in (0, 130)


def half_open(stack, port, host="127.0.0.1"):
    """A connection from this address that sends half a request."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(host, 0))
    connection = stack.enter_context(made)
    connection.sendall(HALF)
    return connection


def answers_within(server, seconds):
    begun = time.monotonic()
    assert server.ask("GET", "/").status == 200
    return time.monotonic() - begun < seconds


def test_others_are_served_beside_1200_half_sent_requests(own_server):
    limit = (1024, 1024)
    resource.prlimit(own_server.process.pid, resource.RLIMIT_NOFILE, limit)
    assert own_server.plan(energy_weight=0.3).status == 200  # everything is loaded
    with ExitStack() as stack:
        for place in range(1200):
            half_open(stack, own_server.port)
            if place % 300 == 299:
                assert answers_within(own_server, HEAD_SECONDS / 2)  # none has been given up
        for _ in range(10):
            assert answers_within(own_server, HEAD_SECONDS / 2)  # none has been given up
    assert own_server.plan(energy_weight=0.3).status == 200


def test_who_has_most_connections_makes_room(own_server):
    with ExitStack() as stack:
        first = half_open(stack, own_server.port, "127.0.0.2")
        many = [half_open(stack, own_server.port) for _ in range(MOST_CONNECTIONS)]
        assert answers_within(own_server, 5.0)
        first.sendall(b"no\r\n\r\n")
        assert first.recv(9) == b"HTTP/1.1 "
        many[0].settimeout(5)
        with suppress(ConnectionResetError):
            assert many[0].recv(1) == b""


def test_a_request_that_does_not_come_is_given_up(own_server):
    with ExitStack() as stack:
        silent = stack.enter_context(socket.create_connection(("127.0.0.1", own_server.port)))
        fresh = half_open(stack, own_server.port)
        again = half_open(stack, own_server.port)
        again.sendall(b"no\r\n\r\n")
        assert again.recv(9) == b"HTTP/1.1 "
        while len(again.recv(1 << 16)) == 1 << 16:
            pass
        again.sendall(HALF)  # a second request on a connection that was answered
        begun = time.monotonic()
        for connection in (silent, fresh, again):
            connection.settimeout(20)
            drip(connection)
        assert 5 < time.monotonic() - begun < 10 * HEAD_SECONDS


def drip(connection):
    """Send a byte now and then until the other side has had enough."""
    connection.settimeout(0.5)
    for _ in range(40):
        try:
            if connection.recv(1 << 16) == b"":
                return
        except TimeoutError:
            pass
        except OSError:
            return
    raise AssertionError("it was never given up")
