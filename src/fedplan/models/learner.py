"""Learner: a model bound to the clients' data; the interface between models and FedAvg.

A new model is one file with one such class.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedplan.errors import require
from fedplan.tasks.dataset import FederatedData

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


class Learner(Protocol):
    """What FedAvg needs of a model and its data.

    Weights are one flat float32 array, in whatever order suits the model. Every method may be
    called from several threads at once.
    """

    labels: IntArray  # of every training sample, client after client
    sizes: IntArray  # samples of each client

    @property
    def num_parameters(self) -> int:
        """Weights that clients and server send each other."""

    def initial(self, seed: int) -> FloatArray:
        """The weights before training, the same for the same seed."""

    def train_round(
        self,
        weights: FloatArray,
        cohort: IntArray,
        shares: NDArray[np.float64],
        local_steps: int,
        rate: float,
        seed: int,
        round_: int,
        halfway: FloatArray | None = None,
    ) -> None:
        """Move `weights` by sum over k of shares_k * (w_k - weights), in place.

        w_k are the weights of client k of the cohort after its local steps of SGD from `weights`,
        each on a fresh uniform batch without replacement. Its draws depend on (seed, round,
        client) alone. Where `halfway` is given, it is set to what `weights` would have become if
        every client had stopped after local_steps // 2 steps.
        """

    def samples(self, rows: IntArray | None = None) -> Any:
        """The training samples, or these rows of them, laid out for `evaluate`."""

    def test_samples(self) -> Any | None:
        """Samples no client trains on, laid out for `evaluate`; None if there are none."""

    def evaluate(self, weights: FloatArray, samples: Any) -> tuple[float, float]:
        """Mean loss and accuracy over these samples."""


def stratified_rows(labels: IntArray, count: int) -> IntArray:
    """About `count` rows, spread evenly over each class, with at least one of every class.

    Evenly over the samples of a class, and so over the clients that hold it.

    >>> stratified_rows(np.array([0, 0, 0, 0, 1, 1]), 3).tolist()
    [1, 3, 5]
    """
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        wanted = min(rows.size, max(1, round(rows.size * count / labels.size)))
        chosen.append(rows[((np.arange(wanted) + 0.5) * rows.size / wanted).astype(np.int64)])
    return np.sort(np.concatenate(chosen))


def check_batch_size(batch_size: int) -> None:
    """Refuse an empty batch."""
    require({"batch_size >= 1": batch_size >= 1}, batch_size=batch_size)


class CompiledLearner:
    """The base of learners whose round is one call of a compiled kernel.

    The kernel gets the arguments of `train_round`, and the batch size before `halfway`, which is
    empty if it is not wanted.
    """

    _train: Callable[..., None]

    def __init__(self, data: FederatedData, batch_size: int) -> None:
        check_batch_size(batch_size)
        self.labels = np.array(data.y, dtype=np.int64)
        self.sizes = data.sizes
        self._batch_size = batch_size
        self._test = None
        if data.test_x is not None and data.test_y is not None:
            self._test = data.test_x, np.array(data.test_y, dtype=np.int64)

    def train_round(
        self,
        weights: FloatArray,
        cohort: IntArray,
        shares: NDArray[np.float64],
        local_steps: int,
        rate: float,
        seed: int,
        round_: int,
        halfway: FloatArray | None = None,
    ) -> None:
        """One round of FedAvg, in place."""
        if halfway is None:
            halfway = np.zeros(0, dtype=np.float32)
        self._train(
            weights, cohort, shares, local_steps, rate, seed, round_, self._batch_size, halfway
        )
