"""Uniform sampling, as in the paper: K random clients, and a round waits for the slowest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.fleet import Fleet, FloatArray
from fedplan.core.problem import Problem
from fedplan.core.setting import Cohort, Participation, RoundCost
from fedplan.errors import refuse, unmet
from fedplan.participation.draws import pick
from fedplan.participation.rankings import rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Participation):
    """K clients, drawn in every round without replacement; each counts by its data.

    >>> clients, shares = Uniform(clients_per_round=2).cohort(np.array([1.0, 1.0, 2.0]), 0, 1)
    >>> clients.size, float(shares.sum())
    (2, 1.0)
    """

    law: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "K clients at random"
    clients_per_round: int

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Uniform:  # noqa: ARG003
        """K = size."""
        return cls(clients_per_round=size)

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round, and the weights of their updates (Algorithm 1)."""
        clients = pick(seed, round_, samples.size, self.clients_per_round)
        held = samples[clients]
        return Cohort(clients, held / (held.sum() or 1.0))

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """The expected slowest of K (Lemma 2) and the joules of K (Lemma 1)."""
        clients = self.clients_per_round
        return RoundCost(
            time_s=round_time_s(problem.fleet, clients, local_steps),
            energy_j=float(round_energy_j(problem.fleet, clients, local_steps)),
            clients=clients,
        )

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""
        return clients_problems(self.clients_per_round, num_clients)


def round_time_s(fleet: Fleet, clients_per_round: int, local_steps: float) -> float:
    """Expected seconds of one round, exact stragglers (Eq. 13).

    >>> round_time_s(Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5), 2, local_steps=3)
    6.5
    """
    problems = clients_problems(clients_per_round, len(fleet))
    problems += unmet({"local_steps >= 1": local_steps >= 1}, local_steps=local_steps)
    refuse(problems)
    if clients_per_round == 1:
        return mean_round_time_s(fleet, local_steps)  # which is exact then, and needs no ranking
    slowest = rank(fleet, local_steps, min_clients_per_round=clients_per_round)
    return float(slowest.round_time_s(clients_per_round)[0])


def mean_round_time_s(fleet: Fleet, local_steps: float) -> float:
    """The paper's approximation of a round's seconds, t_p E + t_m (Eq. 17): no straggler.

    >>> mean_round_time_s(Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5), local_steps=3)
    5.0
    """
    return fleet.mean("step_time_s") * local_steps + fleet.mean("comm_time_s")


def round_energy_j(
    fleet: Fleet, clients_per_round: ArrayLike, local_steps: ArrayLike
) -> FloatArray:
    """Expected joules of one round over all its clients, K (e_p E + e_m) (Lemma 1, Eq. 10).

    >>> fleet = Fleet(step_time_s=1.0, comm_time_s=0.5, step_energy_j=[2.0, 4.0])
    >>> float(round_energy_j(fleet, 2, local_steps=3))
    18.0
    """
    steps = np.asarray(local_steps, dtype=np.float64)
    per_client = fleet.mean("step_energy_j") * steps + fleet.mean("comm_energy_j")
    return np.asarray(np.asarray(clients_per_round, dtype=np.float64) * per_client)


def clients_problems(clients_per_round: int, num_clients: int) -> list[str]:
    """What is wrong with a number of clients per round."""
    if 1 <= clients_per_round <= num_clients:
        return []
    return [
        "`1 <= clients_per_round <= num_clients` must hold, but got "
        f"clients_per_round={clients_per_round}, num_clients={num_clients}. "
        "Lower clients_per_round or add devices."
    ]
