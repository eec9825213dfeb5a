"""Sinks: what they are told, with the libraries themselves where those are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedplan.core.course import Decision
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.studies import sinks
from fedplan.studies.sinks import Sink, told

SETTING = uniform(2, 5)
RUN = RunRecord(
    setting=SETTING,
    seed=0,
    status="unfinished",
    rounds=(
        RoundRecord(round=0, loss=2.0, accuracy=0.1),
        RoundRecord(round=1, loss=1.5, cohort=(0, 2), setting=SETTING, seconds=3.0, joules=1.0),
        RoundRecord(round=2, loss=1.2, cohort=(1, 3), setting=SETTING, seconds=4.0, joules=2.0),
    ),
    decisions=(Decision.of(SETTING, 1), Decision.of(SETTING, 3, expected_rounds=12.0)),
)


def needs(package):
    """Skip, and say why, without the library; its own warnings are its own affair."""
    absent = find_spec(package) is None
    skip = pytest.mark.skipif(absent, reason=f"NOT TESTED: {package} is not installed.")
    return lambda test: skip(pytest.mark.filterwarnings("default")(test))


def test_a_round_tells_its_setting_loss_and_cost_and_the_whole_cost_once_it_is_predicted():
    (before, _), (first, _), (second, round_) = told(RUN)
    assert before["loss"] == 2.0 and before["accuracy"] == 0.1 and before["spent_s"] == 0.0
    assert (first["clients"], first["local_steps"], first["round_s"]) == (2, 5, 3.0)
    assert "predicted_s" not in first and "accuracy" not in first
    assert round_ == 2 and second["spent_s"] == 7.0 and second["predicted_rounds"] == 12.0
    assert second["predicted_s"] == 7.0 + 10 * 4.0 and second["predicted_j"] == 3.0 + 10 * 2.0


@pytest.fixture
def patience(monkeypatch):
    """Time for a library to make its database or start its process, on a busy machine too."""
    monkeypatch.setattr(sinks, "LAST_WORDS_S", 60.0)


class Recorder:
    """A library that remembers, and fails when told to."""

    def __init__(self, fails=False):
        self.told, self.ended, self.fails = [], threading.Event(), fails

    def __call__(self, _name):
        return self.log, self.ended.set

    def log(self, values, round_):
        if self.fails:
            raise ConnectionError("no route to host")
        self.told.append((round_, values["loss"]))


def give_to(monkeypatch, recorder):
    monkeypatch.setitem(sinks.OPENERS, "mlflow", ("json", "json", recorder))
    return Sink("mlflow", "digits")


def test_every_round_is_told_once_however_often_the_run_is_shown(monkeypatch):
    recorder = Recorder()
    sink = give_to(monkeypatch, recorder)
    sink(replace(RUN, rounds=RUN.rounds[:2]))
    sink(RUN)
    sink(RUN)
    sink.close()
    assert recorder.told == [(0, 2.0), (1, 1.5), (2, 1.2)] and recorder.ended.is_set()


def test_a_sink_that_fails_says_so_once_and_stops_nothing(monkeypatch, caplog):
    sink = give_to(monkeypatch, Recorder(fails=True))
    sink(RUN)
    sink.close()
    sink(RUN)
    (line,) = caplog.messages
    assert line == "mlflow hears no more of this training: ConnectionError('no route to host')"


def test_a_sink_that_hangs_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(sinks, "LAST_WORDS_S", 0.01)
    going_on = threading.Event()
    sink = give_to(monkeypatch, lambda _name: going_on.wait())
    sink(RUN)
    sink.close()
    assert sink._thread.is_alive()
    going_on.set()


def test_wrong_sinks_are_refused_before_anything_begins(monkeypatch):
    with pytest.raises(InputError, match="mlflow, tensorboard, wandb, but got 'excel'"):
        Sink("excel", "digits")
    monkeypatch.setitem(sinks.OPENERS, "mlflow", ("no_such_package", "it", None))
    with pytest.raises(InputError, match="Type: pip install it"):
        Sink("mlflow", "digits")


@needs("mlflow")
def test_mlflow(patience, tmp_path, monkeypatch):
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.chdir(tmp_path)
    sink = Sink("mlflow", "digits")
    sink(RUN)
    sink.close()
    client = MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [(one.step, one.value) for one in history] == [(0, 2.0), (1, 1.5), (2, 1.2)]
    assert run.info.status == "FINISHED" and run.data.metrics["predicted_s"] == 47.0


@needs("tensorboardX")
def test_tensorboard(patience, tmp_path, monkeypatch):
    from tensorboardX.proto.event_pb2 import Event

    monkeypatch.chdir(tmp_path)
    sink = Sink("tensorboard", "digits")
    sink(RUN)
    sink.close()
    (file,) = Path("runs/digits").iterdir()
    content, events = file.read_bytes(), []
    while content:  # a record: its length, a checksum, the event, and a checksum
        size = int.from_bytes(content[:8], "little")
        events.append(Event.FromString(content[12 : 12 + size]))
        content = content[16 + size :]
    losses = [
        (event.step, value.simple_value)
        for event in events
        for value in event.summary.value
        if value.tag == "loss"
    ]
    assert losses == [(0, 2.0), (1, 1.5), (2, pytest.approx(1.2))]


@needs("wandb")
def test_wandb(tmp_path):
    # In a process of its own: it takes hold of standard output, as pytest does.
    code = (
        "from studies.test_sinks import *; sink = Sink('wandb', 'digits'); sink(RUN); sink.close()"
    )
    environment = {**os.environ, "WANDB_MODE": "offline"}
    environment["PYTHONPATH"] = os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    (record,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"predicted_s" in record.read_bytes()
