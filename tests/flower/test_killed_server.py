"""A server process that is killed (kill -9) at ten random moments loses nothing it has recorded."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from flower.deployment import stored_runs

from fedplan.flower.journal import load_weights

pytestmark = pytest.mark.slow  # twelve processes, one after the other

SERVER = Path(__file__).with_name("killable_server.py")
KILLS = 10
MODELS_PER_KILL = 4  # that are evaluated before it, at most


def begin(folder):
    """Start the server, or go on with it."""
    search = os.pathsep.join([str(SERVER.parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(SERVER), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": search},
    )


def hear(server, models=10**6):
    """Read the server's words until it has evaluated so many models; the seconds for each."""
    began, heard = time.monotonic(), 0
    for line in server.stdout:
        heard += line.startswith("evaluates")
        if heard == models:
            break
    return (time.monotonic() - began) / max(heard, 1)


def test_a_server_killed_at_ten_random_moments_comes_to_the_same(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    with begin(whole) as server:
        seconds = hear(server)
    (uninterrupted,) = stored_runs(whole, "flower")
    draws, recorded = random.Random(0), 0
    for _ in range(KILLS):
        with begin(parts) as server:
            hear(server, draws.randint(1, MODELS_PER_KILL))
            time.sleep(draws.uniform(0.0, seconds))  # the moment that is tested
            server.kill()
        found = [record for run in stored_runs(parts, "flower") for record in run.rounds]
        assert len(found) >= recorded and tuple(found) == uninterrupted.rounds[: len(found)]
        recorded = len(found)
    assert 0 < recorded < len(uninterrupted.rounds)
    with begin(parts) as server:
        hear(server)
    (resumed,) = stored_runs(parts, "flower")
    assert resumed == uninterrupted and resumed.status == "rounds"
    one, other = (load_weights(each / "flower-flower" / "model.npz") for each in (whole, parts))
    assert all((one.weights[name] == other.weights[name]).all() for name in one.weights)
    failed = 0
    for record in resumed.rounds[1:]:
        used = {one.client for one in record.observations if not one.problem}
        failed += len(record.observations) - len(used)
        assert used == set(record.cohort)
    assert failed > KILLS  # updates that could not be used, none of which was averaged
