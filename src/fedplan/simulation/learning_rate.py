"""Learning-rate schedules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fedplan.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    """The learning rate of each round, r counting from 0.

    `constant`: initial; `exponential`: initial * decay**r; `harmonic`: initial / (1 + r).

    >>> LearningRate(initial=0.1, schedule="harmonic").at(4)
    0.02
    """

    initial: float
    schedule: Literal["constant", "exponential", "harmonic"] = "constant"
    decay: float = 1.0

    def __post_init__(self) -> None:
        problems = []
        if not 0 < self.initial < math.inf:
            problems.append(f"`initial > 0 and finite` must hold, but got initial={self.initial}.")
        if not 0 < self.decay <= 1:
            problems.append(f"`0 < decay <= 1` must hold, but got decay={self.decay}.")
        if self.schedule not in ("constant", "exponential", "harmonic"):
            problems.append(
                f"schedule must be constant, exponential or harmonic, but got {self.schedule!r}."
            )
        if problems:
            raise InputError(problems)

    def at(self, r: int) -> float:
        """The rate of round r + 1."""
        if self.schedule == "exponential":
            return self.initial * self.decay**r
        return self.initial / (1 + r) if self.schedule == "harmonic" else self.initial
