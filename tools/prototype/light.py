"""Light devices: a process for each, in a network namespace of its own, that trains when told to.

A client process of Flower takes three seconds of a core for every message, so two cores do not
carry twenty of them. These are forks of one process that has data and kernels loaded, stay alive,
and speak over TCP: an order with the weights comes in, trained weights go out. Kernel, packets,
queues and clocks are real. Computing is not: training is done at the speed of this machine, and the
device then waits until its own steps would have ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.core.signal import Sketch
from fedplan.errors import FedplanError
from fedplan.models import Learner
from processes import wait_until

PORT = 8100
Address = tuple[str, int]
Bytes = bytes | NDArray[Any]
_SIZES = struct.Struct(">II")
_CLONE_NEWNET = 0x40000000
_CONNECT_S = 30.0


@dataclass(frozen=True, slots=True)
class LightDevice:
    """A device that trains one client of a learner.

    namespace : where it is; None is that of its parent.
    """

    client: int
    step_time_s: float
    namespace: str | None = None


def send(connection: socket.socket, about: dict[str, Any], *parts: Bytes) -> None:
    """Send a message: what it is about, and numbers."""
    head = json.dumps(about).encode()
    body = b"".join(bytes(part) for part in parts)
    connection.sendall(_SIZES.pack(len(head), len(body)) + head + body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """The next message; None where the other side has hung up."""
    sizes = _read(connection, _SIZES.size)
    if sizes is None:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    rest = _read(connection, head_size + body_size)
    return None if rest is None else (json.loads(rest[:head_size]), rest[head_size:])


def _read(connection: socket.socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        if not (part := connection.recv(size - len(content))):
            return None
        content += part
    return bytes(content)


def enter(namespace: str) -> None:
    """Have this thread, and those it starts, live in a network namespace."""
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET) != 0:
            problem = os.strerror(ctypes.get_errno())
            raise FedplanError(f"the namespace {namespace} cannot be entered ({problem}).")
    finally:
        os.close(handle)


def start_devices(
    learner: Learner, devices: Sequence[LightDevice], server: socket.socket, address: Address
) -> tuple[dict[int, socket.socket], list[int]]:
    """Fork the devices: the connection of each client, and the processes.

    server : listens at the address. To be called before this process has a second thread.

    A device ends when its connection does, so none is left behind, whatever ends this process.
    """
    pids = [_fork(lambda device=device: _serve(learner, device, server, address))  # type: ignore[misc]
            for device in devices]  # fmt: skip
    connections: dict[int, socket.socket] = {}
    server.settimeout(_CONNECT_S)
    while len(connections) < len(devices):
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = receive(connection)
        if hello is None:
            raise FedplanError("a device has hung up before it said which client it is.")
        connections[hello[0]["client"]] = connection
    return connections, pids


def end_devices(connections: dict[int, socket.socket], pids: Sequence[int]) -> None:
    """Hang up, and wait until the devices have ended."""
    for connection in connections.values():
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    for pid in pids:
        wait_until(
            lambda pid=pid: os.waitpid(pid, os.WNOHANG)[0] != 0,  # type: ignore[misc]
            _CONNECT_S,
            f"device process {pid} has not ended",
        )


def _fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)  # nothing of the parent's is to be ended twice


def _serve(learner: Learner, device: LightDevice, server: socket.socket, address: Address) -> None:
    server.close()
    if device.namespace is not None:
        enter(device.namespace)
    with socket.create_connection(address, timeout=_CONNECT_S) as connection:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send(connection, {"client": device.client})
        while (order := receive(connection)) is not None:
            send(connection, *_train(learner, device, *order))


def _train(
    learner: Learner, device: LightDevice, order: dict[str, Any], body: bytes
) -> tuple[dict[str, Any], bytes, bytes]:
    """Train as ordered, and wait until the device's own steps would have ended.

    The reply tells how late training was by then: then the machine was too slow for the device.
    """
    start = time.perf_counter()
    weights = np.frombuffer(body, dtype=np.float32).copy()
    before, halfway = weights.copy(), None
    if order["sketch_seed"] is not None and order["steps"] > 1:
        halfway = np.empty_like(weights)
    learner.train_round(
        weights, np.array([device.client]), np.ones(1), order["steps"], order["rate"],
        order["seed"], order["round"], halfway,
    )  # fmt: skip
    sketch = b""
    if halfway is not None:
        seen = Sketch(weights.size, order["sketch_seed"])(halfway.astype(np.float64) - before)
        sketch = seen.tobytes()
    left = start + order["steps"] * device.step_time_s - time.perf_counter()
    time.sleep(max(left, 0.0))
    reply = {
        "id": order["id"],
        "steps": order["steps"],
        "model_bytes": len(body),
        "examples": int(learner.sizes[device.client]),
        "seconds": time.perf_counter() - start,
        "late": max(-left, 0.0),
    }
    return reply, weights.tobytes(), sketch
