"""Client reports: what the clients of a round would report, computed beside the training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.core.signal import ClientReports
from fedplan.models.learner import FloatArray, IntArray, Learner


class Reporter:
    """Has every client of a round train on its own, so that each can be examined.

    The training itself is left alone: a course that asks for reports gets the same models as one
    that does not. Each client trains a second time, takes two single steps and evaluates its
    samples twice.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._starts = np.concatenate([[0], np.cumsum(learner.sizes)])
        self._samples: dict[int, Any] = {}

    def __call__(
        self,
        weights: FloatArray,
        cohort: IntArray,
        local_steps: int,
        rate: float,
        seed: int,
        round_: int,
    ) -> ClientReports:
        """What this cohort would report after the round that begins with these weights."""
        norms, losses, losses_after, changes = (np.zeros(cohort.size) for _ in range(4))
        gradients = np.zeros((cohort.size, weights.size))
        with np.errstate(invalid="ignore", over="ignore"):  # of a run that diverges
            for place, client in enumerate(cohort.tolist()):
                own = self._trained(weights, client, local_steps, rate, seed, round_)
                before, after = (self._gradient(w, client, seed, round_) for w in (weights, own))
                norms[place] = np.linalg.norm(own.astype(np.float64) - weights)
                losses[place] = self._loss(weights, client)
                losses_after[place] = self._loss(own, client)
                changes[place] = np.linalg.norm(after - before)
                gradients[place] = before
            held = self._learner.sizes[cohort].astype(np.float64)
            mean = held @ gradients / (held.sum() or 1.0)
            spreads = np.linalg.norm(gradients - mean, axis=1)
        return ClientReports(
            update_norms=norms,
            losses=losses,
            losses_after=losses_after,
            gradient_changes=changes,
            gradient_spreads=spreads,
        )

    def _trained(
        self, weights: FloatArray, client: int, steps: int, rate: float, seed: int, round_: int
    ) -> FloatArray:
        own = weights.copy()
        alone = np.array([client], dtype=np.int64)
        self._learner.train_round(own, alone, np.ones(1), steps, rate, seed, round_)
        return own

    def _gradient(
        self, weights: FloatArray, client: int, seed: int, round_: int
    ) -> NDArray[np.float64]:
        """The gradient of the client's first batch: the change by one step at rate 1."""
        moved = self._trained(weights, client, 1, 1.0, seed, round_)
        return weights.astype(np.float64) - moved

    def _loss(self, weights: FloatArray, client: int) -> float:
        start, end = self._starts[client], self._starts[client + 1]
        if start == end or not np.isfinite(weights).all():
            return 0.0 if start == end else np.nan
        if client not in self._samples:
            self._samples[client] = self._learner.samples(np.arange(start, end))
        return self._learner.evaluate(weights, self._samples[client])[0]
