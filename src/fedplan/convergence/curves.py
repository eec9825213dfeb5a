"""Loss curves of pilots: what a fitted descent is learnt from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedplan.core.fleet import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The losses of one pilot: before training, then after every round (None: not evaluated)."""

    clients_per_round: int
    local_steps: int
    seed: int
    losses: tuple[float | None, ...]

    @property
    def first_loss(self) -> float | None:
        """The first loss that was evaluated."""
        return next((loss for loss in self.losses if loss is not None), None)

    @property
    def falls(self) -> bool:
        """Whether any loss is below the first."""
        known = [loss for loss in self.losses if loss is not None]
        return len(known) > 1 and min(known[1:]) < known[0]

    def levels(self, upper: float, count: int) -> tuple[FloatArray, FloatArray]:
        """Losses from `upper` down to the lowest, and the rounds each was first reached after."""
        known = [(r, loss) for r, loss in enumerate(self.losses) if loss is not None]
        rounds = np.array([r for r, _ in known], dtype=np.float64)
        lowest = np.minimum.accumulate([loss for _, loss in known])
        falls = np.concatenate([[True], np.diff(lowest) < 0])
        rounds, lowest = rounds[falls], lowest[falls]
        upper = min(upper, float(lowest[0]))
        if lowest.size < 2 or lowest[-1] >= upper:
            return np.empty(0), np.empty(0)
        losses = np.geomspace(upper, lowest[-1], count)
        return losses, np.interp(-losses, -lowest, rounds)

    def stretches(self, factor: float, earliest: int) -> tuple[FloatArray, FloatArray]:
        """Rounds, each `factor` times the one before, and the lowest loss since that one.

        The lowest is what tells when a loss is first reached; that it is of the stretch alone keeps
        one lucky round from standing for all after it. None ends before round `earliest`, but the
        last counts always.

        >>> losses = (2.0, 1.0, 0.9, 1.1, 0.8, 0.7, 0.75, 0.6, 0.65)
        >>> curve = Curve(clients_per_round=2, local_steps=5, seed=0, losses=losses)
        >>> [part.tolist() for part in curve.stretches(2.0, earliest=3)]
        [[4.0, 8.0], [0.8, 0.6]]
        """
        ends: list[float] = []
        lowest: list[float] = []
        end = float(len(self.losses) - 1)
        while end >= earliest or (not ends and end >= 1):
            after, last = math.floor(end / factor), math.floor(end)
            known = [loss for loss in self.losses[after + 1 : last + 1] if loss is not None]
            if known:
                ends.append(float(last))
                lowest.append(min(known))
            end /= factor
        return np.array(ends[::-1]), np.array(lowest[::-1])
