"""Elasticity: how much further more local steps would get, from the rounds of a training.

With D the sum of the updates of some rounds and H the sum of what they were half-way, the
elasticity is ln(|D| / |H|) / ln 2: 1 if twice the steps go twice as far, 0 if they gain nothing.
Where rounds fall as 1 + saturation / E, it is saturation / (saturation + E). Only sums tell: for
single clients it is about 1/2 whatever the task, since others undo most of what they do.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from fedplan.convergence.saturation import RANGE
from fedplan.core.signal import Signal

DOUBT = 2.0  # how far beyond the usual range a saturation is believed: rounds can mislead
Vector = NDArray[np.float64]


def saturation_of(whole: Vector, halfway: Vector, local_steps: float) -> float:
    """Local steps at which half of what steps can save has been saved; may be 0 or infinite.

    >>> saturation_of(np.array([3.0, 4.0]), np.array([1.5, 2.0]), local_steps=20)
    inf
    >>> round(saturation_of(np.array([2.0, 0.0]), np.array([2.0**0.5, 0.0]), local_steps=20), 6)
    20.0
    """
    far, half = float(np.linalg.norm(whole)), float(np.linalg.norm(halfway))
    if not half or not far:
        return math.inf if far else 0.0
    elasticity = math.log2(far / half)
    if elasticity >= 1 - 1e-9:
        return math.inf
    return max(0.0, local_steps * elasticity / (1.0 - elasticity))


def believed(saturation: float) -> float:
    """The saturation, or the nearest that is believed."""
    return min(max(saturation, RANGE[0] / DOUBT), RANGE[1] * DOUBT)


class Window:
    """The signals of the last rounds, and the saturation they imply together."""

    def __init__(self) -> None:
        self._signals: deque[tuple[Signal, int]] = deque()
        self._fewest = 1  # rounds without which nothing is known

    def __len__(self) -> int:
        return len(self._signals)

    def add(self, signal: Signal, local_steps: int, most: int) -> None:
        """Add a round, and drop the oldest of more than `most`.

        Where each round tells either of all its steps or of half of them, exactly twice as many
        are needed: groups have different data, so each has to have made both.
        """
        is_both = bool(signal.whole.any() and signal.halfway.any())
        self._fewest = 1 if is_both else 2 * most
        self._signals.append((signal, local_steps))
        self.keep(most if is_both else 2 * most)

    def keep(self, most: int) -> None:
        """Drop the oldest of more than `most`."""
        while len(self._signals) > most:
            self._signals.popleft()

    def saturation(self) -> float | None:
        """The saturation, at the geometric mean of the local steps; None if nothing is known."""
        wholes = [signal.whole for signal, _ in self._signals if signal.whole.any()]
        halves = [signal.halfway for signal, _ in self._signals if signal.halfway.any()]
        if not wholes or not halves or len(self._signals) < self._fewest:
            return None
        whole = np.sum(wholes, axis=0) * (len(halves) / len(wholes))
        halfway = np.sum(halves, axis=0)
        steps = np.array([steps for _, steps in self._signals], dtype=np.float64)
        return saturation_of(whole, halfway, float(np.exp(np.log(steps).mean())))
