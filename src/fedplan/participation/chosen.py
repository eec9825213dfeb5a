"""Chosen clients: a course says who trains, and from whom a few more are drawn.

Courses make such a law anew for every round. Nobody asks for it by name: whom would it choose?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.order import rising_order
from fedplan.core.problem import Problem
from fedplan.core.setting import Cohort, RoundCost
from fedplan.participation.draws import pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """These clients, and `drawn` more of the pool at random; each counts by its data.

    Biased, unless everyone is chosen: who is left out does not count.

    >>> law = Chosen(clients=(0, 2), pool=(1, 3), drawn=1)
    >>> law.cohort(np.ones(4), seed=0, round_=1).clients.size
    3
    """

    law: ClassVar[str] = "chosen"
    summary: ClassVar[str] = "clients that a course has chosen"
    needs_fleet: ClassVar[bool] = False
    cycle: ClassVar[int] = 1
    averaged: ClassVar[int] = 1
    clients: tuple[int, ...]
    pool: tuple[int, ...] = ()
    drawn: int = 0

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Chosen:  # noqa: ARG003
        """Nobody is chosen yet: so many of everyone."""
        return cls(clients=(), pool=tuple(range(len(problem.fleet))), drawn=size)

    @property
    def clients_per_round(self) -> int:
        """K."""
        return len(self.clients) + self.drawn

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round, and with which share of the update."""
        more = [self.pool[place] for place in pick(seed, round_, len(self.pool), self.drawn)]
        clients = np.array(sorted((*self.clients, *more)), dtype=np.int64)
        held = samples[clients]
        return Cohort(clients, held / (held.sum() or 1.0))

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """The expected slowest: of n, the i-th is that of the d drawn in C(i-1,d-1) of C(n,d)."""
        fleet = problem.fleet
        times, joules = (
            np.repeat(each, fleet.count)
            for each in (fleet.round_times_s(local_steps), fleet.round_energy_j(local_steps))
        )
        own, pool = list(self.clients), list(self.pool)
        time_s = float(times[own].max()) if own else 0.0
        energy_j = float(joules[own].sum())
        if self.drawn:
            size, ranked = len(pool), times[pool][rising_order(times[pool])]
            chance, expected = self.drawn / size, 0.0
            for place in range(size, self.drawn - 1, -1):
                expected += chance * max(float(ranked[place - 1]), time_s)
                chance *= (place - self.drawn) / max(place - 1, 1)
            time_s, energy_j = expected, energy_j + self.drawn * float(joules[pool].mean())
        return RoundCost(time_s=time_s, energy_j=energy_j, clients=self.clients_per_round)

    def sampling_variance(self, problem: Problem) -> float:
        """As of as many drawn from everyone; that the choice is biased is not in it."""
        n, k = len(problem.fleet), self.clients_per_round
        return (n - k) / (k * max(n - 1, 1))

    def largest_share(self, problem: Problem) -> float:  # noqa: ARG002
        """The shares of a round add up to 1."""
        return 1.0

    def problems(self, num_clients: int) -> list[str]:
        """What keeps so many clients from training by this law."""
        named = (*self.clients, *self.pool)
        found = []
        if len(set(named)) != len(named) or not all(0 <= each < num_clients for each in named):
            found.append(
                f"clients and pool must be different clients of 0 .. {num_clients - 1}, but got "
                f"{named}."
            )
        if not 0 <= self.drawn <= len(self.pool) or not self.clients_per_round:
            found.append(
                "`0 <= drawn <= len(pool)` must hold, with one client at least, but got "
                f"drawn={self.drawn} of {len(self.pool)} and {len(self.clients)} clients."
            )
        return found
