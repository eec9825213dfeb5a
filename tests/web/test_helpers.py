"""Helper processes: they answer what the server itself would, and never outlive it."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from served import end_server, start_server

from fedplan.csvfile import Upload
from fedplan.web.answers import answer
from fedplan.web.shelf import Shelf
from fedplan.web.state import read_state

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no helpers")
HEAD = "device,step_time_s,comm_time_s,step_energy_j,comm_energy_j,count\n"
FLEET = HEAD + "".join(f"d{i},{0.01 * (i + 1)},2,1,3,1\n" for i in range(40))


def helpers_of(server):
    """The processes of a server that were started to answer."""
    files = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    started = [int(word) for file in files for word in file.read_text().split()]
    return [pid for pid in started if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]


def ticks(pid):
    """What a process has used of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def is_idle(pid):
    before = ticks(pid)
    time.sleep(0.5)
    return ticks(pid) == before


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def crowd(server, states):
    """The answers to many questions at once, in their order."""
    with ThreadPoolExecutor(20) as pages:
        return list(pages.map(lambda state: server.plan(**state), states))


@pytest.fixture
def busy(tmp_path):
    """A server that has needed helpers, and has them."""
    server = start_server(tmp_path)
    moves = iter(range(10**6))

    def has_helpers():
        crowd(server, [{"energy_weight": next(moves) / 10**6} for _ in range(20)])
        return helpers_of(server)

    until(has_helpers)
    until(lambda: all(map(is_idle, helpers_of(server))))  # what they load first is loaded
    yield server
    if server.process.poll() is None:
        end_server(server)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_helpers_answer_what_the_library_does(busy):
    reply = busy.ask("POST", "/api/upload/fleet?name=f.csv", FLEET, content_type="text/csv")
    own = {"fleet": reply.json["id"]}
    drawn = {"fleet": "drawn", "num_clients": 60, "law": "lognormal"}
    weights = [0.011 * step for step in range(1, 40)]
    states = [{**where, "energy_weight": w} for w in weights for where in ({}, drawn, own)]
    helpers = helpers_of(busy)
    before = sum(map(ticks, helpers))
    replies = crowd(busy, states)
    assert sum(map(ticks, helpers)) > before  # it was not the server alone
    assert {reply.status for reply in replies} == {200}
    shelf = Shelf("sqlite:///unused.db")
    assert shelf.add_fleet(Upload("f.csv", FLEET.encode()))[0] == own["fleet"]
    for state, reply in zip(states, replies, strict=True):
        asked = read_state(state, shelf)
        assert reply.json == json.loads(json.dumps(answer(asked))), state


def test_what_is_wrong_is_said_however_many_ask(busy):
    states = [{"energy_weight": 2 + step / 100} for step in range(40)]
    replies = crowd(busy, states)
    assert {reply.status for reply in replies} == {422}
    assert all("energy_weight" in reply.json["error"]["message"] for reply in replies)


def test_a_helper_that_is_killed_is_done_without(busy):
    for pid in helpers_of(busy):
        os.kill(pid, signal.SIGKILL)
    replies = crowd(busy, [{"energy_weight": 0.5 + step / 1000} for step in range(60)])
    assert {reply.status for reply in replies} == {200}


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_helpers_end_with_the_server(busy, end):
    helpers = helpers_of(busy)
    busy.process.send_signal(end)
    busy.process.wait(timeout=20)
    busy.process.stdout.close()
    until(lambda: all(map(is_gone, helpers)))


def test_one_page_has_no_helpers(tmp_path):
    server = start_server(tmp_path)
    with ThreadPoolExecutor(2) as page:  # which asks for the what-ifs while a slider moves on
        for step in range(30):
            state = {"energy_weight": step / 30}
            doubts = page.submit(server.post, "/api/sensitivity", state)
            assert server.plan(**state).status == doubts.result().status == 200
    assert helpers_of(server) == []
    end_server(server)
