"""How quick the explorer is: a real `fedplan serve`, asked over loopback HTTP.

Prints, for fleets of several sizes, the milliseconds from a slider's move to the whole answer
(server and transfer) with a given bound, with pilots, and with a fleet drawn anew at every move;
the time to the first page with all its files and its first plan; and with --clients N what N pages
at a time get for --seconds: errors, median, 95th percentile, and the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOVES = 30
THINKS_S = 1.0  # how often somebody at a page moves a slider
RESTS = 5  # moves until it rests, and the page asks for the what-ifs too
PILOTS = b"""clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower
3,30,1.5,1.3,60,130
10,20,1.5,1.3,80,150
20,45,1.5,1.3,40,72
50,70,1.5,1.3,30,55
3,70,1.5,1.3,50,95
20,20,1.5,1.3,80,148
"""


def sliders(size: int, pilots: str) -> dict[str, list[dict[str, Any]]]:
    """The moves of each slider, for a fleet of this size and the pilots of this id."""
    weights = [{"energy_weight": 0.1 + 0.025 * move} for move in range(MOVES)]
    # Pilots need fewer rounds than the example, so these are short; the first cannot be met.
    deadlines = [{"energy_weight": 0.6, "deadline_s": 300.0 + 20 * move} for move in range(MOVES)]
    fleets: list[dict[str, Any]] = [
        {"energy_weight": 0.3, "num_clients": size - max(1, size // 100) * move}
        for move in range(MOVES)
    ]
    robust = {"pilots": pilots}
    return {
        "energy weight": weights,
        "price of an hour": [
            {"objective": "prices", "price_hour": 0.5 + 0.1 * move, "price_kwh": 0.3}
            for move in range(MOVES)
        ],
        "deadline": [
            {"energy_weight": 0.6, "deadline_s": 1300.0 + 30 * move} for move in range(MOVES)
        ],
        "a0 of the bound": [
            {"energy_weight": 0.3, "bound": "own", "a0": 2000.0 + 100 * move, "b0": 1.0, "c0": 26.0}
            for move in range(MOVES)
        ],
        "devices": fleets,
        "pilots, weight": [state | robust for state in weights],
        "pilots, deadline": [state | robust for state in deadlines],
        "pilots, all limits": [
            state | robust | {"energy_budget_j": 500.0, "max_rounds": 300} for state in deadlines
        ],
        "pilots, devices": [state | robust for state in fleets],
    }


@dataclass
class Load:
    """What many clients got."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0

    def percentile(self, percent: int) -> float:
        """The time within which this percentage was answered."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) * percent // 100, len(ranked) - 1)]


def start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A server of its own, and its port."""
    command = [sys.executable, "-m", "fedplan.cli", "serve", "--no-open", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    line = server.stdout.readline() if server.stdout else ""
    found = re.search(r":(\d+)/", line)
    assert found, "fedplan serve did not start"
    return server, int(found[1])


def ask(connection: http.client.HTTPConnection, state: dict[str, Any]) -> float:
    """Seconds from sending a state to having the whole answer."""
    begin = time.perf_counter()
    headers = {"content-type": "application/json"}
    connection.request("POST", "/api/plan", json.dumps(state), headers)
    reply = connection.getresponse()
    body = reply.read()
    assert reply.status == 200, body[:300]
    return time.perf_counter() - begin


def upload_pilots(connection: http.client.HTTPConnection) -> str:
    """The id under which the server keeps the pilots."""
    connection.request(
        "POST", "/api/upload/pilots?name=pilots.csv", PILOTS, {"content-type": "text/csv"}
    )
    reply = json.loads(connection.getresponse().read())
    assert reply["success"], reply
    return str(reply["id"])


def first_page(port: int) -> float:
    """Seconds to load the page, all its files and its first plan."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    waiting, loaded = ["/"], set()
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded.add(path)
        connection.request("GET", path)
        reply = connection.getresponse()
        content = reply.read()
        assert reply.status == 200, path
        if path == "/":
            waiting += re.findall(r'(?:src|href)="(/static/[^"]+)"', content.decode())
        elif path.endswith(".js") and not path.endswith("plotly.js"):
            modules = re.findall(r'from "\./([^"]+)"', content.decode())
            waiting += (f"{path.rpartition('/')[0]}/{name}" for name in modules)
    ask(connection, {"energy_weight": 0.3})
    connection.close()
    return time.perf_counter() - begin


def memory_mb(pid: int) -> float:
    """Resident memory of a process and of those it has started."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    own = int(found[1]) / 1024 if found else float("nan")
    started = Path(f"/proc/{pid}/task").glob("*/children")
    return own + sum(
        memory_mb(int(child)) for file in started for child in file.read_text().split()
    )


async def many_clients(port: int, *, clients: int, seconds: float) -> Load:
    """People at as many pages, each moving a slider every second, all with different states."""
    load, end = Load(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(THINKS_S * number / clients)
        move = 0
        while time.perf_counter() < end:
            state = {"energy_weight": (number + 0.001 * move) / (clients + 1)}
            begin = time.perf_counter()
            try:
                path = "plan" if (move + number) % RESTS else "sensitivity"
                await asyncio.wait_for(_exchange(reader, writer, path, state), 30)
            except (OSError, TimeoutError, AssertionError, asyncio.IncompleteReadError):
                load.errors += 1
            load.seconds.append(time.perf_counter() - begin)
            move += 1
            await asyncio.sleep(max(0.0, begin + THINKS_S - time.perf_counter()))
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return load


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, state: dict[str, Any]
) -> None:
    body = json.dumps(state).encode()
    head = f"POST /api/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"content-length: (\d+)", answer, re.IGNORECASE)
    assert length is not None
    content = await reader.readexactly(int(length[1]))
    assert answer.startswith("HTTP/1.1 200") and json.loads(content)["success"]


def time_sliders(port: int, sizes: list[int]) -> None:
    """Print the milliseconds of every slider for fleets of these sizes."""
    print(f"{'devices':>10} {'slider':<18} {'first':>8} {'median':>8} {'p95':>8} {'worst':>8}  ms")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    pilots = upload_pilots(connection)
    for size in sizes:
        for name, states in sliders(size, pilots).items():
            drawn = {"fleet": "drawn", "num_clients": size}
            first, *rest = (1000 * ask(connection, {**drawn, **state}) for state in states)
            ranked = sorted(rest)
            print(
                f"{size:>10,} {name:<18} {first:>8.1f} {statistics.median(ranked):>8.1f} "
                f"{ranked[int(0.95 * len(ranked))]:>8.1f} {ranked[-1]:>8.1f}"
            )
    connection.close()


def main() -> None:
    """Start a server and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 10_000, 100_000])
    parser.add_argument("--clients", type=int, default=0, help="pages at a time; none without")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(Path(folder))
        try:
            print(f"page, its files and its first plan: {first_page(port):.2f} s")
            time_sliders(port, options.sizes)
            if options.clients:
                asyncio.run(many_clients(port, clients=options.clients, seconds=3.0))
                before = memory_mb(server.pid)
                load = asyncio.run(
                    many_clients(port, clients=options.clients, seconds=options.seconds)
                )
                print(
                    f"{options.clients} pages for {options.seconds:g} s, a move every "
                    f"{THINKS_S:g} s each: {len(load.seconds):,} answers, {load.errors} errors, "
                    f"median {1000 * load.percentile(50):.0f} ms, "
                    f"p95 {1000 * load.percentile(95):.0f} ms, "
                    f"worst {1000 * max(load.seconds):.0f} ms; "
                    f"memory {before:.0f} MB before, {memory_mb(server.pid):.0f} MB after"
                )
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)
            if server.stdout:
                server.stdout.close()


if __name__ == "__main__":
    main()
