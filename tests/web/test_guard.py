"""Hostile requests get a 4xx with a reason as JSON, and the server goes on as before."""

from __future__ import annotations

import json
import re
import socket

import pytest
from served import end_server, start_server

HOST = "localhost:evil.com"
JSON = {"content_type": "application/json"}


def is_refused(reply, *statuses):
    assert reply.status in statuses, (reply.status, reply.body[:200])
    assert reply.json["success"] is False
    assert reply.json["error"]["message"]
    assert "Traceback" not in reply.body.decode()


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost:evil.com",
        "",
        "[::2]:80",
    ],
)
def test_a_foreign_host_is_refused(server, host):
    is_refused(server.ask("GET", "/", Host=host), 421)
    is_refused(server.post("/api/plan", {}, Host=host), 421)


def test_the_names_of_this_machine_are_not(server):
    for host in ("localhost", f"localhost:{server.port}", f"127.0.0.1:{server.port}", "[::1]:1"):
        assert server.ask("GET", "/", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_site_is_refused(server, headers):
    is_refused(server.post("/api/plan", {}, **headers), 403)
    is_refused(server.ask("GET", "/api/runs", **headers), 403)


def test_a_link_from_elsewhere_may_open_the_page_alone(server):
    follows = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert server.ask("GET", "/", **follows).status == 200
    is_refused(server.ask("GET", "/api/runs", **follows), 403)


def test_the_page_itself_is_let_in(server):
    origin = f"http://127.0.0.1:{server.port}"
    reply = server.post("/api/plan", {}, Origin=origin, Sec_Fetch_Site="same-origin")
    assert reply.status == 200 and reply.json["success"]


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/csv"],
)
def test_a_content_type_that_a_form_can_send_is_refused(server, kind):
    is_refused(server.ask("POST", "/api/plan", "{}", content_type=kind), 415)


@pytest.mark.parametrize(
    "method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "GET"]
)
def test_wrong_methods(server, method):
    is_refused(server.ask(method, "/api/plan"), 405)
    if method != "GET":
        is_refused(server.ask(method, "/"), 405)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2f..%2fetc/passwd",
        "/static//etc/passwd", "/static/", "/../../etc/passwd", "/api/upload/../plan", "/nothing",
        "/static/index.html", "/static/%00",
    ],
)  # fmt: skip
def test_there_is_nothing_to_climb_to(server, path):
    is_refused(server.ask("GET", path), 404, 405)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"energy_weight": NaN}', b'{"energy_weight": 1e999}', b"[" * 60_000,
        b'{"a":' * 9_000 + b"1" + b"}" * 9_000, b"\xff\xfe\x00", b'{"fleet": {"a": 1}}',
        b'{"fleet": "drawn", "num_clients": 1000000000}', b'{"deadline_s": ' + b"9" * 5000 + b"}",
        json.dumps({f"key{n}": n for n in range(2000)}).encode(),
    ],
    ids=lambda body: body[:24].decode("latin-1"),
)  # fmt: skip
def test_bodies_that_make_no_sense(server, body):
    is_refused(server.ask("POST", "/api/plan", body, **JSON), 422)
    is_refused(server.ask("POST", "/api/curves", body, **JSON), 422)


def test_large_bodies_are_not_even_read(server):
    for path, kind in (
        ("/api/plan", "application/json"),
        ("/api/upload/fleet", "text/csv"),
        ("/api/upload/pilots", "text/csv"),
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sender:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            sender.sendall(f"{head}Content-Length: 10485760\r\n\r\n".encode() + b"x" * 1000)
            assert sender.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_grows_past_its_bound_is_cut_off(server):
    """Chunks have no length to look at first."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sender:
        sender.sendall(
            b"POST /api/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(5):
            sender.sendall(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        assert sender.recv(100).startswith(b"HTTP/1.1 413")


def test_a_slow_body_is_given_up_and_nobody_else_waits(server):
    slow = []
    for _ in range(20):
        sender = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        sender.sendall(
            b"POST /api/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        slow.append(sender)
    assert server.plan(energy_weight=0.123).status == 200
    for sender in slow:
        assert sender.recv(100).startswith(b"HTTP/1.1 408")
        sender.close()


def test_a_bad_file_is_refused_with_every_problem_and_a_good_one_kept(server):
    bad = "step_time_s,comm_time_s,step_energy_j,comm_energy_j\n0,1,1,1\n1,-2,1,x\n1,1,1\n"
    reply = server.ask("POST", "/api/upload/fleet?name=bad.csv", bad, content_type="text/csv")
    is_refused(reply, 422)
    places = {(p["line"], p["column"]) for p in reply.json["error"]["problems"]}
    assert places == {(2, "step_time_s"), (3, "comm_time_s"), (3, "comm_energy_j"), (4, None)}
    good = "step_time_s,comm_time_s,step_energy_j,comm_energy_j\n0.1,1,1,1\n0.2,1,1,1\n"
    name = "%2e%2e%2f%2e%2e%2fetc%2fpasswd"
    reply = server.ask("POST", f"/api/upload/fleet?name={name}", good, content_type="text/csv")
    assert reply.status == 200 and reply.json["num_clients"] == 2
    shown = server.plan(fleet=reply.json["id"]).json
    assert shown["num_clients"] == 2 and "--fleet passwd" in shown["command"]
    for binary in (b"\0" * 4096, b"\xff" * 4096, b"a,b\n" * 10**6, b'"' * 10**5, b""):
        is_refused(server.ask("POST", "/api/upload/fleet", binary, content_type="text/csv"), 422)


def test_every_answer_keeps_the_page_to_itself(server):
    for reply in (
        server.ask("GET", "/"),
        server.plan(),
        server.ask("GET", "/nothing"),
        server.ask("GET", "/", Host="evil.example"),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in reply.headers
        assert "server" not in reply.headers


def test_files_are_loaded_once(server):
    page = server.ask("GET", "/")
    paths = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.body.decode())
    assert len(paths) == 4
    for path in paths:
        reply = server.ask("GET", path)
        assert reply.status == 200 and "immutable" in reply.headers["cache-control"]
        again = server.ask("GET", path, If_None_Match=reply.headers["etag"])
        assert again.status == 304 and not again.body


def test_a_token_of_any_characters_is_let_in_by_the_address_that_is_printed(tmp_path):
    made = start_server(tmp_path, "--public", "--token", "a+b/c=&d #e%f-and-more")
    try:
        entered = made.ask("GET", "/?" + made.address.partition("?")[2])
        assert entered.status == 303
        cookie = entered.headers["set-cookie"].split(";")[0]
        assert made.ask("GET", "/api/start", Cookie=cookie).status == 200
    finally:
        end_server(made)


def test_the_token_of_a_public_server(tmp_path):
    made = start_server(tmp_path, "--public", "--token", "a-long-enough-token")
    try:
        assert made.address.endswith("?token=a-long-enough-token")
        for path in (
            "/",
            "/api/runs",
            "/?token=a-long-enough-tokem",
            "/api/runs?token=a-long-enough-token",
        ):
            is_refused(made.ask("GET", path, Host="box.local:80"), 401)
        is_refused(made.plan(), 401)
        entered = made.ask("GET", "/?token=a-long-enough-token", Host="box.local:80")
        assert entered.status == 303 and entered.headers["location"] == "/"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        ticket = {"Cookie": cookie.split(";")[0], "Host": "box.local:80"}
        assert made.ask("GET", "/", **ticket).status == 200
        assert made.post("/api/plan", {}, **ticket).json["success"]
        is_refused(made.post("/api/plan", {}, Origin="http://evil.example", **ticket), 403)
    finally:
        assert end_server(made) == 0
