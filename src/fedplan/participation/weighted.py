"""Weighted sampling: K independent draws with given probabilities, unbiased by weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray, rising_order
from fedplan.core.problem import Problem
from fedplan.core.setting import Cohort, Participation, RoundCost
from fedplan.errors import InputError, refuse, unmet
from fedplan.participation.draws import uniforms


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted(Participation):
    """K draws with replacement by probabilities q_k; each draw of client k counts p_k / (K q_k).

    Every single round is unbiased, whatever came before. A client drawn twice trains once and
    counts twice.

    >>> law = Weighted(clients_per_round=2, chances=(0.5, 0.25, 0.25))
    >>> law.cohort(np.array([1.0, 1.0, 2.0]), seed=0, round_=1).shares.round(3).tolist()
    [0.25, 1.0]
    """

    law: ClassVar[str] = "weighted"
    summary: ClassVar[str] = "K draws, quick clients more often"
    needs_fleet: ClassVar[bool] = True
    clients_per_round: int
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        q = np.asarray(self.chances)
        if not (q.size and (q >= 0).all() and abs(q.sum() - 1) < 1e-9):
            raise InputError(
                "chances must be numbers >= 0 that add up to 1, but they add up to "
                f"{q.sum():.12g}. Divide them by their sum."
            )

    @classmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Weighted:
        """`size` draws, with probabilities q ~ p / sqrt(t).

        They make alpha sum p^2 / (K q) cost least where a round takes about sum q t (adaptive
        client sampling, INFOCOM 2022, Corollary 2, with equal gradient norms).
        """
        slow = np.sqrt(problem.fleet.round_times_s(local_steps))
        q = problem.fleet.per_device(problem.data_shares / slow)
        return cls(clients_per_round=size, chances=tuple((q / q.sum()).tolist()))

    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round; a client with data must have a probability above 0."""
        q = np.asarray(self.chances)
        self._check(samples)
        edges = np.cumsum(q)
        numbers = uniforms(seed, round_, self.clients_per_round) * edges[-1]
        drawn = np.searchsorted(edges[:-1], numbers, "right")
        clients, times = np.unique(drawn, return_counts=True)
        shares = samples[clients] / samples.sum() / (self.clients_per_round * q[clients])
        return Cohort(clients, shares * times)

    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """E[max] of K draws is the sum of t_(i) (Q_i^K - Q_(i-1)^K), Q the chances added up."""
        fleet, k = problem.fleet, self.clients_per_round
        q = np.asarray(self.chances)
        times = fleet.per_device(fleet.round_times_s(local_steps))
        joules = fleet.per_device(fleet.round_energy_j(local_steps))
        order = rising_order(times)
        within = np.minimum(np.cumsum(q[order]), 1.0) ** k
        taken = -np.expm1(k * np.log1p(-np.minimum(q, 1 - 1e-16)))  # drawn at least once
        return RoundCost(
            time_s=float(np.diff(within, prepend=0.0) @ times[order]),
            energy_j=float(taken @ joules),
            clients=float(taken.sum()),
        )

    def sampling_variance(self, problem: Problem) -> float:
        """Sum p^2 / q / K over what uniform draws of a single client would have."""
        p = problem.fleet.per_device(problem.data_shares)
        self._check(p)
        held = p > 0
        own = float((p[held] ** 2 / np.asarray(self.chances)[held]).sum())
        return own / (self.clients_per_round * len(problem.fleet) * float(p @ p))

    def largest_share(self, problem: Problem) -> float:
        """That of a client that is drawn once."""
        p, q = problem.fleet.per_device(problem.data_shares), np.asarray(self.chances)
        return float((p[q > 0] / q[q > 0]).max()) / self.clients_per_round

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""
        clients = self.clients_per_round
        found = unmet({"clients_per_round >= 1": clients >= 1}, clients_per_round=clients)
        if len(self.chances) != num_clients:
            found.append(
                f"`len(chances) == num_clients` must hold, but got {len(self.chances)} chances "
                f"for {num_clients} clients."
            )
        return found

    def _check(self, samples: FloatArray) -> None:
        q = np.asarray(self.chances)
        refuse(self.problems(samples.size))
        if (lost := np.flatnonzero((samples > 0) & (q == 0))).size:
            raise InputError(
                f"every client with data needs a chance > 0, but client {lost[0]} has 0 "
                f"({lost.size} such clients): its data would never count."
            )
