"""A state is understood whole, or refused with everything that is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan.errors import InputError
from fedplan.web.answers import answer
from fedplan.web.shelf import Shelf
from fedplan.web.state import KEYS, parse_json, read_state


def refused(shelf, state):
    with pytest.raises(InputError) as error:
        answer(read_state(state, shelf))
    return [str(problem) for problem in error.value.problems]


def test_all_problems_are_said_at_once(shelf):
    problems = refused(
        shelf,
        {
            "energy_weight": 2,
            "deadline_s": -1,
            "min_clients_per_round": 500,
            "method": "best",
            "current_clients_per_round": 0,
            "current_local_steps": 5,
            "colour": "red",
            "max_rounds": "many",
        },
    )
    text = "\n".join(problems)
    for word in (
        "energy_weight=2.0", "deadline_s=-1.0", "method must be exact",
        "current_clients_per_round", "colour is not known", "max_rounds must be a whole number",
    ):  # fmt: skip
        assert word in text, word


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({"fleet": "drawn", "num_clients": 10**9}, "`num_clients <= 200000` must hold"),
        ({"fleet": "drawn", "num_clients": 10**400}, "`num_clients <= 200000` must hold"),
        ({"fleet": "drawn", "step_time_s": -1}, "step_time_s"),
        ({"fleet": "f" * 24}, "Upload the file again"),
        ({"pilots": "f" * 24}, "Upload the file again"),
        ({"fleet": ["given"]}, "fleet must be a text"),
        ({"energy_weight": True}, "energy_weight must be a number"),
        ({"max_local_steps": 2.5}, "max_local_steps must be a whole number"),
        ({"bound": "own", "a0": 1.0}, "needs b0, c0"),
        ({"bound": "own", "a0": 1.0, "b0": 1.0, "c0": 0.0, "target_gap": 0}, "target_gap"),
        ({"bound": "own", "a0": 1.0, "b0": 0.0, "c0": 0.0}, "max_local_steps"),
        ({"method": "robust"}, "Plan from pilots"),
        ({"participation": "turn"}, "participation must be uniform, shuffled, turns"),
        ({"bound": "none", "rounds": -1}, "`rounds >= 1` must hold"),
        ({"bound": "none", "saturation_low": 300}, "saturation"),
        (
            {"participation": "turns", "min_clients_per_round": 60, "max_clients_per_round": 70},
            "cannot be cut into groups",
        ),
        ({"method": "paper", "deadline_s": 900}, "Use 'exact'"),
        ({"objective": "prices"}, "at least one price"),
        ({"min_clients_per_round": 101}, "num_clients=100"),
        ({"current_clients_per_round": 101, "current_local_steps": 1}, "from 1 to 100"),
    ],
)
def test_what_is_refused(shelf, state, word):
    assert any(word in problem for problem in refused(shelf, state))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[" * 20_000,
        b"\xff\xfe",
        b"1" * 5000,
    ],
)
def test_a_body_that_is_not_an_object_of_finite_numbers_is_refused(body):
    with pytest.raises(InputError):
        parse_json(body)


VALUES = st.none() | st.booleans() | st.text(max_size=8) | st.integers() | st.floats() | st.just([])
NEAR = st.sampled_from(
    [
        0,
        1,
        2,
        0.5,
        10,
        99,
        100,
        1e3,
        1e9,
        1e-9,
        "given",
        "drawn",
        "own",
        "none",
        "prices",
        "turns",
        "weighted",
    ]
)


@settings(max_examples=150, deadline=None)
@given(state=st.dictionaries(st.sampled_from(sorted(KEYS)), VALUES | NEAR, max_size=8))
def test_any_state_is_answered_or_refused(state):
    shelf = Shelf("sqlite:///fedplan.db")
    state.pop("num_clients", None)  # tested above; large fleets take long
    try:
        found = answer(read_state(state, shelf))
    except InputError:
        return
    assert found["success"] or found["message"].startswith("No setting meets")
