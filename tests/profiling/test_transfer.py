"""Exchanges with a real server: their times, and what hostile peers come to."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from children import start

from fedplan.errors import FedplanError, InputError
from fedplan.profiling import open_listener, serve, time_exchanges
from fedplan.profiling.meters import ConstantMeter
from fedplan.profiling.transfer import MOST_BYTES, Address, parse_address

LISTEN = [sys.executable, "-m", "fedplan.cli", "profile", "--listen", "127.0.0.1:0"]


@pytest.fixture(scope="module")
def server():
    """A listener in a process of its own."""
    with start(LISTEN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        try:
            words = it.stdout.readline().split()
            assert words[:2] == ["Listening", "on"]
            yield parse_address(words[2].rstrip(";"), "--server")
            assert it.poll() is None, "the listener survives every peer"
        finally:
            it.terminate()


def test_exchanges_are_timed(server):
    timing = time_exchanges(server, 250_000, seconds=0.2, meter=ConstantMeter(2.0))
    assert timing.num_exchanges >= 5
    comm = timing.comm_time_s
    assert 0 < comm.low <= comm.value <= comm.high < 5
    assert timing.window.joules == pytest.approx(2 * timing.window.seconds, rel=0.05)
    # At least five, however short the time; a model that takes many parts.
    assert time_exchanges(server, 3_000_001, seconds=1e-9).num_exchanges == 5
    assert time_exchanges(server, 1, seconds=0.01).comm_time_s.value > 0


def slow_line(listener, target, bytes_per_second):
    """Stand between a device and its server, and let through so many bytes a second each way."""

    def pass_on(source, sink):
        while data := source.recv(10_000):
            time.sleep(len(data) / bytes_per_second)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

    device, _ = listener.accept()
    upstream = socket.create_connection((target.host, target.port))
    ways = [
        threading.Thread(target=pass_on, args=pair, daemon=True)
        for pair in ((device, upstream), (upstream, device))
    ]
    with device, upstream:
        for way in ways:
            way.start()
        for way in ways:
            way.join()


def test_a_slow_line_takes_as_long_as_its_bandwidth_says(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = threading.Thread(target=slow_line, args=(listener, server, 2e6))
        line.start()
        timing = time_exchanges(Address(*listener.getsockname()), 100_000, seconds=0.1)
        line.join()
    # 0.05 s down and 0.05 s up; sleeping takes a little longer than asked for.
    assert 0.09 < timing.comm_time_s.value < 0.4


def talk(server, *messages, shut=True):
    """Send raw bytes; what the server says until it hangs up."""
    with socket.create_connection((server.host, server.port), timeout=10) as peer:
        for message in messages:
            peer.sendall(message)
        if shut:
            peer.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := peer.recv(65536):
                answer += part
        except ConnectionResetError:
            pass  # it hung up on bytes it had not read
        return answer


@pytest.mark.parametrize("size", [0, MOST_BYTES + 1, 2**63, 2**64 - 1])
def test_a_hostile_length_is_refused_at_once(server, size):
    assert talk(server, struct.pack("!8sQ", b"fedplan1", size), shut=False) == b"\x15"


def test_strangers_are_hung_up_on(server):
    assert talk(server, b"GET / HTTP/1.1\r\n\r\n", shut=False) == b""
    assert talk(server, b"\x80\x04\x95" + b"\0" * 40, shut=False) == b""
    assert talk(server) == b""
    assert talk(server, b"fedplan1\0") == b""  # half a request
    # A peer that leaves in the middle of its upload gets the download and no confirmation.
    answer = talk(server, struct.pack("!8sQ", b"fedplan1", 1000), b"x" * 500)
    assert len(answer) == 1001 and answer[:1] == b"\x06"
    assert time_exchanges(server, 1000, seconds=0.01).num_exchanges >= 5


def test_a_server_that_lies_or_leaves_is_an_error_of_one_line():
    for answer in (b"", b"\x15", b"\x06" + b"x" * 10, b"SSH-2.0-OpenSSH\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def once(listener=listener, answer=answer):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(16)
                    peer.sendall(answer)

            thread = threading.Thread(target=once)
            thread.start()
            with pytest.raises(FedplanError, match="no exchange with it"):
                time_exchanges(Address(*listener.getsockname()), 1000, seconds=0.1)
            thread.join()


def test_nobody_there_says_what_to_start():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = Address(*gone.getsockname())
    with pytest.raises(FedplanError, match="fedplan profile --listen"):
        time_exchanges(address, 1000, seconds=0.1)
    with pytest.raises(InputError, match="at most"):
        time_exchanges(address, MOST_BYTES + 1, seconds=0.1)


def test_a_listener_open_to_the_network_must_be_meant():
    with pytest.raises(InputError, match="--allow-network"):
        open_listener(Address("0.0.0.0", 0))  # noqa: S104
    with open_listener(Address("0.0.0.0", 0), allow_network=True) as listener:  # noqa: S104
        assert listener.getsockname()[1] > 0
    with open_listener(Address("localhost", 0)) as first:
        taken = Address(*first.getsockname()[:2])
        with pytest.raises(FedplanError, match="cannot listen"):
            open_listener(taken)
    with pytest.raises(InputError, match="no address"):
        open_listener(Address("no.such.host.invalid", 0))


def test_what_was_served_is_reported():
    seen = []
    listener = open_listener(Address("127.0.0.1", 0))
    address = Address(*listener.getsockname())
    threading.Thread(target=serve, args=(listener, seen.append), daemon=True).start()
    timing = time_exchanges(address, 10, seconds=0.01)
    talk(address, b"hello, is anybody there?", shut=False)
    talk(address)  # served in turn, so the reports of those before are there
    assert seen[0] == f"127.0.0.1: {timing.num_exchanges + 1} exchanges"
    assert seen[1] == "127.0.0.1: refused or lost (this is not a fedplan profile)"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("pi.local", "pi.local", 8765),
        ("[::1]:9", "::1", 9),
        ("[::1]", "::1", 8765),
    ],
)
def test_addresses(text, host, port):
    assert parse_address(text, "--server") == Address(host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":80",
        "pi:",
        "pi:x",
        "pi:70000",
        "pi:-1",
        "::1",
        "pi:٣",
        "a..b:80",
        "p" * 64,
        "[::1",
        "::1]",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(InputError, match="--server must be HOST:PORT"):
        parse_address(text, "--server")
