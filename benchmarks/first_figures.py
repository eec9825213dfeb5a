"""How soon the explorer's first figures stand there, in a Chromium that nobody looks into.

A debugger slows down what is measured: with one attached, as test tools have it, every error that
plotly catches as it begins makes the browser parse all of plotly again. So a proxy in front of a
real `fedplan serve` adds a script to the page, which tells the proxy what it saw and when. Every
load is a new browser with nothing cached.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from explorer import start

WATCH = b"""
const marks = {
  words: "#headline b",
  frontier: "#frontier .scatterlayer",
  map: "#map .contourlayer",
};
const seen = {};
const look = () => {
  for (const [name, where] of Object.entries(marks))
    if (!(name in seen) && document.querySelector(where)) seen[name] = performance.now();
  if (Object.keys(seen).length < 3) return void setTimeout(look, 4);
  requestAnimationFrame(() => setTimeout(() => {
    seen.painted = performance.now();
    fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
  }));
};
look();
"""
_OWN_HEADERS = {"content-length", "connection", "transfer-encoding", "date", "server"}


class Proxy(ThreadingHTTPServer):
    """Does not mind that a browser is gone."""

    def handle_error(self, *_: Any) -> None:
        """Say nothing of a connection that broke off."""
        if not isinstance(sys.exception(), ConnectionError):
            raise


def proxy_to(port: int, seen: Queue[dict[str, float]]) -> Proxy:
    """A server that hands on to this port, but for the script and what it says."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path == "/seen":
                seen.put(json.loads(body))
                self._reply(204, [], b"")
            elif self.path == "/watch.js":
                self._reply(200, [("content-type", "text/javascript")], WATCH)
            else:
                self._hand_on(body)

        def do_POST(self) -> None:
            self.do_GET()

        def _hand_on(self, body: bytes) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            dropped = ("host", "origin", "connection")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            connection.request(self.command, self.path, body, headers)
            reply = connection.getresponse()
            content = reply.read()
            if self.path == "/":
                script = b'<script async src="/watch.js"></script></head>'
                content = content.replace(b"</head>", script)
            self._reply(reply.status, reply.getheaders(), content)

        def _reply(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _OWN_HEADERS:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Proxy(("127.0.0.1", 0), Handler)


def load(chromium: str, address: str, seen: Queue[dict[str, float]]) -> dict[str, float]:
    """What a new browser saw of the page, in milliseconds from its navigation."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless=new", "--no-sandbox", "--no-first-run", "--window-size=1440,900"]
        command = [chromium, *flags, f"--user-data-dir={profile}", address]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        browser = subprocess.Popen(command, start_new_session=True, **quiet)
        try:
            return seen.get(timeout=60)
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            browser.wait()


def main() -> None:
    """Load the page some times, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loads", type=int, default=5)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("this needs Chromium, and there is none here.")
    print(f"load average before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    seen: Queue[dict[str, float]] = Queue()
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(Path(folder))
        proxy = proxy_to(port, seen)
        Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{proxy.server_port}/"
            loads = [load(chromium, address, seen) for _ in range(options.loads)]
        finally:
            proxy.shutdown()
            server.send_signal(signal.SIGINT)
            server.wait(timeout=20)
            if server.stdout:
                server.stdout.close()
    for name, what in (("words", "the plan in words"), ("painted", "the figures in sight")):
        times = sorted(found[name] / 1000 for found in loads)
        print(f"{what}: median {statistics.median(times):.2f} s, worst {times[-1]:.2f} s")


if __name__ == "__main__":
    main()
