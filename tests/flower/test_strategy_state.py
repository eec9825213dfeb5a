"""What a strategy remembers is stored and restored; what cannot be stored stays as it is."""

from __future__ import annotations

import enum
from collections import Counter, namedtuple
from types import SimpleNamespace

import numpy as np

from fedplan.flower.strategy_state import StrategyState

Moment = namedtuple("Moment", "first second")


class Mode(enum.IntEnum):
    FAST = 1


class Kept:
    """Something with a state."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


def layer_of(state, rounds):
    return SimpleNamespace(
        kept=Kept(state), maker=Kept, mode=Mode.FAST, moment=Moment(1, 2), rate=np.float32(rounds),
        seen=Counter({"a": rounds}), phase=np.complex64(1j),
    )  # fmt: skip


def test_values_of_other_classes_are_kept_as_what_they_are_or_left_alone():
    old, new = layer_of({"m": np.ones(2), "t": (1, 2)}, 3), layer_of({}, 0)
    StrategyState.of([old]).restore([new])
    assert new.kept.state["m"].tolist() == [1, 1] and new.kept.state["t"] == (1, 2)
    assert new.maker is Kept and new.mode is Mode.FAST and new.moment.second == 2
    assert new.rate == 3 and new.seen == {"a": 3} and new.seen["b"] == 0


def test_a_state_of_objects_is_left_alone():
    new = layer_of({"weights": object()}, 0)
    before = new.kept.state
    StrategyState.of([layer_of({"weights": object()}, 1)]).restore([new])
    assert new.kept.state is before and new.seen["a"] == 1
