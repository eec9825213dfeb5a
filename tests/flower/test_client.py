"""The client's two lines: steps are read, training is timed, metrics are added."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from flower.federation import InProcessGrid, Node, VirtualClock
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedplan import FedplanError, flower
from fedplan.core.records import Stop
from fedplan.flower import FlowerRunner, MeasuredClientApp, local_steps
from fedplan.participation import uniform


def make_app(clock, train, **options):
    app = MeasuredClientApp(clock=clock.client_now, **options)

    @app.train()
    def _(message, context):
        metrics = train(message)
        content = {"arrays": message.content["arrays"], "metrics": MetricRecord(metrics)}
        return Message(RecordDict(content), reply_to=message)

    return app


def run_once(app, clock, nodes=2, **options):
    grid = InProcessGrid(app, {i: Node({"partition-id": i}) for i in range(nodes)}, clock)
    arrays = ArrayRecord({"w": Array(np.zeros(3))})
    runner = FlowerRunner(grid, arrays, evaluate=lambda *_: (1.0, None), clock=clock, **options)
    return runner.run(uniform(nodes, 7), Stop(max_rounds=1))


def test_training_is_timed_and_metered():
    clock = VirtualClock()

    class Meter:
        def start(self):
            self.joules = 0.0

        def stop(self):
            return self.joules

    def train(message):
        clock.train(0.5 * local_steps(message))
        meter.joules += 3.0
        return {"num-examples": 10}

    meter = Meter()
    run = run_once(make_app(clock, train, meter=meter), clock)
    for one in run.rounds[1].observations:
        assert (one.local_steps, one.train_seconds, one.joules) == (7, 3.5, 3.0)
        assert 4.0 <= one.round_trip_seconds < 4.3  # 0.5 s of communication, and the polling
    assert run.rounds[1].joules == 6.0


def test_without_a_meter_there_are_no_joules():
    clock = VirtualClock()
    run = run_once(make_app(clock, lambda m: {"num-examples": local_steps(m)}), clock)
    assert [one.joules for one in run.rounds[1].observations] == [None, None]


def test_a_loop_that_does_not_ask_for_its_steps_is_found_out():
    clock = VirtualClock()
    run = run_once(make_app(clock, lambda _: {"num-examples": 1}), clock)
    assert run.status == "unavailable" and "fedplan.flower.steps(message" in run.message


def test_an_app_that_did_fewer_steps_can_say_so():
    clock = VirtualClock()
    app = make_app(clock, lambda m: {"num-examples": 1, "fedplan-local-steps": local_steps(m) - 1})
    assert "did 6 local steps, and 7 were asked for" in run_once(app, clock).message


def test_an_error_that_an_app_replies_with_arrives():
    clock = VirtualClock()
    app = MeasuredClientApp(clock=clock.client_now)

    @app.train()
    def _(message, context):
        return Message(Error(17, "the camera is off"), reply_to=message)

    assert "failed with error 17: the camera is off" in run_once(app, clock).message


def test_an_app_without_examples_is_told_what_is_missing():
    clock = VirtualClock()
    run = run_once(make_app(clock, lambda m: {"loss": local_steps(m)}), clock)
    assert "its MetricRecord must have num-examples, but has" in run.message


@pytest.mark.parametrize("steps", [None, 0, -1, True, 2.5, "3"])
def test_a_message_without_steps_says_what_to_do(steps):
    InProcessGrid(None, {}, VirtualClock())  # messages need a run
    config = ConfigRecord({} if steps is None else {"local-steps": steps})
    message = Message(RecordDict({"config": config}), 1, "train")
    with pytest.raises(FedplanError, match="Planned"):
        local_steps(message)


def test_flowers_own_strategy_takes_the_replies():
    clock = VirtualClock()
    app = make_app(clock, lambda m: {"num-examples": local_steps(m)})
    grid = InProcessGrid(app, {i: Node({}) for i in range(2)}, clock)
    strategy = FedAvg(fraction_evaluate=0.0)
    arrays = ArrayRecord({"w": Array(np.ones(3))})
    messages = list(strategy.configure_train(1, arrays, ConfigRecord({"local-steps": 4}), grid))
    ids = grid.push_messages(messages)
    clock.sleep(1)
    averaged, metrics = strategy.aggregate_train(1, list(grid.pull_messages(ids)))
    assert averaged is not None and metrics["fedplan-local-steps"] == 4


def test_without_flower_the_package_says_what_to_type():
    code = "import sys; sys.modules['flwr'] = None; import fedplan.cli; import fedplan.flower"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode and "pip install 'fedplan[flower]'" in run.stderr
    assert "ImportError" in run.stderr or "MissingExtraError" in run.stderr


def test_a_client_does_not_import_the_planner():
    code = (
        "import sys; from fedplan.flower import MeasuredClientApp, local_steps; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "numba", "pydantic", "sqlite3"} & set(run.stdout.split())


def test_exported_names_are_there_and_no_others():
    assert dir(flower) == ["Epochs", "FlowerRunner", "MeasuredClientApp", "Planned",
                           "PlannedFedAvg", "RoundRules", "local_steps", "steps"]  # fmt: skip
    assert all(getattr(flower, name) is not None for name in dir(flower))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = flower.no_such_name
