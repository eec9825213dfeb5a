"""A prototype in namespaces, as the command makes it, and what its limits really are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from machine import in_namespace, processes_within, within_quota
from processes import wait_until
from state import read_state

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shaped_machine")]

# Small shares: they must be had on a machine that is busy with other work.
PROFILE = """
[[device]]
name = "slow"
cpu = 0.08
up-mbit = 4
down-mbit = 8

[[device]]
name = "quick"
cpu = 0.16
up-mbit = 16
down-mbit = 32
"""
RECEIVE = """
import socket, sys, time
with socket.create_server((sys.argv[1], 5001)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    with connection:
        received, start = 0, None
        while chunk := connection.recv(1 << 16):
            if start is None and received > 200_000:  # past the bursts and the slow start
                received, start = 0, time.monotonic()
            received += len(chunk)
            end = time.monotonic()
print(received * 8 / 1e6 / (end - start))
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], 5001)) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
"""
ADDRESSES = {"link": "10.77.0.1", "slow": "10.77.0.2", "quick": "10.77.0.3"}


@pytest.fixture(scope="module")
def prototype(folder, tool):
    """The answer of `up`, and the state it has written."""
    profile = folder / "devices.toml"
    profile.write_text(PROFILE)
    done = tool("up", "--profile", profile, "--folder", folder, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), read_state(folder)


def namespace(state, name):
    return state.hub if name == "link" else f"{state.hub}-{name}"


def mbit_per_second(state, source, target, mbit):
    python = [sys.executable, "-c"]
    receiver = subprocess.Popen(
        in_namespace(namespace(state, target), [*python, RECEIVE, ADDRESSES[target]]),
        stdout=subprocess.PIPE,
        text=True,
    )
    with receiver:
        assert receiver.stdout.readline() == "ready\n"
        amount = str(round(mbit * 1e6 / 8 * 4))  # four seconds of it
        words = [*python, SEND, ADDRESSES[target], amount]
        subprocess.run(in_namespace(namespace(state, source), words), check=True)
        return float(receiver.stdout.read())


@pytest.mark.parametrize(
    ("source", "target", "mbit"),
    [("slow", "link", 4), ("link", "slow", 8), ("quick", "link", 16), ("link", "quick", 32)],
)
def test_each_direction_has_the_bandwidth_of_the_profile(prototype, source, target, mbit):
    assert mbit_per_second(prototype[1], source, target, mbit) == pytest.approx(mbit, rel=0.15)


@pytest.mark.parametrize(("name", "cpu"), [("slow", 0.08), ("quick", 0.16)])
def test_a_busy_device_has_its_share_of_a_core(prototype, name, cpu):
    group = namespace(prototype[1], name)
    (procs,) = (
        path
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu")
        if (path := Path(root, group, "cgroup.procs")).exists()
    )
    busy = subprocess.Popen(within_quota(procs, [sys.executable, "-c", "while True: pass"]))
    try:
        wait_until(lambda: busy.pid in processes_within([group]), 10, "it did not come in")
        before, start = used_seconds(group), time.monotonic()
        time.sleep(5.0)  # the measurement itself
        share = (used_seconds(group) - before) / (time.monotonic() - start)
    finally:
        busy.kill()
        busy.wait()
    assert share == pytest.approx(cpu, rel=0.15)


def used_seconds(group):
    """Processor time of all that runs on the device, its SuperNode included."""
    ticks = 0
    for pid in processes_within([group]):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_status_shows_the_devices_alive(prototype, folder, tool):
    shown = json.loads(tool("status", "--folder", folder, "--format", "json").stdout)
    assert [(one["name"], one["alive"]) for one in shown["processes"]] == [
        ("superlink", True),
        ("slow", True),
        ("quick", True),
    ]
    assert shown["next"] == prototype[0]["next"]
    assert [device["cpu"] for device in shown["devices"]] == [0.08, 0.16]


def test_nothing_listens_outside_the_namespaces_and_inside_only_on_private_addresses(prototype):
    state = prototype[1]
    heard = {
        name: {
            line.split()[3].rpartition(":")[0]
            for line in subprocess.run(
                in_namespace(namespace(state, name), ["ss", "-Hltn"]),
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        }
        for name in ADDRESSES
    }
    assert heard == {"link": {"10.77.0.1"}, "slow": {"127.0.0.1"}, "quick": {"127.0.0.1"}}


def test_the_line_to_type_reaches_the_superlink_and_so_does_every_device(prototype):
    # The security page says so of Flower 1.41: devices and `flwr` come in by the same port.
    line, state = prototype[0]["next"]["app"], prototype[1]
    for name in ("link", "slow"):
        words = line.replace("flwr run APP prototype", "flwr supernode list prototype")
        words = words.replace(f"exec {state.hub} ", f"exec {namespace(state, name)} ")
        environment = {**os.environ, "FLWR_TELEMETRY_ENABLED": "0"}
        done = subprocess.run(
            [*words.split(), "--format", "json"],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        assert [node["status"] for node in json.loads(done.stdout)["nodes"]] == ["online"] * 2


def test_a_second_up_is_refused_and_down_removes_everything_once(prototype, folder, tool, left_of):
    again = tool("up", "--devices", 1, "--folder", folder)
    assert again.returncode == 2 and "prototype down --folder" in again.stderr
    removed = json.loads(tool("down", "--folder", folder, "--format", "json").stdout)["removed"]
    assert removed["namespaces"] == 3 and removed["cgroups"] == 2 and removed["processes"] >= 3
    assert left_of(prototype[1]) == []
    once_more = tool("down", "--folder", folder)
    assert once_more.returncode == 0 and "nothing to remove" in once_more.stdout


@pytest.mark.parametrize("moment", ["state", "SuperLink", "Starting pi4-1", "Waiting"])
def test_down_cleans_up_after_an_up_that_was_killed(tmp_path, start_up, tool, left_of, moment):
    process = start_up("--devices", 2, "--folder", tmp_path)
    if moment == "state":
        wait_until(lambda: read_state(tmp_path) is not None, 30, "no state", every_s=0.001)
    else:
        while moment not in (line := process.stderr.readline()):
            assert line, "it has ended"
    state = read_state(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = tool("down", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_of(state) == []
    assert read_state(tmp_path) is None


def test_an_up_that_is_interrupted_cleans_up_by_itself(tmp_path, start_up, left_of):
    process = start_up("--devices", 1, "--folder", tmp_path)
    while "Waiting" not in (line := process.stderr.readline()):
        assert line, "it has ended"
    state = read_state(tmp_path)
    process.send_signal(signal.SIGINT)
    process.stderr.read()
    assert process.wait() == 130
    assert left_of(state) == []
    assert read_state(tmp_path) is None


def test_a_superlink_that_cannot_start_is_an_error_with_its_last_words(tmp_path, tool):
    certs = tmp_path / "certs"
    made = tool("certs", "--devices", 1, "--folder", tmp_path)
    assert made.returncode == 0, made.stderr
    (certs / "server.key").write_text("not a key")
    done = tool("up", "--devices", 1, "--folder", tmp_path)
    assert done.returncode == 1
    assert "superlink has ended. Its last words:" in done.stderr
    assert read_state(tmp_path) is None
