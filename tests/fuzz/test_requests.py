"""Requests to the explorer, of any method, path, headers and body: each has its answer."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from invariant import bounded, tries

from fedplan.web.guard import COOKIE
from fedplan.web.server import make_app
from fedplan.web.shelf import Shelf

WORD = "sesame"
PATHS = ["/", "/static/", "/api/start", "/api/plan", "/api/sensitivity", "/api/upload/fleet"]
PATHS += ["/api/upload/pilots", "/api/fleet.csv", "/api/runs", "/api/curves", "/nosuch"]
FLEET = "step_time_s,comm_time_s,step_energy_j,comm_energy_j\n1,2,3,4\n"
USUAL = [
    ("host", "localhost"), ("host", "localhost:8080"), ("host", "localhost:evil.com"),
    ("content-type", "application/json"), ("content-type", "text/csv"),
    ("content-length", "5"), ("content-length", "\xb2"), ("content-length", "9" * 5000),
    ("origin", "http://localhost"), ("origin", "null"), ("sec-fetch-site", "cross-site"),
    ("if-none-match", '"0"'), ("cookie", f"{COOKIE}={WORD}"), ("cookie", f"{COOKIE}=\xff"),
]  # fmt: skip
LATIN = st.text(st.characters(max_codepoint=255), max_size=20)
HEADERS = st.lists(
    st.sampled_from(USUAL)
    | st.tuples(st.sampled_from(sorted({name for name, _ in USUAL})), LATIN)
    | st.tuples(LATIN, LATIN),
    max_size=5,
)
BODIES = st.binary(max_size=60) | st.sampled_from(
    [b"{}", FLEET.encode(), b'{"runs": [1, "a"]}', b'{"experiment": "x", "runs": [[1, 2, 3]]}']
)


@pytest.fixture(scope="module")
def apps(tmp_path_factory):
    """The explorer of this machine alone, and that of a network."""
    store = f"sqlite:///{tmp_path_factory.mktemp('requests')}/fedplan.db"
    return [make_app(Shelf(store), token=token) for token in (None, WORD)]


async def ask(app, scope, body):
    """Status, headers and body of an answer; None where whoever asked has gone."""
    messages = [{"type": "http.request", "body": body}]
    sent = []

    async def receive():
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), content


@tries
@given(
    public=st.booleans(),
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "OPTIONS"]) | LATIN,
    path=st.sampled_from(PATHS) | st.builds("{}{}".format, st.sampled_from(PATHS), st.text()),
    query=st.sampled_from([b"", b"name=f.csv", b"name=%00", b"token=sesame", b"experiment=a%ff"])
    | st.binary(max_size=40),
    headers=HEADERS,
    body=BODIES,
)
@example(False, "POST", "/api/plan", b"", [USUAL[0], USUAL[3], USUAL[6]], b"{}")
@example(False, "POST", "/api/upload/fleet", b"", [USUAL[0], USUAL[4]], FLEET.encode())
@example(True, "GET", "/", b"token=\xff", [USUAL[0], USUAL[13]], b"")
def test_requests(apps, public, method, path, query, headers, body):
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": path, "raw_path": path.encode(errors="replace"),
        "root_path": "", "query_string": query, "client": ("127.0.0.1", 5), "server": None,
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
    }  # fmt: skip
    with bounded():
        status, answered, content = asyncio.run(ask(apps[public], scope, body))
    assert status in (200, 303, 304, 499) or 400 <= status < 500, content
    assert answered[b"x-content-type-options"] == b"nosniff"
    if 400 <= status < 499 and method != "HEAD":
        error = json.loads(content)["error"]
        assert error["message"] and error["type"] in ("Refused", "InputError")
