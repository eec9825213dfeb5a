"""The weighted average of what the clients of a round have trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedplan.flower.border import Contribution

Weights = dict[str, NDArray[Any]]


def average(
    weights: Mapping[str, NDArray[Any]], parts: Sequence[Contribution], shares: Sequence[float]
) -> Weights:
    """W + sum over k of shares_k (w_k - w), as the simulator has it; shares need not add up to 1.

    Summed in double precision and in the order given, so that a round is the same whoever answers
    first. Whole numbers (counters, say) are rounded to whole numbers.
    """
    averaged = {}
    for name, old in weights.items():
        real = old.dtype.kind == "f"
        new = old.astype(np.float64)
        for part, share in zip(parts, shares, strict=True):
            moved = part.weights[name]
            difference = moved - old if real else moved.astype(np.float64) - old
            new += share * difference
        averaged[name] = (new if real else np.rint(new)).astype(old.dtype)
    return averaged


def average_metrics(parts: Sequence[Contribution]) -> dict[str, float]:
    """The apps' own metrics that every client has reported, by examples."""
    total = sum(part.examples for part in parts)
    shared = set.intersection(*(set(part.metrics) for part in parts)) if parts else set()
    return {
        key: sum(part.examples / total * part.metrics[key] for part in parts)
        for key in sorted(shared)
    }
