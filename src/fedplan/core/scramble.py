"""SplitMix64: the hash behind every draw that must be the same on every machine."""

import numpy as np
from numpy.typing import NDArray

STEP = 0x9E3779B97F4A7C15


def scramble(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function: a bijection of 64 bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
