"""Questions to the command line, to the explorer and from clients, with any values at all."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from invariant import bounded, run, tries

from fedplan import InputError
from fedplan.prices_and_limits import LIMITS, PRICES, kebab
from fedplan.web.answers import answer, doubts
from fedplan.web.shelf import Shelf
from fedplan.web.state import KEYS, parse_json, read_state

NUMBERS = st.one_of(
    st.sampled_from([0, 1, 2, 100, 1e-40, 1e40, 1e-41, 1e300, 5e-324, -1, 10**20, 10**400, 0.5]),
    st.floats(allow_nan=True),
    st.floats(1e-3, 1e3),
    st.integers(-1, 1000),
)
FLAGS = [f"--{kebab(name)}" for name in (*LIMITS, *PRICES)] + [
    "--target-gap",
    "--energy-weight",
    "--ratio",
]


@tries
@given(
    st.sampled_from(["plan", "frontier"]),
    st.dictionaries(st.sampled_from(FLAGS), NUMBERS, max_size=4),
    st.none() | st.tuples(NUMBERS, NUMBERS),
)
@example("plan", {"--min-local-steps": 10**20}, None)
@example("plan", {"--target-gap": 5e-324}, (1, 1))
@example("frontier", {"--target-gap": 1e-272}, (1e-300, 1e50))
@example("plan", {"--co2-per-kwh": 5e305}, None)
@example("plan", {"--price-hour": 1e300, "--price-kwh": 1e300}, None)
@example("frontier", {"--target-gap": 1.0}, (1e13, 1.0))
def test_flags(command, flags, bound):
    given_ = ["--bound", f"a0={bound[0]},b0={bound[1]}"] if bound else []
    run(command, "--example", *given_, *(f"{flag}={value}" for flag, value in flags.items()))


ANY = st.one_of(
    NUMBERS, st.text(max_size=8), st.booleans(), st.none(), st.lists(st.integers(), max_size=2),
    st.sampled_from(["drawn", "given", "own", "none", "prices", "turns", "uniform", "lognormal"]),
)  # fmt: skip
STATES = st.dictionaries(st.sampled_from([*KEYS, "other"]), ANY, max_size=8)


@pytest.fixture(scope="module")
def shelf():
    return Shelf("sqlite:///fedplan.db")


@tries
@given(state=STATES)
@example(state={"min_local_steps": 10**20})
@example(state={"bound": "own", "a0": 1, "b0": 1, "c0": 1, "target_gap": 5e-324})
def test_states(shelf, state):
    if isinstance(state.get("num_clients"), int | float) and state["num_clients"] > 2000:
        state["num_clients"] = 2000
    with bounded(), suppress(InputError):
        question = read_state(parse_json(json.dumps(state, allow_nan=True).encode()), shelf)
        json.dumps(answer(question))
        json.dumps(doubts(question))


@tries
@given(body=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
@example(body=b"[" * 60_000)
@example(body=b'{"a0": ' + b"9" * 5000 + b"}")
def test_bodies(shelf, body):
    with bounded(), suppress(InputError):
        read_state(parse_json(body), shelf)


@tries
@given(
    dtype=st.sampled_from(["float32", "float64", "object", "<U3", "float16", ""])
    | st.text(max_size=5),
    shape=st.lists(st.integers(-1, 2**63), max_size=3),
    stype=st.sampled_from(["numpy.ndarray", "pickle", ""]),
    data=st.binary(max_size=200),
    flips=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
    whole=st.booleans(),
)
def test_arrays_of_clients(dtype, shape, stype, data, flips, whole):
    flwr = pytest.importorskip("flwr.app")
    from fedplan.flower.replies import Layout, Rejected

    def array(dtype, shape, stype, data):
        return flwr.Array(dtype=dtype, shape=tuple(shape), stype=stype, data=data)

    model = flwr.Array(np.ones((2, 3), np.float32))
    layout = Layout(flwr.ArrayRecord({"w": model}))
    if whole:  # the true one, with some bytes changed
        content = bytearray(model.data)
        for place, value in flips:
            content[place % len(content)] = value
        sent = array(model.dtype, model.shape, model.stype, bytes(content))
    else:
        sent = array(dtype, shape, stype, data)
    with bounded(), suppress(Rejected):
        found = layout.read({"w": sent})
        assert found["w"].shape == (2, 3) and found["w"].dtype == np.float32


METRICS = ["num-examples", "fedplan-local-steps", "fedplan-train-seconds", "fedplan-joules"]
METRICS += ["fedplan-halfway", "loss", "accuracy", "other", ""]
SENT = st.one_of(
    st.sampled_from([7, 7, 7, 1.0, 0, -1, 2**63 - 1, 1e300, 5e-324]),
    st.floats(),
    st.lists(st.floats(), max_size=3) | st.just([0.5] * 256),
)


@tries
@given(
    metrics=st.lists(st.dictionaries(st.sampled_from(METRICS), SENT), min_size=1, max_size=2),
    like_a_client=st.booleans(),
    wrong=st.none() | st.text(max_size=40),
)
def test_messages_of_clients(metrics, like_a_client, wrong):
    flwr = pytest.importorskip("flwr.app")
    from flwr.supercore.task_identity import TaskIdentity

    from fedplan.flower.epochs import Asked
    from fedplan.flower.replies import MAX_EXAMPLES, MAX_REASON, Layout, Rejected, ReplyChecks

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    sound = dict(zip(METRICS[:4], (7, 7, 0.5, 1.0), strict=True)) if like_a_client else {}
    model = flwr.ArrayRecord({"w": flwr.Array(np.ones((2, 3), np.float32))})
    records = {f"m{n}": flwr.MetricRecord(sound | one) for n, one in enumerate(metrics)}
    asked = flwr.Message(flwr.RecordDict({"model": model}), 1, "train")
    content = flwr.RecordDict({"model": model, **records})
    if wrong is None:
        reply = flwr.Message(content, reply_to=asked)
    else:
        reply = flwr.Message(flwr.Error(0, wrong), reply_to=asked)
    checks = ReplyChecks(Layout(model))
    for check in (
        lambda: checks.trained(0, reply, Asked(7), 1.0),
        lambda: checks.evaluated(0, reply, "loss", "accuracy"),
    ):
        with bounded():
            try:
                assert 0 < check().examples <= MAX_EXAMPLES
            except Rejected as error:
                said = str(error)
                assert said.isprintable() and len(said) < 4 * MAX_REASON
