"""Light devices: the simulator's losses, real seconds, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from processes import wait_until

TOOL = Path(__file__).parents[1]
# Devices are forks of a process that has no threads yet, which pytest's is not.
BEGIN = """
import json, os, socket, sys
from fedplan.core.records import Stop
from fedplan.participation import uniform
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
from light import LightDevice, end_devices, start_devices
experiment = build_experiment(read_study("setup1"))
experiment.simulator.warm_up()
learner = experiment.simulator.learner
"""
ON_LOOPBACK = """
server = socket.create_server(("127.0.0.1", 0))
devices = [LightDevice(client, 0.004 if client else 0.02) for client in range(20)]
connections, pids = start_devices(learner, devices, server, server.getsockname())
"""
TRAIN = """
from setup1 import Bench
bench = Bench(experiment, connections, Stop(max_rounds=3))
run, row = bench.train(uniform(20, 10))
seen = [[one.train_seconds, one.round_trip_seconds] for one in run.rounds[-1].observations]
simulated = experiment.simulator.run(uniform(20, 10), Stop(max_rounds=3)).losses
print(json.dumps({"losses": run.losses, "simulated": simulated, "seen": seen, "row": row}))
"""


def run_lines(code):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOOL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_devices_train_as_the_simulator_does_and_take_the_time_of_their_steps():
    told = run_lines(BEGIN + ON_LOOPBACK + TRAIN + "end_devices(connections, pids)")
    assert told["losses"] == pytest.approx(told["simulated"], rel=1e-5)
    seconds = [train for train, _ in told["seen"]]
    assert seconds[0] >= 0.2 and all(one >= 0.04 for one in seconds[1:])
    assert all(trip >= train for train, trip in told["seen"])
    assert told["row"]["rounds"] == 3 and 0.5 < told["row"]["test_accuracy"] < 1


def test_devices_end_with_the_process_that_has_begun_them():
    lines = BEGIN + ON_LOOPBACK + "print(json.dumps(pids), flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", lines], cwd=TOOL, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pids = json.loads(process.stdout.readline())
    assert len(pids) == 20 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    process.kill()
    process.communicate()

    def all_gone():
        return not any(is_running(pid) for pid in pids)

    wait_until(all_gone, 20, "devices are left")


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.e2e
def test_a_link_takes_the_seconds_it_was_made_for(shaped_machine):
    lines = """
from light import enter
from machine import LINK_ADDRESS
from setup1 import HUB, device_for, network
comm_s = [0.5, *[0.2] * 19]  # slower ones drop packets: the queue has room for 400 ms
links = [device_for(client, one, learner.initial(0).nbytes) for client, one in enumerate(comm_s)]
with network(links) as names:
    enter(HUB)
    server = socket.create_server((LINK_ADDRESS, 0))
    devices = [LightDevice(client, 0.003, name) for client, name in enumerate(names)]
    connections, pids = start_devices(learner, devices, server, server.getsockname())
"""
    ending = "end_devices(connections, pids)"
    inside = "\n".join(f"    {line}" for line in [*TRAIN.splitlines(), ending])
    told = run_lines(BEGIN + lines + inside)
    comm = [trip - train for train, trip in told["seen"]]
    assert comm[0] == pytest.approx(0.5, rel=0.25)
    assert sorted(comm[1:])[9] == pytest.approx(0.2, rel=0.35)  # the median: this machine is shared
    assert told["losses"] == pytest.approx(told["simulated"], rel=1e-5)
    assert not list(Path("/run/netns").glob("fedplan-setup1*"))


def test_the_page_has_what_was_measured():
    root = TOOL.parents[1]
    shown = subprocess.run(
        [sys.executable, "-c", "import json, setup1; "
         "print(setup1.tables(json.loads(setup1.RESULTS.read_text())))"],
        cwd=TOOL, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    page = (root / "reproduction" / "prototype.md").read_text()
    rows = [line for line in shown.splitlines() if line.startswith("| ")]
    assert len(rows) == 16 and all(row in page for row in rows)
