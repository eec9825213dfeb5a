"""Shuffled participation: every client once in a cycle, in a new random order each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.problem import Problem
from fedplan.core.setting import Cohort, Participation, RoundCost
from fedplan.participation.draws import deal
from fedplan.participation.uniform_sampling import clients_problems, round_energy_j, round_time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled(Participation):
    """All N clients are dealt into rounds of at most K, and again once everyone has trained.

    It requires no knowledge of the devices. Rounds of a cycle differ by one client at most.

    >>> law = Shuffled(clients_per_round=2, num_clients=5)
    >>> rounds = [law.cohort(np.ones(5), seed=0, round_=r).clients for r in (1, 2, 3)]
    >>> np.sort(np.concatenate(rounds)).tolist()
    [0, 1, 2, 3, 4]
    """

    law: ClassVar[str] = "shuffled"
    summary: ClassVar[str] = "everyone once in a cycle, K at a time"
    clients_per_round: int
    num_clients: int

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Shuffled:  # noqa: ARG003
        """At most `size` clients per round."""
        return cls(clients_per_round=size, num_clients=len(problem.fleet))

    @property
    def cycle(self) -> int:
        """Rounds until everyone has trained."""
        return -(-self.num_clients // self.clients_per_round)

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round; over a cycle the shares of a client average to its p_k."""
        lap, place = divmod(round_ - 1, self.cycle)
        start, end = self._ends()[place : place + 2]
        clients = np.sort(deal(seed, lap, self.num_clients, end)[start:])
        return Cohort(clients, samples[clients] * (self.cycle / samples.sum()))

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """Each round is a uniform sample of its size, so Lemma 2 holds; the mean over a cycle."""
        sizes, times = np.unique(np.diff(self._ends()), return_counts=True)
        seconds = [round_time_s(problem.fleet, size, local_steps) for size in sizes.tolist()]
        clients = self.num_clients / self.cycle
        return RoundCost(
            time_s=float(times @ seconds) / self.cycle,
            energy_j=float(round_energy_j(problem.fleet, clients, local_steps)),
            clients=clients,
        )

    def largest_share(self, problem: Problem) -> float:
        """That of the client with the most data."""
        return float(problem.data_shares.max()) * self.cycle

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""
        found = clients_problems(self.clients_per_round, num_clients)
        if self.num_clients != num_clients:
            found.append(
                f"{self.num_clients} clients are to be shuffled, but there are {num_clients}."
            )
        return found

    def _ends(self) -> list[int]:
        """Where the rounds of a cycle begin and end in the deal, sizes as equal as can be."""
        return [place * self.num_clients // self.cycle for place in range(self.cycle + 1)]
