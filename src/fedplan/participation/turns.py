"""Turns: groups of devices of similar speed train one after the other, slow ones less often.

In a cycle of L rounds group j trains m_j times, and an update of its client k counts p_k L / m_j,
so over every cycle each client's data counts exactly by its share. Who is next follows credits
(weighted round robin): every round each group earns m_j, and the group with the most trains and
pays L.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray, IntArray
from fedplan.core.plan import GroupCost
from fedplan.core.problem import Problem, even_out
from fedplan.core.setting import Cohort, Participation, RoundCost
from fedplan.errors import InputError, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns(Participation):
    """Groups that take turns.

    groups : the clients of each group, by number; no client is in two.
    visits : how often each group trains in a cycle.
    earned : the credit of each group before round `since` + 1; 0 at the start of a training.
    heaviest : a client counts for at most this many average ones; None means no limit.

    >>> law = Turns(groups=((0, 1, 2), (3,)), visits=(2, 1))
    >>> [law.turn(round_) for round_ in (1, 2, 3, 4)]
    [0, 1, 0, 0]
    >>> law.cohort(np.array([1.0, 1.0, 1.0, 1.0]), seed=0, round_=2).shares.tolist()
    [0.75]
    """

    law: ClassVar[str] = "turns"
    summary: ClassVar[str] = "groups of like speed, slow ones less often"
    needs_fleet: ClassVar[bool] = True
    clients_per_round: ClassVar[None] = None  # type: ignore[misc]
    groups: tuple[tuple[int, ...], ...]
    visits: tuple[int, ...]
    earned: tuple[int, ...] = ()
    since: int = 0
    heaviest: float | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.groups or not all(self.groups):
            problems.append("every group needs a client, and a law by turns a group.")
        if len(self.visits) != len(self.groups) or min(self.visits, default=0) < 1:
            problems.append(
                "`visits >= 1` must hold for each group, but got visits="
                f"{self.visits} for {len(self.groups)} groups."
            )
        if self.earned and len(self.earned) != len(self.groups):
            problems.append(f"earned must have {len(self.groups)} numbers, got {self.earned}.")
        members = [client for group in self.groups for client in group]
        if len(set(members)) < len(members):
            problems.append("no client may be in two groups.")
        if min(members, default=0) < 0:
            problems.append(f"clients have numbers from 0 on, but got {min(members)}.")
        refuse(problems)

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Turns:
        """The cheapest cut into at most `size` groups."""
        from fedplan.participation.grouping import Grouper  # it imports this module

        if not 1 <= size <= len(problem.fleet):
            raise InputError(
                f"`1 <= groups <= num_clients` must hold, but got groups={size}, "
                f"num_clients={len(problem.fleet)}. Change the number of groups."
            )
        grouping = Grouper(problem, local_steps).group(size)
        if grouping is None:
            low, high = problem.limits.clients_range(len(problem.fleet))
            raise InputError(
                f"{len(problem.fleet):,} clients cannot be cut into {size:,} groups of {low:,} to "
                f"{high:,}. Change the number of groups, or widen min_clients_per_round and "
                "max_clients_per_round."
            )
        return grouping.whole()

    @property
    def cycle(self) -> int:
        """L: rounds of a cycle."""
        return sum(self.visits)

    @property
    def averaged(self) -> int:
        """As many models as groups: fewer would swing, those of a whole cycle would lag behind."""
        return len(self.groups)

    @property
    def frequencies(self) -> tuple[float, ...]:
        """P_j: the share of rounds in which each group trains."""
        return tuple(times / self.cycle for times in self.visits)

    def turn(self, round_: int) -> int:
        """Which group trains in this round, counted from 1."""
        since = round_ - self.since
        if not any(self.earned):
            since = (since - 1) % self.cycle + 1  # credits are even again after a cycle
        reach = self.cycle
        while reach < since:
            reach *= 2
        return order_of_turns(self.visits, reach, self.earned)[since - 1]

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:  # noqa: ARG002
        """Who trains in this round: a whole group, the same for every seed."""
        turn = self.turn(round_)
        clients = np.sort(self.groups[turn])
        if self.heaviest is not None:
            samples = even_out(samples, self.heaviest)
        scale = self.cycle / (self.visits[turn] * samples.sum())
        return Cohort(clients, samples[clients] * scale)

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """The exact mean over a cycle: the time of a group's slowest device, and all its joules."""
        rows = self.group_costs(problem, local_steps)
        return RoundCost(
            time_s=math.fsum(row.frequency * row.time_s for row in rows),
            energy_j=math.fsum(row.frequency * row.energy_j for row in rows),
            clients=math.fsum(row.frequency * row.clients for row in rows),
        )

    def group_costs(self, problem: Problem, local_steps: float) -> tuple[GroupCost, ...]:
        """What a round of each group takes."""
        times = problem.fleet.round_times_s(local_steps)
        joules = problem.fleet.round_energy_j(local_steps)
        shares = problem.data_shares
        starts = np.cumsum(problem.fleet.count) - problem.fleet.count
        rows = []
        for group, frequency in zip(self.groups, self.frequencies, strict=True):
            entries = np.searchsorted(starts, np.array(group), "right") - 1
            rows.append(
                GroupCost.of(
                    problem.objective,
                    clients=len(group),
                    data_share=float(shares[entries].sum()),
                    frequency=frequency,
                    time_s=float(times[entries].max()),
                    energy_j=float(joules[entries].sum()),
                )
            )
        return tuple(rows)

    def largest_share(self, problem: Problem) -> float:
        """That of the client with the most data in relation to its group's turns."""
        if self.heaviest is not None:
            problem = problem.evened(self.heaviest)
        p = problem.fleet.per_device(problem.data_shares)
        most = [float(p[list(group)].max()) for group in self.groups]
        return max(share / often for share, often in zip(most, self.frequencies, strict=True))

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""
        largest = max(client for group in self.groups for client in group)
        if largest < num_clients:
            return []
        return [f"client {largest} is in a group, but there are {num_clients} clients."]

    def continued(self, next_: Turns, samples: FloatArray, round_: int) -> Turns:
        """The law to continue with after this round, if groups or visits have changed.

        Clients keep the credit they earned, in proportion to their data: a group that
        was about to train still is.
        """
        of_client = np.zeros(samples.size)
        for group, credit in zip(self.groups, self._credits_after(round_), strict=True):
            held = samples[list(group)]
            of_client[list(group)] = held / (held.sum() or 1.0) * (credit / self.cycle)
        earned = tuple(round(of_client[list(each)].sum() * next_.cycle) for each in next_.groups)
        return replace(next_, earned=earned, since=round_)

    def _credits_after(self, round_: int) -> IntArray:
        earned = np.array(self.earned or [0] * len(self.groups))
        visits = np.array(self.visits)
        for done in range(self.since + 1, round_ + 1):
            earned += visits
            earned[self.turn(done)] -= self.cycle
        return earned


@lru_cache(maxsize=64)
def order_of_turns(
    visits: tuple[int, ...], rounds: int, earned: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Which group trains in each of so many rounds, from these credits on.

    >>> order_of_turns((2, 1), 6)
    (0, 1, 0, 0, 1, 0)
    """
    return tuple(islice(_turns(visits, earned), rounds))


def _turns(visits: tuple[int, ...], earned: tuple[int, ...]) -> Iterator[int]:
    credit, cycle = list(earned or [0] * len(visits)), sum(visits)
    while True:
        for group, times in enumerate(visits):
            credit[group] += times
        best = max(range(len(visits)), key=credit.__getitem__)  # the first of equals
        credit[best] -= cycle
        yield best
