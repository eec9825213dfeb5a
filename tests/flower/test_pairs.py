"""The benchmark of pairs, planned FedAdam and plain FedAvg: here, and on real processes."""

from __future__ import annotations

import importlib
import logging
import sys
from contextlib import contextmanager
from io import StringIO

import pytest
from flower.deployment import ROOT, needs_proc
from flower.federation import InProcessGrid, make_nodes
from flower.test_examples import run_config
from flower.test_how_to import RealClock
from flwr.app import Context, RecordDict

TARGET = 0.6  # soon reached: a test of the benchmark, not a measurement


@pytest.fixture
def pairs(monkeypatch):
    """The program, which is not a package."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("flower_pairs")


class Here:
    """What a deployment is to the benchmark; an app has ended as soon as it has begun."""

    def __init__(self, folder, num_nodes, monkeypatch):
        self._folder, self._num_nodes, self._monkeypatch = folder, num_nodes, monkeypatch
        self._log = StringIO()

    def begin(self, app, **config):
        self._monkeypatch.syspath_prepend(app)
        forget_modules()  # of another app, whose package has the same name
        server, client = (
            importlib.import_module(f"quickstart.{name}") for name in ("server_app", "client_app")
        )
        nodes = make_nodes(self._num_nodes, comm_s=0)
        for node in nodes.values():
            node.config["num-partitions"] = self._num_nodes
        grid = InProcessGrid(client.app, nodes, RealClock())
        grid.send_and_receive = lambda messages, **_: list(
            grid.pull_messages(grid.push_messages(list(messages)))
        )
        grid.run_config = run_config(app) | {
            "store": f"{self._folder}/fedplan.db",
            "num-server-rounds": 4,  # the plain one would go on
            **{key.replace("_", "-"): value for key, value in config.items()},
        }
        handler = logging.StreamHandler(self._log)
        logging.getLogger("flwr").addHandler(handler)
        server.app(grid, Context(1, 0, {}, RecordDict(), grid.run_config))
        logging.getLogger("flwr").removeHandler(handler)
        return self

    def poll(self):
        return 0

    def said(self, _name):
        return self._log.getvalue()


def forget_modules():
    for name in [name for name in sys.modules if name.partition(".")[0] == "quickstart"]:
        del sys.modules[name]


def test_both_apps_of_a_pair_reach_the_target(pairs, monkeypatch):
    @contextmanager
    def deployed(folder, num_nodes, _seconds_per_batch):
        yield Here(folder, num_nodes, monkeypatch)
        forget_modules()

    monkeypatch.setattr(pairs, "deployed", deployed)
    reach_the_target(pairs)


@pytest.mark.e2e  # two federations, one after the other; the apps are those above
@needs_proc
def test_both_apps_of_a_pair_reach_the_target_on_real_processes(pairs):
    """Which is quicker is for an idle machine to say."""
    reach_the_target(pairs)


def reach_the_target(pairs):
    for app in pairs.APPS:
        run = pairs.measure(app, 1, target=TARGET, limit_s=300.0)
        assert run.reached and run.loss <= TARGET and run.rounds >= 1
