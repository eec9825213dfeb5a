"""Prediction: what training with one setting is expected to take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedplan.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What training with one setting is expected to take; K is None where groups take turns."""

    clients_per_round: int | None
    local_steps: int
    expected_rounds: float
    time_s: float
    energy_j: float
    cost: float

    @property
    def pair(self) -> tuple[int, int]:
        """(K, E) of a setting that has a K."""
        if self.clients_per_round is None:
            raise InputError("where clients take turns there is no clients_per_round.")
        return self.clients_per_round, self.local_steps

    @property
    def rounds(self) -> int:
        """Whole rounds: the ceiling of `expected_rounds`."""
        return math.ceil(self.expected_rounds * (1 - 1e-12))
