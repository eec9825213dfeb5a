"""Draws of clients, keyed by (seed, round), so that any round can be replayed by itself.

A stream is SplitMix64 started at a hash of (seed, round, purpose), the same as the compiled models
use for batches (`models/draws.py`), so that the order of rounds and the threads change nothing.
"""

import numpy as np
from numpy.typing import NDArray

from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.scramble import STEP, scramble

_MASK = (1 << 64) - 1
_COHORT = _MASK  # the "client" of the stream that picks the clients; batches have real ones
_DROPOUT = _MASK - 1


def pick(seed: int, round_: int, num_clients: int, count: int) -> IntArray:
    """`count` of N clients, uniformly without replacement, in rising order.

    >>> pick(1, 1, 5, 5).tolist(), pick(1, 1, 5, 2).size
    ([0, 1, 2, 3, 4], 2)
    """
    if count >= num_clients:
        return np.arange(num_clients)
    return np.sort(deal(seed, round_, num_clients, count))


def uniforms(seed: int, round_: int, count: int) -> FloatArray:
    """Numbers in [0, 1) that pick clients by their probabilities."""
    return _to_unit(_bits(seed, round_, count))


def present(seed: int, round_: int, clients: IntArray, dropout: float) -> NDArray[np.bool_]:
    """Which of these clients take part, each absent with this probability; keyed by client too."""
    state = _start(seed, round_, _DROPOUT)
    keys = np.asarray(clients, dtype=np.uint64) * np.uint64(STEP) + np.uint64(state)
    return np.asarray(_to_unit(scramble(keys)) >= dropout)


def deal(seed: int, round_: int, num_clients: int, count: int) -> IntArray:
    """`count` of N clients in random order: the first cards of a Fisher-Yates shuffle."""
    high = _bits(seed, round_, count) >> np.uint64(32)
    places = np.arange(count, dtype=np.uint64)
    drawn = places + ((high * (np.uint64(num_clients) - places)) >> np.uint64(32))
    moved: dict[int, int] = {}  # only the cards that are not in their place
    for place, other in enumerate(drawn.tolist()):
        moved[place], moved[other] = moved.get(other, other), moved.get(place, place)
    return np.array([moved[place] for place in range(count)], dtype=np.int64)


def _bits(seed: int, round_: int, count: int) -> NDArray[np.uint64]:
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(STEP)
    return scramble(steps + np.uint64(_start(seed, round_, _COHORT)))


def _to_unit(bits: NDArray[np.uint64]) -> FloatArray:
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _start(seed: int, round_: int, purpose: int) -> int:
    state = 0
    for key in (seed, round_, purpose):  # Python's integers are quicker for a single number
        z = state ^ ((key + STEP) & _MASK)
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        state = z ^ (z >> 31)
    return state
