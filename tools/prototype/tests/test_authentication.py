"""A SuperLink with the certificates that the tool makes: who may come in, on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from certs import Certificates
from processes import kill_processes, start_process, wait_until
from state import new_id

pytestmark = pytest.mark.slow
BIN = Path(sys.executable).parent
PATIENCE_S = 90


class Link:
    """A SuperLink that knows one of two devices."""

    def __init__(self, folder, id_):
        self.folder, self.id = folder, id_
        self.certificates = Certificates(folder / "certs")
        self.certificates.make(["known", "stranger"], ["127.0.0.1"])
        self.port = free_port()
        home = folder / "flwr"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink.lab]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{self.certificates.ca}"\n'
        )
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }
        files = self.certificates
        self.start(
            "link",
            "flower-superlink",
            *("--host", "127.0.0.1", "--port", str(self.port)),
            "--disable-runtime-dependency-installation",
            *("--ssl-ca-certfile", files.ca, "--ssl-certfile", files.server),
            *("--ssl-keyfile", files.server_key, "--enable-supernode-auth"),
        )
        wait_until(self.listens, PATIENCE_S, "the SuperLink did not listen")
        self.flwr("supernode", "register", files.public_key("known"), "lab")

    def start(self, role, program, *options):
        start_process(
            [str(BIN / program), *map(str, options)],
            prototype=self.id,
            role=role,
            env=self.environment,
            log=self.log(role),
        )

    def start_node(self, role, *options):
        ports = ("--host", "127.0.0.1", "--port", free_port())
        where = ("--superlink", f"127.0.0.1:{self.port}")
        self.start(role, "flower-supernode", *where, *ports, *options)

    def flwr(self, *words):
        command = [BIN / "flwr", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def statuses(self):
        answer = self.flwr("supernode", "list", "lab", "--format", "json")
        return [node["status"] for node in json.loads(answer)["nodes"]]

    def listens(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def log(self, role):
        return self.folder / f"{role}.log"

    def wait_for(self, role, words):
        wait_until(
            lambda: words in self.log(role).read_text(), PATIENCE_S, f"{role} never said {words!r}"
        )


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    id_ = new_id()
    try:
        yield Link(tmp_path_factory.mktemp("link"), id_)
    finally:
        kill_processes(id_)


def test_a_node_without_a_key_is_refused(link):
    link.start_node("keyless", "--root-certificates", link.certificates.ca)
    link.wait_for("keyless", "All SuperNodes must be registered")
    assert "online" not in link.statuses()


def test_a_node_with_a_key_that_is_not_registered_is_refused(link):
    key = link.certificates.node_key("stranger")
    files = ("--root-certificates", link.certificates.ca, "--auth-supernode-private-key", key)
    link.start_node("stranger", *files)
    link.wait_for("stranger", "Failed to activate SuperNode")
    assert "online" not in link.statuses()


def test_a_node_does_not_talk_to_a_superlink_of_another_authority(link, tmp_path):
    other = Certificates(tmp_path / "other")
    other.make([], ["127.0.0.1"])
    key = link.certificates.node_key("known")
    link.start_node("misled", "--root-certificates", other.ca, "--auth-supernode-private-key", key)
    link.wait_for("misled", "Connection attempt failed")
    assert "online" not in link.statuses()


def test_a_registered_node_connects(link):
    key = link.certificates.node_key("known")
    files = ("--root-certificates", link.certificates.ca, "--auth-supernode-private-key", key)
    link.start_node("known", *files)
    wait_until(lambda: link.statuses() == ["online"], PATIENCE_S, "it did not connect", every_s=1.0)
