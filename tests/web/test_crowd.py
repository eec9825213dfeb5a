"""Many pages at once are answered as one is."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from fedplan.csvfile import Upload
from fedplan.web.answers import answer
from fedplan.web.shelf import Shelf
from fedplan.web.state import read_state

HEAD = "device,step_time_s,comm_time_s,step_energy_j,comm_energy_j,count\n"
FLEET = HEAD + "".join(f"d{i},{0.01 * (i + 1)},2,1,3,1\n" for i in range(40))


def crowd(server, states):
    """The answers to many questions at once, in their order."""
    with ThreadPoolExecutor(20) as pages:
        return list(pages.map(lambda state: server.plan(**state), states))


def test_many_are_answered_as_the_library_does(server):
    reply = server.ask("POST", "/api/upload/fleet?name=f.csv", FLEET, content_type="text/csv")
    own = {"fleet": reply.json["id"]}
    drawn = {"fleet": "drawn", "num_clients": 60, "law": "lognormal"}
    weights = [0.011 * step for step in range(1, 20)]
    states = [{**where, "energy_weight": w} for w in weights for where in ({}, drawn, own)]
    replies = crowd(server, states)
    assert {reply.status for reply in replies} == {200}
    shelf = Shelf("sqlite:///unused.db")
    assert shelf.add_fleet(Upload("f.csv", FLEET.encode()))[0] == own["fleet"]
    for state, reply in zip(states, replies, strict=True):
        asked = read_state(state, shelf)
        assert reply.json == json.loads(json.dumps(answer(asked))), state


def test_what_is_wrong_is_said_however_many_ask(server):
    states = [{"energy_weight": 2 + step / 100} for step in range(40)]
    replies = crowd(server, states)
    assert {reply.status for reply in replies} == {422}
    assert all("energy_weight" in reply.json["error"]["message"] for reply in replies)
