"""A real `fedplan serve`, and requests to it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from children import start


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Server:
    """A real `fedplan serve`."""

    process: subprocess.Popen
    address: str

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.address)[1])

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Reply:
        """One request; underscores of headers stand for hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def post(self, path: str, value: object, **headers: str) -> Reply:
        return self.ask("POST", path, json.dumps(value), content_type="application/json", **headers)

    def plan(self, **state: object) -> Reply:
        return self.post("/api/plan", state)


def start_server(folder: Path, *words: str, seconds: float = 900) -> Server:
    process = start(
        [sys.executable, "-m", "fedplan.cli", "serve", "--no-open", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        seconds=seconds,
    )
    line = process.stdout.readline()
    assert "http" in line, "fedplan serve did not start"
    return Server(process, re.search(r"http\S+", line)[0])


def end_server(server: Server) -> int:
    server.process.send_signal(signal.SIGINT)
    code = server.process.wait(timeout=120)
    server.process.stdout.close()
    return code
