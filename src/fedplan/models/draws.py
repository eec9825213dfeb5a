"""Random draws keyed by their purpose, so that any round can be replayed by itself.

A stream is SplitMix64 started at a hash of (seed, round, client). It is short and passes the usual
batteries; every local run has its own stream, so order and threads change nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from fedplan.core.scramble import STEP as _STEP
from fedplan.core.scramble import scramble as _scramble

STEP = np.uint64(_STEP)
scramble: Any = njit(inline="always")(_scramble)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function without the interpreter lock, cached on disk if possible.

    Without a writable home or package folder, every process compiles anew.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return njit(nogil=True)(function)


@njit(inline="always")
def stream(seed, round_, client):
    """The state a stream starts from."""
    state = scramble(np.uint64(seed) + STEP)
    state = scramble(state ^ (np.uint64(round_) + STEP))
    return scramble(state ^ (np.uint64(client) + STEP))


@njit(inline="always")
def below(state, limit):
    """A whole number below `limit` (at most 2**32), from the stream's next state."""
    high = scramble(state) >> np.uint64(32)
    return np.int64((high * np.uint64(limit)) >> np.uint64(32))


@njit(inline="always")
def draw_next(deck, j, state):
    """A uniform draw from deck[j:], swapped into deck[j]: successive draws do not repeat."""
    r = j + below(state, deck.size - j)
    drawn = deck[r]
    deck[r] = deck[j]
    deck[j] = drawn
    return drawn


@kernel
def draw_batches(seed: int, round_: int, client: int, size: int, batch: int, steps: int):
    """Rows of every step's batch, shape (steps, batch): each uniform, without replacement.

    The compiled models draw the same batches on the fly.
    """
    deck = np.arange(size)
    batches = np.empty((steps, batch), np.int64)
    state = stream(seed, round_, client)
    for step in range(steps):
        for j in range(batch):
            state += STEP
            batches[step, j] = draw_next(deck, j, state)
    return batches
