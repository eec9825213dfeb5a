"""Clients as they are: a ClientApp of Flower's own that counts epochs."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from flower.conftest import RATE, make_federation
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg

from fedplan import FedplanError, InputError, read_fleet
from fedplan.flower import Epochs, Planned
from fedplan.flower.app import client_app, pack, unpack
from fedplan.store import Store

BATCH = 32
STEPS = 22  # of the mean client, which has 700 samples
SLOWER, COMM_S = 4.0, 60.0  # so that several epochs pay, and seconds are seen to a few percent
TARGET = 0.9


class Killed(BaseException):
    """What ends a server at once."""


def unconverted(learner, key="local-epochs"):
    """An app that knows nothing of fedplan; `learner` takes the virtual time of its steps."""
    app = ClientApp()

    @app.train()
    def train(message, context):
        client = context.node_config["partition-id"]
        config = {"local-epochs": 1} | dict(message.content["config"])
        weights = unpack(message.content["arrays"])
        steps = round(config[key] * math.ceil(learner.sizes[client] / BATCH))
        learner.train_round(
            weights, np.array([client]), np.ones(1), steps, config["learning-rate"], 0,
            config["server-round"],
        )  # fmt: skip
        metrics = MetricRecord({"num-examples": int(learner.sizes[client])})
        return Message(RecordDict({"arrays": pack(weights), "metrics": metrics}), reply_to=message)

    return app


@pytest.fixture
def plain(logistic):
    return plain_federation(logistic)


def plain_federation(logistic):
    federation = make_federation(logistic)
    federation.grid.app = unconverted(federation.learner)
    federation.learner._step_s = SLOWER * federation.learner._step_s
    for node in federation.grid.nodes.values():
        node.comm_s = COMM_S
    return federation


def train(federation, folder, *, kill_at=None, target_loss=TARGET, rounds=40, **options):
    evaluated = []

    def evaluate_fn(round_, arrays):
        evaluated.append(round_)
        if len(evaluated) == kill_at:
            raise Killed
        return MetricRecord({"loss": federation.evaluate(round_, arrays)[0]})

    options.setdefault("epochs", Epochs(steps=STEPS))
    planned = Planned(
        FedAvg(fraction_evaluate=0.0), target_loss=target_loss, learning_rate=RATE,
        store=f"sqlite:///{folder}/fedplan.db", clock=federation.clock, **options,
    )  # fmt: skip
    planned.start(federation.grid, federation.initial, num_rounds=rounds, evaluate_fn=evaluate_fn)
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        (run,) = [run for one in store.experiments() for run in store.find_runs(one.settings)]
    return planned, run


def test_all_and_half_of_the_epochs_by_turns_tell_the_saturation(plain, tmp_path):
    planned, run = train(plain, tmp_path)
    assert planned.status == "target"
    signals = [record.signal for record in run.rounds if record.signal is not None]
    assert any(one.whole.any() for one in signals) and any(one.halfway.any() for one in signals)
    assert not any(one.whole.any() and one.halfway.any() for one in signals)
    assert any("show this saturation" in decision.why for decision in run.decisions)
    sent = [
        one.content["config"] for one in plain.grid.sent if one.metadata.message_type == "train"
    ]
    assert all(isinstance(config["local-epochs"], int) for config in sent)
    assert not any("sketch-seed" in config for config in sent)


def test_epochs_are_local_steps_and_halves_are_half_of_them(plain, tmp_path):
    _, run = train(plain, tmp_path, target_loss=0.05, rounds=24)
    wanted = {record.round: record.setting.local_steps for record in run.rounds[1:]}
    asked = {}
    for message in plain.grid.sent:
        if message.metadata.message_type == "train":
            config = message.content["config"]
            assert config["local-steps"] == STEPS * config["local-epochs"]
            asked.setdefault(config["server-round"], set()).add(config["local-epochs"])
    wholes, halves = {}, {}
    for record in run.rounds[1:]:
        (epochs,) = asked[record.round]  # all clients of a round make as many
        assert all(one.local_steps == STEPS * epochs for one in record.observations)
        is_half = record.signal is not None and not record.signal.whole.any()
        (halves if is_half else wholes).setdefault(wanted[record.round], set()).add(epochs)
    assert halves and wholes
    for steps, epochs in wholes.items():
        (number,) = epochs
        assert number == 1 or (number % 2 == 0 and abs(number * STEPS - steps) <= STEPS)
        assert all(2 * half == number for half in halves.get(steps, ()))
    told = sum(len(found) for found in halves.values())
    assert told and max(max(found) for found in wholes.values()) >= 2


def test_turns_of_all_and_half_tell_about_the_saturation_that_sketches_tell(logistic, tmp_path):
    found = []
    for converted in (True, False):
        federation = plain_federation(logistic)
        if converted:
            federation.grid.app = client_app(
                lambda _, timed=federation.learner: timed, clock=federation.clock.client_now
            )
        folder = tmp_path / str(converted)
        folder.mkdir()
        options = {"epochs": None} if converted else {}
        _, run = train(federation, folder, target_loss=0.05, rounds=40, **options)
        seen = [one.saturation for one in run.decisions if one.saturation]
        found.append(median(seen))
    assert found[1] == pytest.approx(found[0], rel=1.0)  # a factor of two, that is


def test_what_an_epoch_costs_is_seen_from_outside(plain, tmp_path):
    _, run = train(plain, tmp_path, target_loss=0.05, rounds=12)
    # Such clients do not say who they are, and go by the ids of their nodes.
    partitions = [
        plain.grid.nodes[node].config["partition-id"] for node in sorted(plain.grid.nodes)
    ]
    answers = [one for record in run.rounds for one in record.observations if not one.problem]
    for one in answers:
        assert one.examples == plain.learner.sizes[partitions[one.client]]
        assert one.local_steps % STEPS == 0 and one.train_seconds == one.round_trip_seconds
    fleet = read_fleet(tmp_path / "flower-flower" / "fleet.csv")
    for client, partition in enumerate(partitions):
        batches = math.ceil(plain.learner.sizes[partition] / BATCH)
        epoch_s = batches * plain.learner._step_s[partition]
        assert fleet.step_time_s[client] * STEPS == pytest.approx(epoch_s, rel=0.1, abs=2.0)
        assert fleet.comm_time_s[client] == pytest.approx(COMM_S, rel=0.1)


def test_a_killed_server_goes_on_as_if_it_had_not_been(logistic, tmp_path):
    runs = []
    for name, kill_at in (("whole", None), ("killed", 14)):
        federation = plain_federation(logistic)
        (tmp_path / name).mkdir()
        if kill_at:
            with pytest.raises(Killed):
                train(federation, tmp_path / name, kill_at=kill_at, target_loss=0.05, rounds=12)
        runs.append(train(federation, tmp_path / name, target_loss=0.05, rounds=12)[1])
    assert runs[0].losses == runs[1].losses
    assert runs[0].decisions == runs[1].decisions


def test_parts_of_epochs_under_a_key_of_ones_own(plain, tmp_path):
    plain.grid.app = unconverted(plain.learner, "passes")
    train(plain, tmp_path, rounds=6, epochs=Epochs(steps=STEPS, key="passes", whole=False))
    sent = [
        one.content["config"] for one in plain.grid.sent if one.metadata.message_type == "train"
    ]
    assert any(config["passes"] % 1 for config in sent)


def test_without_epochs_the_log_says_what_to_give(plain, tmp_path):
    planned, _ = train(plain, tmp_path, epochs=None)
    assert planned.status == "unavailable"
    assert "epochs=Epochs(steps=...)" in planned.message


def test_other_epochs_are_another_study(plain, tmp_path):
    train(plain, tmp_path, rounds=2)
    with pytest.raises(FedplanError, match="epochs was"):
        train(plain, tmp_path, rounds=2, epochs=Epochs(steps=16))


def test_an_epoch_has_a_step():
    with pytest.raises(InputError, match="steps >= 1"):
        Epochs(steps=0)
