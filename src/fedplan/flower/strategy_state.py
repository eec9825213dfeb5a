"""State that a strategy keeps between rounds, such as FedAdam's moments, for storage.

It has the numbers, texts and arrays of a strategy and of those that it wraps, lists and mappings of
them, and the `state_dict` of whatever can load it again, such as Flower's privacy accountants.
Nothing is pickled: what has other values, such as a torch module, stays as the app made it.
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

_PLAIN = (type(None), bool, int, float, str)  # no classes made of them, such as enumerations
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
                value: Any = _unpacked(packed, self.arrays)
                there: Any = getattr(layer, name, None)
                if packed[0] == "state":
                    there.load_state_dict(value)
                elif packed[0] == "dict" and isinstance(there, dict):  # perhaps of another class
                    there.clear()
                    there.update(value)
                else:
                    setattr(layer, name, value)


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
    plain = value.item() if isinstance(value, np.generic) else value
    if type(plain) in _PLAIN:
        return ["value", plain]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays.append(np.array(value))
        return ["array", len(arrays) - 1]
    if isinstance(value, ArrayRecord):
        return ["record", [[key, _packed(one.numpy(), arrays)] for key, one in value.items()]]
    if isinstance(value, dict):
        pairs = value.items()
        return ["dict", [[_packed(key, arrays), _packed(one, arrays)] for key, one in pairs]]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_packed(one, arrays) for one in value]]
    if hasattr(value, "load_state_dict") and not isinstance(value, Strategy | type):
        return ["state", _packed(value.state_dict(), arrays)]
    raise _Unknown


def _unpacked(packed: Sequence[Any], arrays: Sequence[NDArray[Any]]) -> Any:
    kind, value = packed
    if kind == "array":
        return np.array(arrays[value])
    if kind == "record":
        return ArrayRecord({key: Array(_unpacked(one, arrays)) for key, one in value})
    if kind == "dict":
        return {_unpacked(key, arrays): _unpacked(one, arrays) for key, one in value}
    if kind == "state":
        return _unpacked(value, arrays)
    if kind in ("list", "tuple"):
        found = [_unpacked(one, arrays) for one in value]
        return found if kind == "list" else tuple(found)
    return value
