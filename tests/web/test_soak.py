"""Many pages for long: no error, quick answers, flat memory, and nothing left open afterwards.

For a machine that does nothing else: `make soak`, or FEDPLAN_SOAK=10 for so many minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from children import start
from served import end_server, start_server

pytestmark = pytest.mark.soak
MINUTES = float(os.environ.get("FEDPLAN_SOAK", "30"))
PAGES, EVERY_S, NEW = 200, 2.0, 5  # of the questions of a page, one in NEW was never asked before
KNOWN = [{"energy_weight": step / 20} for step in range(20)]
WARM_UP_S = 60.0


class Pages:
    """People at as many pages, and how long each question took them."""

    def __init__(self, port):
        self.port, self.errors = port, []
        self.seconds = {"cached": [], "new": []}
        self._fresh = itertools.count()

    async def open(self, pages, seconds):
        end = time.monotonic() + seconds
        await asyncio.gather(*(self._page(number / pages, end) for number in range(pages)))

    async def _page(self, late, end):
        await asyncio.sleep(EVERY_S * late)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for move in itertools.count(int(late * NEW * 7)):
            begun = time.monotonic()
            if begun > end:
                break
            kind = "cached" if move % NEW else "new"
            state = KNOWN[move % len(KNOWN)]
            if kind == "new":
                state = {"energy_weight": 0.25 + next(self._fresh) / 10**6}
            try:
                await asyncio.wait_for(self._ask(reader, writer, state), 30)
            except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.errors.append(repr(error))
                break
            self.seconds[kind].append(time.monotonic() - begun)
            await asyncio.sleep(max(0.0, begun + EVERY_S - time.monotonic()))
        writer.close()

    async def _ask(self, reader, writer, state):
        body = json.dumps(state).encode()
        head = "POST /api/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        content = await reader.readexactly(int(re.search(r"content-length: (\d+)", answer)[1]))
        if not answer.startswith("HTTP/1.1 200") or not json.loads(content)["success"]:
            raise ValueError(answer[:100])

    def p95(self, kind):
        ranked = sorted(self.seconds[kind])
        return ranked[len(ranked) * 95 // 100]


@pytest.fixture
def own_server(tmp_path):
    server = start_server(tmp_path, seconds=60 * MINUTES + 900)
    for state in KNOWN:
        assert server.plan(**state).status == 200
    yield server
    assert end_server(server) in (0, 130)


def test_two_hundred_pages_for_a_minute(own_server):
    pages = Pages(own_server.port)
    asyncio.run(pages.open(PAGES, 60.0))
    print({kind: (len(pages.seconds[kind]), pages.p95(kind)) for kind in pages.seconds})  # noqa: T201
    assert pages.errors == []
    assert pages.p95("cached") < 1.0
    assert pages.p95("new") < 3.0


def held(pid):
    """Megabytes, open descriptors, threads and children of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return {
        "mb": int(status.split("VmRSS:")[1].split()[0]) / 1024,
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(status.split("Threads:")[1].split()[0]),
        "children": sum(map(len, children)),
    }


def test_nothing_grows_under_mixed_load_and_a_live_run(own_server, tmp_path):
    pid, pages = own_server.process.pid, Pages(own_server.port)
    end = time.monotonic() + 60 * MINUTES
    asyncio.run(pages.open(20, WARM_UP_S))  # caches fill
    before, runs = held(pid), 0
    while time.monotonic() < end:
        run = start(
            [sys.executable, "-m", "fedplan.cli", "run", "demo", "seeds=1", f"data-seed={runs}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            seconds=900,
        )
        while run.poll() is None:
            asyncio.run(pages.open(20, 5.0))
            listed = own_server.ask("GET", "/api/runs")
            assert listed.status == 200
            for experiment in listed.json["experiments"]:
                which = experiment["id"]
                assert own_server.ask("GET", f"/api/runs?experiment={which}").status == 200
            uploaded = own_server.ask(
                "POST", "/api/upload/fleet?name=f.csv", fleet(runs), content_type="text/csv"
            )
            assert own_server.plan(fleet=uploaded.json["id"]).status == 200
            assert own_server.plan(energy_weight=2).status == 422
        assert run.returncode in (0, 1)
        runs += 1
    time.sleep(35)  # kept-alive connections are closed by then
    after = held(pid)
    print(before, after, runs, {kind: len(pages.seconds[kind]) for kind in pages.seconds})  # noqa: T201
    assert pages.errors == []
    assert after["mb"] - before["mb"] < 100
    assert after["descriptors"] <= before["descriptors"] + 2
    assert after["children"] == before["children"] == 0
    assert after["threads"] <= before["threads"] + 2
    with closing(sqlite3.connect(tmp_path / "fedplan.db")) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (runs,)


def fleet(number):
    head = "device,step_time_s,comm_time_s,step_energy_j,comm_energy_j\n"
    return head + "".join(f"d{place},{0.01 * (number + place + 1)},2,1,3\n" for place in range(40))
