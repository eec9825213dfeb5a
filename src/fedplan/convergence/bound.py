"""Convergence: how many rounds a (K, E) needs, by the paper's bound or the refined one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import FloatArray
from fedplan.errors import SMALLEST, InputError, amount_problems, refuse
from fedplan.notebook import Shown
from fedplan.words import in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Shown):
    """The gap to the best loss after R rounds is at most (a0 + E^2 (b0 + c0 s(K))) / (E R).

    `c0` is the refined bound's own weight for sampling only K clients; the paper's bound
    (its Eq. 15) is c0 = b0, which is the default.

    >>> Bound(a0=3750.0, b0=1.0)
    Bound(a0=3750.0, b0=1.0, c0=1.0)
    """

    a0: float
    b0: float
    c0: float

    def __init__(self, *, a0: float, b0: float, c0: float | None = None) -> None:
        values = {"a0": a0, "b0": b0, "c0": b0 if c0 is None else c0}
        if not all(isinstance(value, Real) for value in values.values()):
            raise InputError(f"a0, b0 and c0 must be numbers, but got {values}.")
        # A fit may give values next to 0, which count as 0.
        values = {name: 0.0 if 0 < value < SMALLEST else value for name, value in values.items()}
        problems = amount_problems(**values, or_zero=True)
        if not problems and values["a0"] == values["b0"] == 0:
            problems.append(
                "`a0 + b0 > 0` must hold, but both are 0: all clients would need no round at all."
            )
        refuse(problems)
        for name, value in values.items():
            object.__setattr__(self, name, float(value))

    def _facts(self) -> list[tuple[str, str]]:
        return [(name, in_words(getattr(self, name))) for name in ("a0", "b0", "c0")]

    @classmethod
    def from_ratio(cls, ratio: float) -> Bound:
        """Build the paper's bound in relative units from rho = A0 / B0 alone."""
        refuse(amount_problems(ratio=ratio, or_zero=True))
        return cls(a0=ratio, b0=1.0)

    @property
    def as_in_paper(self) -> Bound:
        """The same a0 and b0 with the paper's c0 = b0."""
        return Bound(a0=self.a0, b0=self.b0)

    def at_gap(self, target_gap: float) -> Bound:
        """The bound whose rounds to a gap of 1 are those of this one to the given gap.

        >>> Bound(a0=100.0, b0=1.0).at_gap(0.5)
        Bound(a0=200.0, b0=2.0, c0=2.0)
        """
        refuse(target_gap_problems(target_gap))
        return Bound(a0=self.a0 / target_gap, b0=self.b0 / target_gap, c0=self.c0 / target_gap)

    def full_rounds(self, local_steps: ArrayLike) -> FloatArray:
        """Rounds to a gap of 1 if all clients train, or all data is used in every cycle."""
        steps = np.asarray(local_steps, dtype=np.float64)
        return np.asarray(self.a0 / steps + self.b0 * steps)

    def sampling_rounds(self, local_steps: ArrayLike) -> FloatArray:
        """Rounds to a gap of 1 that the noise of drawing a single client adds."""
        return np.asarray(self.c0 * np.asarray(local_steps, dtype=np.float64))

    def fewest_rounds_steps(self) -> float:
        """E that needs the fewest rounds at K = N, sqrt(a0 / b0); infinite if b0 = 0.

        Past it rounds, time and energy all grow with E for every K, so no optimum lies there.
        """
        return math.sqrt(self.a0 / self.b0) if self.b0 else math.inf


def sampling_variance(clients_per_round: ArrayLike, num_clients: int) -> FloatArray:
    """s(K) = (N - K) / (K (N - 1)): 1 at K = 1, 0 at K = N; 0 for a fleet of one.

    >>> sampling_variance([1, 5, 10], 10).round(4).tolist()
    [1.0, 0.1111, 0.0]
    """
    k = np.asarray(clients_per_round, dtype=np.float64)
    return np.asarray((num_clients - k) / (k * max(num_clients - 1, 1)))


def drift(bound: Bound, clients_per_round: ArrayLike, num_clients: int) -> FloatArray:
    """The coefficient of E^2 in the bound, b0 + c0 s(K): what long local runs cost in rounds."""
    return np.asarray(bound.b0 + bound.c0 * sampling_variance(clients_per_round, num_clients))


def target_gap_problems(target_gap: float) -> list[str]:
    """The problems of a target gap, if any."""
    return amount_problems(target_gap=target_gap)


def rounds_for_gap(
    bound: Bound,
    clients_per_round: ArrayLike,
    local_steps: ArrayLike,
    num_clients: int,
    target_gap: float = 1.0,
) -> FloatArray:
    """R(K, E) = (a0 + E^2 (b0 + c0 s(K))) / (E gap), Eq. 19; continuous, arrays broadcast.

    >>> float(rounds_for_gap(Bound(a0=100.0, b0=1.0), 4, 10, num_clients=4, target_gap=0.5))
    40.0
    """
    refuse(target_gap_problems(target_gap))
    steps = np.asarray(local_steps, dtype=np.float64)
    spread = drift(bound, clients_per_round, num_clients)
    return np.asarray((bound.a0 / steps + steps * spread) / target_gap)


def gap_after_rounds(
    bound: Bound,
    clients_per_round: ArrayLike,
    local_steps: ArrayLike,
    num_clients: int,
    rounds: ArrayLike,
) -> FloatArray:
    """Upper bound on the gap to the best loss after R rounds, Eq. 15.

    >>> float(gap_after_rounds(Bound(a0=100.0, b0=1.0), 4, 10, num_clients=4, rounds=40))
    0.5
    """
    needed = rounds_for_gap(bound, clients_per_round, local_steps, num_clients)
    return np.asarray(needed / np.asarray(rounds, dtype=np.float64))
