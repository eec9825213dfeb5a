"""Sketches of updates: what clients report half-way, and what the server infers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.core.signal import Signal, Sketch

Weights = Mapping[str, NDArray[Any]]
Vector = NDArray[np.float64]

# With few samples and a large rate, a client may be further away half-way than in the end. But a
# sketch that is this many times as long as its update and the median one is of something else.
FURTHEST = 10.0
FEWEST = 0.5  # of a round's shares that must be known: what few did, others may have undone


def flat_update(new: Weights, old: Weights) -> Vector:
    """The change of all floating-point arrays of a model, as one vector."""
    changes = [
        (new[name].astype(np.float64) - old[name]).ravel()
        for name in sorted(old)
        if old[name].dtype.kind == "f"
    ]
    return np.concatenate(changes) if changes else np.zeros(0)


class Sketcher:
    """Sketches the updates of one model; server and clients with the same seed sketch alike."""

    def __init__(self, weights: Weights, seed: int) -> None:
        numbers = sum(value.size for value in weights.values() if value.dtype.kind == "f")
        self._sketch = Sketch(max(numbers, 1), seed)
        self._numbers = numbers

    def __call__(self, new: Weights, old: Weights) -> Vector:
        """The sketch of the way from one model to another."""
        return self._sketch(flat_update(new, old) if self._numbers else np.zeros(1))

    def one_sided(
        self,
        old: Weights,
        updates: Sequence[tuple[float, Weights, Vector | None]],
        halves: Sequence[bool | None],
    ) -> Signal | None:
        """The signal of a round whose clients have made either all of their steps or half of them.

        halves : for each client, whether it made half; None if it always makes the same.
        """
        shares = np.array([share for share, _, _ in updates])
        told = np.array([half is not None for half in halves], dtype=bool)
        if not told.any() or shares[told].sum() < FEWEST * shares.sum():
            return None
        zero = np.zeros_like(self(old, old))
        gone = sum(
            (share * self(new, old) for (share, new, _), half in zip(updates, halves, strict=True)
             if half is not None), zero,
        )  # fmt: skip
        return Signal(whole=zero, halfway=gone) if any(halves) else Signal(whole=gone, halfway=zero)

    def signal(
        self, old: Weights, updates: Sequence[tuple[float, Weights, Vector | None]]
    ) -> tuple[Signal | None, list[int]]:
        """What a round says of its local steps, and the places of sketches that cannot be true.

        updates : for each client its share, its model, and its half-way sketch if it sent one.

        Whole and half-way are of the same clients; there is no signal if they count for less than
        half of the round.
        """
        told = [place for place, (_, _, half) in enumerate(updates) if half is not None]
        if not told:
            return None, []
        shares = np.array([share for share, _, _ in updates])
        full = np.array([self(updates[place][1], old) for place in told])
        half = np.array([updates[place][2] for place in told])
        length = np.linalg.norm(full, axis=1)
        with np.errstate(over="ignore"):  # what is sent may be as large as numbers are
            gone = np.linalg.norm(half, axis=1)
        sound = gone <= FURTHEST * np.maximum(length, np.median(length))
        half[~sound] = 0.0
        weight = shares[told] * sound
        dropped = [place for place, is_sound in zip(told, sound, strict=True) if not is_sound]
        if not sound.any() or weight.sum() < FEWEST * shares.sum():
            return None, dropped
        return Signal(whole=weight @ full, halfway=weight @ half), dropped
