"""Learning rates: the rate of each round, by a schedule or a list."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fedplan.errors import refuse, unmet

Schedule = Literal["constant", "exponential", "harmonic", "step", "cosine", "list"]
LOWEST = 0.01  # a cosine ends at this share of its first rate, so that rates stay positive


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRate:
    """The learning rate of each round, r counting from 0.

    - `constant`: initial;
    - `exponential`: initial * decay**r;
    - `harmonic`: initial / (1 + r);
    - `step`: initial * decay**(r // decay_every);
    - `cosine`: initial * (1 + cos(pi r / decay_rounds)) / 2, but never below a hundredth of
      initial, where it stays after `decay_rounds` rounds;
    - `list`: initial, then `rates` round by round, the last of which continues.

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
        for name in self.__slots__:  # numpy's numbers as Python's, which can be stored
            plain = np.asarray(getattr(self, name)).tolist()
            object.__setattr__(self, name, tuple(plain) if isinstance(plain, list) else plain)
        rules = {"initial > 0 and finite": 0 < self.initial < math.inf}
        rules |= {"0 < decay <= 1": 0 < self.decay <= 1}
        problems = unmet(rules, initial=self.initial, decay=self.decay)
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
        refuse(problems)

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
