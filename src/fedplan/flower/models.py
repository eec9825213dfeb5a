"""Models: the latest ones of a run, averaged and evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray

from fedplan.core.records import RoundRecord

Weights = dict[str, NDArray[Any]]


def to_record(weights: Weights) -> ArrayRecord:
    """The model as Flower sends it."""
    return ArrayRecord({name: Array(value) for name, value in weights.items()})


def kept_after(rounds: Sequence[RoundRecord]) -> int:
    """How many of the last models are averaged after these rounds; 0 if only the last counts.

    As in the simulator: as many as the law of the round says, but only those of the later half of
    the rounds.
    """
    kept = 0
    for record in rounds:
        if record.setting is not None:
            kept = _allowed(kept, record.setting.participation.averaged, record.round)
    return kept


def _allowed(kept: int, averaged: int, round_: int) -> int:
    return min(kept + 1, averaged, (round_ + 1) // 2) if averaged > 1 else 0


class Models:
    """The last models of a run, oldest first."""

    def __init__(self, last: Sequence[Weights], averaged: int = 0) -> None:
        self.weights = last[-1]
        self._recent = list(last[-averaged:]) if averaged else []

    @property
    def averaged(self) -> int:
        """How many models are in the average that is judged."""
        return max(len(self._recent), 1)

    def after(self, round_: int, weights: Weights, averaged: int) -> Models:
        """These models and one more, after this round; the last `averaged` are wanted."""
        kept = _allowed(len(self._recent), averaged, round_)
        return Models([*self._recent, weights], kept)

    def average(self) -> Weights:
        """The average of the last models; the last itself if it is alone."""
        if len(self._recent) < 2:
            return self.weights
        found = {}
        for name, last in self.weights.items():
            mean = np.zeros(last.shape)
            with np.errstate(invalid="ignore"):  # of a model that diverges
                for one in self._recent:
                    mean += one[name]
                mean /= len(self._recent)
            found[name] = (mean if last.dtype.kind == "f" else np.rint(mean)).astype(last.dtype)
        return found

    def best(self, record: RoundRecord) -> Weights:
        """The last model or the average: the one whose loss the last record has."""
        return self.weights if record.model_loss == record.loss else self.average()
