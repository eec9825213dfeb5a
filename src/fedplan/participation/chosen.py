"""Chosen clients: those that a course names, and a few drawn from others.

Courses make such a law anew for every round; it cannot be asked for by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.problem import Problem
from fedplan.core.setting import Cohort, Participation, RoundCost
from fedplan.participation.draws import pick
from fedplan.participation.slowest import expected_slowest


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Participation):
    """These clients, and `drawn` more of the pool at random; each counts by its data.

    Biased unless everyone is chosen: clients left out do not count. The sampling noise does not
    include this bias; it is that of drawing as many from all clients.

    >>> law = Chosen(clients=(0, 2), pool=(1, 3), drawn=1)
    >>> law.cohort(np.ones(4), seed=0, round_=1).clients.size
    3
    """

    law: ClassVar[str] = "chosen"
    summary: ClassVar[str] = "clients that a course has chosen"
    clients: tuple[int, ...]
    pool: tuple[int, ...] = ()
    drawn: int = 0

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Chosen:  # noqa: ARG003
        """`size` clients drawn from all; nobody is chosen yet."""
        return cls(clients=(), pool=tuple(range(len(problem.fleet))), drawn=size)

    @property
    def clients_per_round(self) -> int:  # type: ignore[override]
        """K."""
        return len(self.clients) + self.drawn

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round, and the weights of their updates."""
        more = [self.pool[place] for place in pick(seed, round_, len(self.pool), self.drawn)]
        clients = np.array(sorted((*self.clients, *more)), dtype=np.int64)
        held = samples[clients]
        return Cohort(clients, held / (held.sum() or 1.0))

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """The expected slowest; no drawn client takes less time than the chosen ones."""
        fleet, own, pool = problem.fleet, list(self.clients), list(self.pool)
        times = fleet.per_device(fleet.round_times_s(local_steps))
        joules = fleet.per_device(fleet.round_energy_j(local_steps))
        time_s = float(times[own].max()) if own else 0.0
        energy_j = float(joules[own].sum())
        if self.drawn:
            time_s = float(expected_slowest(np.maximum(times[pool], time_s), self.drawn)[0])
            energy_j += self.drawn * float(joules[pool].mean())
        return RoundCost(time_s=time_s, energy_j=energy_j, clients=self.clients_per_round)

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""
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
