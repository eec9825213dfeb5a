"""Flower's own simulation engine: clients that wait for a core are not slow to communicate."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# In a process of its own: the engine keeps threads, and a cluster of Ray's.
CODE = """
import json, time
import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from fedplan.core.records import Stop
from fedplan.flower import FlowerRunner, MeasuredClientApp, steps
from fedplan.participation import uniform

client, server = MeasuredClientApp(), ServerApp()

@client.train()
def train(message, context):
    arrays = message.content["arrays"]
    for _ in steps(message, lambda: arrays):
        time.sleep(0.2)
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 10})})
    return Message(content, reply_to=message)

@server.main()
def main(grid, context):
    runner = FlowerRunner(grid, ArrayRecord([np.zeros(3)]), evaluate=lambda *_: (1.0, None))
    runner.wait_for(4)
    run = runner.run(uniform(4, 10), Stop(max_rounds=2))
    record = run.rounds[-1]
    trips = [one.round_trip_seconds - one.train_seconds for one in record.observations]
    print("SEEN", json.dumps([record.seconds, trips]), flush=True)

one_at_a_time = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 1}}
run_simulation(server, client, num_supernodes=4, backend_config=one_at_a_time)
"""


@pytest.mark.e2e
def test_a_wait_for_a_core_of_the_machine_is_not_the_devices_communication():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    assert lines, done.stderr[-2000:]
    seconds, beyond = json.loads(lines[0].removeprefix("SEEN "))
    assert seconds > 8.0  # four of them, 2 s each, one after the other
    assert max(beyond) < 2.0  # the last of them has waited for 6 s
