"""`fedplan run --runner flower`: what Flower is given, and what a real federation makes of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from fedplan.flower.launch import _app
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.study import study_from_text

BIN = Path(sys.executable).parent
# One K and one E are left to choose from: a few rounds of all three clients.
STUDY = """
[task]
data = "synthetic"
num-clients = 3

[training]
learning-rate = 0.05
rounds = 8
target-loss = 1.0

[objective]
min-clients-per-round = 3
min-local-steps = 4
max-local-steps = 4
"""


def test_a_study_survives_the_way_to_the_nodes(tmp_path):
    study = read_study("setup3", ["target-loss=1.5", "max-time-s=100", "pairs=[[1,2],[3,4]]"])
    text = tomllib.loads(_app({"study": study.to_text(), "desk": 'C:\\a "b"\n\u00e9'}))
    config = text["tool"]["flwr"]["app"]["config"]
    assert study_from_text(config["study"]) == study
    assert config["desk"] == 'C:\\a "b"\n\u00e9'
    components = text["tool"]["flwr"]["app"]["components"]
    assert components["serverapp"] == "fedplan.flower.server:app"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--runner", "flower"), "--runner flower needs --federation NAME"),
        (("--federation", "lab"), "--federation goes with --runner flower"),
        (("--runner", "flower", "--federation", "lab", "target-loss=0"), "target-loss is missing"),
        (("--runner", "flower", "--federation", "lab", "course=oort"), "course=oort asks clients"),
    ],
)
def test_what_cannot_be_is_refused(fedplan, tmp_path, words, message):
    answer = fedplan("run", "demo", *words, "--store", f"sqlite:///{tmp_path}/runs.db")
    assert answer.code == 2 and message in answer.err


def test_groups_are_not_swept_on_devices_that_nobody_knows(fedplan, tmp_path):
    words = ("participation=turns", "--runner", "flower", "--federation", "lab")
    answer = fedplan("sweep", "demo", *words, "--store", f"sqlite:///{tmp_path}/runs.db")
    assert answer.code == 2 and "made from what devices cost" in answer.err


def test_without_flower_it_says_what_to_install(tmp_path):
    code = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "flwr" else find(name, *rest)
from fedplan.cli import main
sys.argv = ["fedplan", "run", "--runner", "flower", "--federation", "lab"]
main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1 and "pip install 'fedplan[flower]'" in run.stderr
    assert not list(tmp_path.iterdir())


def test_a_federation_that_flower_does_not_know_is_said_to_be(fedplan, tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    words = ("--runner", "flower", "--federation", "nowhere", "-q")
    answer = fedplan("run", "demo", *words, "--store", f"sqlite:///{tmp_path}/runs.db")
    assert answer.code == 1 and "Its last words" in answer.err and "nowhere" in answer.err


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(command, log, env):
    with log.open("w") as file:
        return subprocess.Popen(
            [BIN / command[0], *command[1:]], stdout=file, stderr=file, env=env,
            start_new_session=True,
        )  # fmt: skip


def processes(env):
    """Whatever has been started in this environment, by whomever: Flower starts others."""
    mark = f"FLWR_HOME={env['FLWR_HOME']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has just ended, or is another user's
            continue
    return found


def end_all(env):
    """End every process of this environment, and see that none is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes(env):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        until(lambda: not processes(env), 15, required=False)
    assert not processes(env)


def until(condition, seconds, *, required=True):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            assert not required, f"not within {seconds} s"
            return
        time.sleep(0.2)


@pytest.fixture
def federation(tmp_path):
    """A SuperLink and three SuperNodes on this machine, and the environment that knows them."""
    link, *nodes = free_ports(4)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink.lab]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    own = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "TMPDIR": str(tmp_path)}
    # Flower starts programs of its own by name, whether or not the environment is activated.
    env = {**os.environ, **own, "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]])}
    local = ("--insecure", "--host", "127.0.0.1", "--port")
    started = []
    try:
        command = (
            "flower-superlink",
            *local,
            str(link),
            "--disable-runtime-dependency-installation",
        )
        started.append(start(command, tmp_path / "link.log", env))
        for number, port in enumerate(nodes):
            known = ("--superlink", f"127.0.0.1:{link}", "--node-config", f"partition-id={number}")
            command = ("flower-supernode", *local, str(port), *known)
            started.append(start(command, tmp_path / f"node{number}.log", env))

        def is_up():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", link)) == 0

        until(is_up, 60)
        yield env
    finally:
        end_all(env)
        for process in started:
            process.wait()


@pytest.mark.slow
def test_a_study_on_a_real_federation_is_killed_and_goes_on(federation, tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY)
    url = f"sqlite:///{tmp_path}/runs.db"
    command = (
        "fedplan", "run", str(tmp_path / "tiny.toml"), "--runner", "flower", "--federation", "lab",
        "--store", url, "--format", "json",
    )  # fmt: skip
    killed = start(command, tmp_path / "killed.log", federation)

    def rounds():
        with Store(url, readonly=True) as store:
            return [
                record
                for study in store.studies()
                for run in store.find_runs(study.experiment.settings)
                for record in run.rounds[1:]
            ]

    try:
        until(lambda: rounds() or killed.poll() is not None, 300)
        assert killed.poll() is None, (tmp_path / "killed.log").read_text()
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    again = subprocess.run(
        [BIN / command[0], *command[1:]], capture_output=True, text=True, env=federation
    )
    assert again.returncode == 0, again.stderr
    answer = json.loads(again.stdout)
    assert answer["success"] and answer["plan"]["course"] == "online"
    assert answer["measured"]["time_s"] > 0 and answer["bill"]["pilots"]["time_s"] == 0
    assert all(len(record.observations) == 3 for record in rounds())
    fleet = subprocess.run(
        [BIN / "fedplan", "profile", "--fleet-from", url, "--format", "json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [one["device"] for one in json.loads(fleet.stdout)["devices"]] == [
        "partition-0", "partition-1", "partition-2"
    ]  # fmt: skip
    grid = ("clients-per-round=3", "local-steps=4,5")
    swept = subprocess.run(
        [BIN / "fedplan", "sweep", *command[2:3], *grid, *command[3:]],
        capture_output=True, text=True, env=federation,
    )  # fmt: skip
    assert swept.returncode == 0, swept.stderr
    assert [cell["reached"] for cell in json.loads(swept.stdout)["cells"]] == [1, 1]
