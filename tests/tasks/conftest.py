from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from fedplan.tasks import mnist


@pytest.fixture
def tiny(monkeypatch) -> dict[str, bytes]:
    """Make MNIST tiny (30 and 20 images of 28 x 28): the .gz files by name, MNIST's order."""
    random = np.random.default_rng(5)
    files, contents = [], {}
    for file in mnist.FILES:
        count = 30 if file.name.startswith("train") else 20
        shape = (count, *file.shape[1:])
        top = 256 if len(shape) == 3 else 10
        array = random.integers(top, size=shape, dtype=np.uint8)
        header = b"".join(n.to_bytes(4, "big") for n in (0x0800 + len(shape), *shape))
        content = header + array.tobytes()
        packed = gzip.compress(content, mtime=0)
        digest = hashlib.sha256(content).hexdigest()
        files.append(mnist.IdxFile(file.name, shape, len(packed), digest))
        contents[file.name] = packed
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    return contents


@dataclass
class Mirror:
    """A web server on 127.0.0.1; `script[name]` lists its next odd answers, then it is good."""

    files: dict[str, bytes]
    script: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name = request.path.rsplit("/", 1)[-1]
        self.asked.append(name)
        kind = self.script[name].pop(0) if self.script.get(name) else "good"
        body = self.files.get(name, b"")
        if kind == "error" or not body:
            request.send_error(500 if kind == "error" else 404)
            return
        if kind == "altered":
            body = gzip.compress(bytes([*gzip.decompress(body)[:-1], 77]))
        if kind == "page":
            body = b"<html>Please log in</html>"
        request.send_response(200)
        if kind not in ("endless", "unannounced"):
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if kind == "endless":
            body *= 5
        request.wfile.write(body[: len(body) // 2] if kind == "truncated" else body)


@pytest.fixture
def mirror(tiny, monkeypatch):
    """A local mirror of the tiny MNIST."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = Mirror(files=dict(tiny))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.answer(self)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/mnist/"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()
