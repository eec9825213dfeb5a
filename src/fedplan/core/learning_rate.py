"""Learning rates, and the time they make: how far training has come, whatever the schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import FloatArray
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

    def time(self, rounds: ArrayLike) -> FloatArray:
        """Learning-rate time of this many rounds: the sum of their rates over the first one's.

        A round at a tenth of the first rate counts as a tenth; of a constant rate, time is rounds.
        Rounds may be fractions.

        >>> LearningRate(initial=0.1, schedule="harmonic").time([0, 1, 2, 3]).round(4).tolist()
        [0.0, 1.0, 1.5, 1.8333]
        """
        r = np.asarray(rounds, dtype=np.float64)
        if self.schedule == "harmonic":
            return _harmonic(r)
        if self._decays:
            return np.asarray(-np.expm1(r * math.log(self.decay)) / (1.0 - self.decay))
        return r

    def rounds(self, time: ArrayLike) -> FloatArray:
        """Rounds that make this learning-rate time; infinite where no number of rounds does.

        >>> rate = LearningRate(initial=0.1, schedule="exponential", decay=0.5)
        >>> rate.rounds([1.0, 1.5, 2.0]).tolist()
        [1.0, 2.0, inf]
        """
        t = np.asarray(time, dtype=np.float64)
        if self.schedule == "harmonic":
            return _inverse_harmonic(t)
        if self._decays:
            spent = np.minimum(t * (1.0 - self.decay), 1.0)
            with np.errstate(divide="ignore"):
                return np.asarray(np.log1p(-spent) / math.log(self.decay))
        return t

    def slope(self, rounds: ArrayLike) -> FloatArray:
        """Learning-rate time a round adds, after this many."""
        r = np.asarray(rounds, dtype=np.float64)
        if self.schedule == "harmonic":
            return np.asarray(1.0 / (r + 1.0))
        return np.asarray(self.decay**r) if self._decays else np.ones_like(r)

    @property
    def _decays(self) -> bool:
        return self.schedule == "exponential" and self.decay < 1


def _harmonic(rounds: FloatArray) -> FloatArray:
    """The harmonic number H_R, between whole rounds too."""
    from scipy.special import digamma  # slow to import, and training does without

    return np.asarray(digamma(rounds + 1.0) + np.euler_gamma)


def _inverse_harmonic(time: FloatArray) -> FloatArray:
    """R with H_R = time, by Newton's method."""
    from scipy.special import polygamma

    with np.errstate(over="ignore"):
        rounds = np.maximum(np.exp(time - np.euler_gamma) - 0.5, 0.0)
    finite = np.isfinite(rounds)
    r, sought = np.where(finite, rounds, 1.0), np.where(finite, time, 1.0)
    for _ in range(3):
        r = np.maximum(r - (_harmonic(r) - sought) / polygamma(1, r + 1.0), 0.0)
    return np.asarray(np.where(finite, np.where(time > 0, r, 0.0), np.inf))
