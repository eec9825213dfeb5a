"""State that a strategy keeps between rounds, such as FedAdam's moments, for storage.

It has the numbers, texts and arrays of a strategy and of those that it wraps, lists and mappings of
them, and the `state_dict` of whatever can load it again, such as Flower's privacy accountants.
Nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

_DECIDED = ("fraction_", "min_", "num_sampled_")  # by fedplan, for each round


class _Unknown(Exception):  # noqa: N818
    """A value of another kind."""


@dataclass(frozen=True, slots=True)
class StrategyState:
    """The state as a text, and the arrays that it refers to by their number."""

    text: str = "[]"
    arrays: tuple[NDArray[Any], ...] = ()

    @classmethod
    def of(cls, layers: Sequence[Any]) -> StrategyState:
        """What these strategies remember now."""
        arrays: list[NDArray[Any]] = []
        kept = []
        for layer in layers:
            known = {}
            for name, value in vars(layer).items():
                try:
                    known[name] = _packed(value, arrays)
                except _Unknown:
                    continue  # functions and wrapped strategies, which the app makes anew
            kept.append(known)
        return cls(json.dumps(kept), tuple(arrays))

    def restore(self, layers: Sequence[Any]) -> None:
        """Have these strategies remember it."""
        for layer, known in zip(layers, json.loads(self.text), strict=True):
            for name, packed in known.items():
                if packed[0] == "state":
                    getattr(layer, name).load_state_dict(packed[1])
                else:
                    setattr(layer, name, _unpacked(packed, self.arrays))


def configuration_of(layers: Sequence[Any]) -> list[dict[str, Any]]:
    """What identifies a strategy: its class, and the numbers and texts it was made with."""
    return [
        {"class": type(layer).__name__}
        | {
            name: value
            for name, value in vars(layer).items()
            if isinstance(value, bool | int | float | str) and not name.startswith(_DECIDED)
        }
        for layer in layers
    ]


def _packed(value: Any, arrays: list[NDArray[Any]]) -> list[Any]:
    """A value as its kind and its content for JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return ["value", value]
    if isinstance(value, np.generic):
        return ["value", value.item()]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays.append(np.array(value))
        return ["array", len(arrays) - 1]
    if isinstance(value, ArrayRecord):
        return ["record", [[key, _packed(one.numpy(), arrays)] for key, one in value.items()]]
    if isinstance(value, dict):
        pairs = value.items()
        return ["dict", [[_packed(key, arrays), _packed(one, arrays)] for key, one in pairs]]
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, [_packed(one, arrays) for one in value]]
    if hasattr(value, "load_state_dict") and not isinstance(value, Strategy):
        return ["state", value.state_dict()]
    raise _Unknown


def _unpacked(packed: Sequence[Any], arrays: Sequence[NDArray[Any]]) -> Any:
    kind, value = packed
    if kind == "array":
        return np.array(arrays[value])
    if kind == "record":
        return ArrayRecord({key: Array(_unpacked(one, arrays)) for key, one in value})
    if kind == "dict":
        return {_unpacked(key, arrays): _unpacked(one, arrays) for key, one in value}
    if kind in ("list", "tuple"):
        found = [_unpacked(one, arrays) for one in value]
        return found if kind == "list" else tuple(found)
    return value
