"""Whatever a client sends: the server goes on, says what was wrong, and averages none of it."""

from __future__ import annotations

import io
import math
import pickle
import re

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from fedplan import InputError
from fedplan.core.records import Stop
from fedplan.flower.replies import Layout, Rejected, clean
from fedplan.flower.rules import RoundRules
from fedplan.participation import uniform

VILLAIN = 7  # a client of the first round with seed 1 and all clients


class Bomb:
    """Unpickling it ends the test session with a message."""

    def __reduce__(self):
        return pytest.exit, ("something was unpickled",)


def with_metrics(**changes):
    def tamper(_, reply):
        record = reply.content["metrics"]
        for key, value in changes.items():
            record[key.replace("_", "-")] = value
        return reply

    return tamper


def without_metric(key):
    def tamper(_, reply):
        del reply.content["metrics"][key]
        return reply

    return tamper


def with_array(**changes):
    """Another array under the same name, with any of its four fields changed."""

    def tamper(_, reply):
        array = reply.content["arrays"]["weights"]
        fields = {"dtype": array.dtype, "shape": array.shape, "stype": array.stype}
        new = Array(**(fields | {"data": array.data} | changes))
        reply.content["arrays"] = ArrayRecord({"weights": new})
        return reply

    return tamper


def with_weights(change):
    def tamper(_, reply):
        weights = np.array(reply.content["arrays"]["weights"].numpy())
        reply.content["arrays"] = ArrayRecord({"weights": Array(change(weights))})
        return reply

    return tamper


def with_content(change):
    def tamper(asked, reply):
        return Message(change(reply.content), reply_to=asked)

    return tamper


def saved(value, **options):
    file = io.BytesIO()
    np.save(file, value, **options)
    return file.getvalue()


def set_first(value):
    def change(weights):
        weights[0] = value
        return weights

    return change


def add_record(name, record):
    def change(content):
        content[name] = record
        return content

    return change


WEIGHTS = np.zeros(610, np.float32)
DEEP = b"\x93NUMPY\x01\x00" + (9000).to_bytes(2, "little") + b"(" * 9000
HOSTILE = {
    "nan seconds": (with_metrics(fedplan_train_seconds=math.nan), "finite"),
    "infinite seconds": (with_metrics(fedplan_train_seconds=math.inf), "finite"),
    "negative seconds": (with_metrics(fedplan_train_seconds=-1.0), "took -1.0 s"),
    "longer than the round trip": (with_metrics(fedplan_train_seconds=1e6), "round trip"),
    "seconds as a list": (with_metrics(fedplan_train_seconds=[1.0]), "finite number"),
    "no seconds": (without_metric("fedplan-train-seconds"), "None s"),
    "negative joules": (with_metrics(fedplan_joules=-5.0), "-5 J"),
    "absurd joules": (with_metrics(fedplan_joules=1e18), "1e\\+18 J"),
    "nan joules": (with_metrics(fedplan_joules=math.nan), "finite"),
    "no examples": (with_metrics(num_examples=0), "above 0"),
    "negative examples": (with_metrics(num_examples=-3), "above 0"),
    "nan examples": (with_metrics(num_examples=math.nan), "finite"),
    "absurd examples": (with_metrics(num_examples=10**15), "above 0"),
    "far more than others": (with_metrics(num_examples=10**9), "whole average"),
    "examples as a list": (with_metrics(num_examples=[5, 5]), "finite number"),
    "examples not said": (without_metric("num-examples"), "must have num-examples"),
    "other steps": (with_metrics(fedplan_local_steps=1), "did 1 local steps, and 3"),
    "steps not said": (without_metric("fedplan-local-steps"), "how many local steps"),
    "nan weights": (with_weights(set_first(math.nan)), "not finite"),
    "infinite weights": (with_weights(set_first(-math.inf)), "not finite"),
    "other shape": (with_weights(lambda w: w.reshape(10, 61)), "must be float32"),
    "other size": (with_weights(lambda w: w[:-1]), "must be float32"),
    "other type": (with_weights(lambda w: w.astype(np.float64)), "must be float32"),
    "other bytes": (with_array(data=b"nonsense"), "not what it is declared"),
    "no bytes": (with_array(data=b""), "not what it is declared"),
    "fewer bytes": (with_array(data=saved(WEIGHTS)[:-4]), "bytes, but has"),
    "more bytes": (with_array(data=saved(WEIGHTS) + b"1234"), "bytes, but has"),
    "other header": (with_array(data=saved(np.zeros(10**6))), "not what it is declared"),
    "deep header": (with_array(data=DEEP), "not what it is declared"),
    "a pickle": (with_array(data=pickle.dumps(Bomb())), "not what it is declared"),
    "pickled array": (
        with_array(data=saved(np.array([Bomb()], object), allow_pickle=True)),
        "not what it is declared",
    ),
    "declared a pickle": (with_array(stype="pickle"), "must be float32"),
    "huge shape": (with_array(shape=(10**15,)), "must be float32"),
    "missing array": (with_content(add_record("arrays", ArrayRecord())), "missing \\['weights'\\]"),
    "extra array": (
        with_content(
            add_record("arrays", ArrayRecord({"weights": Array(WEIGHTS), "b": Array(WEIGHTS)}))
        ),
        "unknown \\['b'\\]",
    ),
    "extra record": (with_content(add_record("more", ArrayRecord())), "holds 2"),
    "two metrics": (
        with_content(add_record("more", MetricRecord({"num-examples": 1}))),
        "one MetricRecord",
    ),
    "nothing": (with_content(lambda _: RecordDict()), "one MetricRecord"),
    "an error": (
        lambda asked, _: Message(Error(2, "a\n\x1b[2Jlie"), reply_to=asked),
        "failed with error 2: a \\[2Jlie",
    ),
    "no answer": (lambda *_: None, "no answer within"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_reply_is_refused_and_another_client_takes_its_place(federation, kind):
    tamper, reason = HOSTILE[kind]
    runner = federation.runner(rules=RoundRules(deadline_s=20.0))
    runner.run(uniform(10, 3), Stop(max_rounds=1), seed=1)  # others' examples are known now
    federation.node_of(VILLAIN).tamper = tamper
    run = runner.run(uniform(10, 3), Stop(max_rounds=4), seed=1)
    assert run.status == "rounds"
    refused = [one for r in run.rounds for one in r.observations if one.problem]
    assert refused and {one.client for one in refused} == {VILLAIN}
    assert all(re.search(reason, one.problem) for one in refused), refused[0].problem
    assert all(one.train_seconds is one.joules is None for one in refused)
    for record in run.rounds[1:]:
        assert len(record.cohort) == 10 and VILLAIN not in record.cohort
        assert {one.client for one in record.observations if not one.problem} == set(record.cohort)
    assert run.losses[-1] < run.losses[0] and np.isfinite(runner.weights["weights"]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"eval_loss": math.nan},
        {"eval_loss": [1.0]},
        {"eval_acc": 7.0},
        {"num-examples": 0},
        {"num-examples": 10**9},
    ],
    ids=str,
)
def test_a_hostile_evaluation_is_left_out(federation, changes):
    runner = federation.runner(evaluate=None)
    runner.run(uniform(5, 3), Stop(max_rounds=1), seed=1)

    def tamper(_, reply):
        for key, value in changes.items():
            reply.content["metrics"][key] = value
        return reply

    federation.node_of(VILLAIN).tamper_evaluation = tamper
    run = runner.run(uniform(5, 3), Stop(max_rounds=2), seed=1)
    federation.node_of(VILLAIN).tamper_evaluation = lambda *_: None
    without = federation.runner(evaluate=None).run(uniform(5, 3), Stop(max_rounds=2), seed=1)
    assert run.status == "rounds" and run.losses == without.losses


def test_losses_that_most_clients_find_infinite_have_diverged(federation):
    def nan_loss(_, reply):
        reply.content["metrics"]["eval_loss"] = math.nan
        return reply

    for node in list(federation.grid.nodes.values())[:11]:
        node.tamper_evaluation = nan_loss
    run = federation.runner(evaluate=None).run(uniform(5, 3), Stop(max_rounds=2))
    assert run.status == "diverged"


def test_metrics_of_the_apps_own_do_no_harm(federation):
    heard = []
    for place, node in enumerate(federation.grid.nodes.values()):
        own = {"loss": 2.0, f"key-{place}": 1.0, "bad": math.nan, "list": [1.0]}
        node.tamper = with_metrics(**own)
    runner = federation.runner(report=lambda _, made: heard.append(made.metrics))
    assert runner.run(uniform(5, 2), Stop(max_rounds=1)).status == "rounds"
    assert heard == [None, {"loss": pytest.approx(2.0), "list": [pytest.approx(1.0)]}]


def test_arrays_in_either_order_are_read(federation):
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    layout = Layout(ArrayRecord({"a": Array(matrix), "n": Array(np.array(3))}))
    for order in "CF":
        record = ArrayRecord({"n": Array(np.array(5)), "a": Array(np.asarray(matrix, order=order))})
        read = layout.read(record)
        assert list(read) == ["a", "n"] and read["n"] == 5
        np.testing.assert_array_equal(read["a"], matrix)


@pytest.mark.parametrize(
    "arrays", [{}, {"a": np.array(["x"])}, {"a": np.array([math.nan])}], ids=str
)
def test_a_model_that_cannot_be_averaged_is_refused(arrays):
    with pytest.raises(InputError, match="must"):
        Layout(ArrayRecord({name: Array(value) for name, value in arrays.items()}))


@given(data=st.binary(max_size=200), at=st.integers(0, 200), declared=st.text(max_size=20))
def test_any_bytes_are_read_or_refused(data, at, declared):
    weights = np.linspace(0, 1, 7, dtype=np.float32)
    layout = Layout(ArrayRecord({"w": Array(weights)}))
    good = saved(weights)
    for content in (data, good[:at] + data + good[at + len(data) :]):
        for dtype in ("float32", declared):
            array = Array(dtype=dtype, shape=(7,), stype="numpy.ndarray", data=content)
            try:
                read = layout.read({"w": array})["w"]
            except Rejected as reason:
                said = str(reason)
            else:
                said = "nothing wrong"
                assert read.shape == (7,) and np.isfinite(read).all()
            assert said.isprintable()


@given(st.text())
def test_a_clients_words_are_one_short_line(text):
    assert clean(text).isprintable() and len(clean(text)) < 400
