"""Learning rates, and the time they make: how far training has come, whatever the schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import FloatArray
from fedplan.errors import InputError

Schedule = Literal["constant", "exponential", "harmonic", "step", "cosine", "list"]
LOWEST = 0.01  # a cosine ends at this share of its first rate, so that rates stay positive
_TIMED = ("constant", "exponential", "harmonic")  # schedules whose learning-rate time is known


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    """The learning rate of each round, r counting from 0.

    - `constant`: initial;
    - `exponential`: initial * decay**r;
    - `harmonic`: initial / (1 + r);
    - `step`: initial * decay**(r // decay_every);
    - `cosine`: initial * (1 + cos(pi r / decay_rounds)) / 2, but never below a hundredth of
      initial, where it stays after `decay_rounds` rounds;
    - `list`: initial, then `rates` round by round, of which the last one goes on.

    >>> LearningRate(initial=0.1, schedule="harmonic").at(4)
    0.02
    >>> step = LearningRate(initial=0.4, schedule="step", decay=0.5, decay_every=10)
    >>> step.at(9), step.at(10), step.at(20)
    (0.4, 0.2, 0.1)
    >>> cosine = LearningRate(initial=0.4, schedule="cosine", decay_rounds=100)
    >>> cosine.at(0), round(cosine.at(50), 4), cosine.at(100)
    (0.4, 0.2, 0.004)
    >>> listed = LearningRate(initial=0.1, schedule="list", rates=(0.3, 0.05))
    >>> [listed.at(r) for r in range(4)]
    [0.1, 0.3, 0.05, 0.05]
    """

    initial: float
    schedule: Schedule = "constant"
    decay: float = 1.0
    decay_every: int | None = None
    decay_rounds: int | None = None
    rates: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if not 0 < self.initial < math.inf:
            problems.append(f"`initial > 0 and finite` must hold, but got initial={self.initial}.")
        if not 0 < self.decay <= 1:
            problems.append(f"`0 < decay <= 1` must hold, but got decay={self.decay}.")
        if self.schedule not in get_args(Schedule):
            names = ", ".join(get_args(Schedule))
            problems.append(f"schedule must be one of {names}, but got {self.schedule!r}.")
        for name, schedule in (("decay_every", "step"), ("decay_rounds", "cosine")):
            value = getattr(self, name)
            if (self.schedule == schedule and value is None) or (value is not None and value < 1):
                problems.append(
                    f"`{name} >= 1` must hold where schedule={schedule}, but got {name}={value}."
                )
        if self.schedule == "list" and not self.rates:
            problems.append("rates must have one rate at least where schedule=list, but has none.")
        problems += [
            f"rates must be positive and finite, but rate {number} is {rate}."
            for number, rate in enumerate(self.rates, start=1)
            if not 0 < rate < math.inf
        ]
        if problems:
            raise InputError(problems)

    def at(self, r: int) -> float:
        """The rate of round r + 1."""
        match self.schedule:
            case "exponential":
                return self.initial * self.decay**r
            case "harmonic":
                return self.initial / (1 + r)
            case "step":
                return self.initial * self.decay ** (r // (self.decay_every or 1))
            case "cosine":
                done = min(r / (self.decay_rounds or 1), 1.0)
                return self.initial * max((1 + math.cos(math.pi * done)) / 2, LOWEST)
            case "list" if r > 0:
                return self.rates[min(r, len(self.rates)) - 1]
        return self.initial

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
        if self.schedule not in _TIMED:
            raise InputError(
                f"learning-rate time is known of {', '.join(_TIMED)} rates, but got "
                f"schedule={self.schedule}. Train with it, or plan with one of these."
            )
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
