"""Signal: what the updates of a round say about its local steps, in a few hundred numbers.

Lengths and angles of sums of updates survive a random projection, so nobody has to send or keep a
second model: a client sends a sketch of its update half-way, and sketches add up as updates do.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedplan.core.scramble import STEP, scramble
from fedplan.errors import InputError

# Numbers of a sketch. The squared length of a sketch is off by sqrt(2 / size) = 9%, but that of a
# whole and of a half-way update by nearly the same (`tests/course/test_elasticity.py`).
SKETCH_SIZE = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """Sketches of a round's aggregated update: after all local steps, and after half of them."""

    whole: NDArray[np.float64]
    halfway: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClientReports:
    """What each client of a round reports, in the order of the cohort.

    F_k is the mean loss over all samples of client k, w the model it was sent, w_k what it made of
    it. Gradients are those of one batch, the first that the client draws in the round.

    update_norms : of w_k - w.
    losses, losses_after : F_k(w) and F_k(w_k); 0 for a client without samples.
    gradient_changes : norms of grad F_k(w_k) - grad F_k(w), both of the same batch.
    gradient_spreads : norms of grad F_k(w) - grad F(w), grad F being the cohort's mean by samples.
    """

    update_norms: NDArray[np.float64]
    losses: NDArray[np.float64]
    losses_after: NDArray[np.float64]
    gradient_changes: NDArray[np.float64]
    gradient_spreads: NDArray[np.float64]


class Sketch:
    """A random projection shared by server and clients: a seed and a number of weights.

    Every weight is added, with a random sign, to one of `size` numbers (a count sketch).

    >>> sketch = Sketch(num_weights=1000, seed=7)
    >>> one, two = np.linspace(0, 1, 1000), np.ones(1000)
    >>> np.allclose(sketch(one) + 2 * sketch(two), sketch(one + 2 * two))
    True
    """

    def __init__(self, num_weights: int, seed: int = 0, size: int = SKETCH_SIZE) -> None:
        if num_weights < 1 or size < 1:
            raise InputError(
                f"`num_weights >= 1` and `size >= 1` must hold, but got {num_weights} and {size}."
            )
        keys = np.arange(1, num_weights + 1, dtype=np.uint64) * np.uint64(STEP)
        bits = scramble(keys + scramble(np.array([seed], dtype=np.uint64)))
        self._places = (bits >> np.uint64(1)) % np.uint64(size)
        self._places = self._places.astype(np.int64)
        self._signs = np.where(bits & np.uint64(1), 1.0, -1.0)
        self._size = size

    def __call__(self, update: ArrayLike) -> NDArray[np.float64]:
        """The sketch of an update, one flat array of weights."""
        signed = self._signs * np.asarray(update, dtype=np.float64)
        sums = np.bincount(self._places, weights=signed, minlength=self._size)
        return np.asarray(sums, dtype=np.float64)
