"""Adaptive client sampling: draw clients that matter more or cost less more often.

Luo et al., "Tackling System and Statistical Heterogeneity for Federated Learning with Adaptive
Client Sampling" (INFOCOM 2022). K clients are drawn with replacement by chances q, and each counts
p / (K q). With G the norms of the clients' gradients, rounds are in proportion to
alpha sum p^2 G^2 / (K q) + beta and a round takes about sum q t, so that

    q ~ p G / sqrt(t + nu)

with one number nu to search, between -min t and 0; it is 0 where beta is (their Corollary 2).

What differs from the paper: G is what clients report while training, |w_k - w| / (rate E) of their
last round, and the mean of the others before that; the paper has runs before the training for
alpha and beta. Without alpha / beta, beta is 0. Where energy counts, t is what a draw costs, its
seconds and K times its joules by the objective, which has the same optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedplan.core.fleet import FloatArray
from fedplan.core.records import RoundRecord
from fedplan.core.setting import Setting
from fedplan.course.published import Published, Turning
from fedplan.participation import Weighted

LEAST_NORM = 1e-3  # of the mean norm: with chance 0, a client's data would never count again
LEAST_COST = 1e-6  # of the dearest draw: the rule divides by what a draw costs
TRIED = 1.0 - np.concatenate([[1.0], np.geomspace(1.0, 1e-6, 400)[1:]])  # of -nu / min t


def chances(
    shares: FloatArray, norms: FloatArray, costs: FloatArray, clients: int, ratio: float
) -> FloatArray:
    """Chances q for data shares p, gradient norms G and costs t of a draw; `ratio` is alpha / beta.

    >>> even = np.array([0.5, 0.5])
    >>> chances(even, np.array([1.0, 2.0]), np.array([1.0, 4.0]), 1, math.inf).tolist()
    [0.5, 0.5]
    """
    dearest = float(costs.max())
    costs = np.maximum(costs, LEAST_COST * dearest) if dearest else np.ones_like(costs)

    def of(nu: float) -> FloatArray:
        q = shares * norms / np.sqrt(costs + nu)
        return np.asarray(q / q.sum())

    if math.isinf(ratio):
        return of(0.0)

    def total(q: FloatArray) -> float:
        held = q > 0
        noise = float(((shares * norms)[held] ** 2 / q[held]).sum()) / clients
        return (ratio * noise + 1.0) * float(q @ costs)

    return min((of(-share * float(costs.min())) for share in TRIED), key=total)


@dataclass(frozen=True, kw_only=True, eq=False)
class Infocom22(Published):
    """Begins with a tenth of the clients and 20 steps; only the probabilities change.

    ratio : alpha / beta, in units of 1 / G^2.
    """

    name: ClassVar[str] = "infocom22"
    wants_clients: ClassVar[bool] = True
    ratio: float = math.inf

    @cached_property
    def setting(self) -> Setting:
        """The chances with equal norms."""
        return self.drawn(np.ones(self.num_clients))

    def drawn(self, norms: FloatArray) -> Setting:
        """The setting for these norms of the clients' gradients."""
        fleet, objective = self.problem.fleet, self.problem.objective
        clients, steps = self.first_clients, self.first_steps
        costs = objective.of_round(
            fleet.round_times_s(steps), clients * fleet.round_energy_j(steps), clients
        )
        floor = LEAST_NORM * float(norms.mean())
        q = chances(
            fleet.per_device(self.problem.data_shares), np.maximum(norms, floor),
            fleet.per_device(costs), clients, self.ratio,
        )  # fmt: skip
        law = Weighted(clients_per_round=clients, chances=tuple(q.tolist()))
        return Setting(participation=law, local_steps=steps)

    def begin(self) -> Infocom22Steering:
        """A new training."""
        return Infocom22Steering(self)


class Infocom22Steering(Turning):
    """Knows the norm of each client's gradient when it last took part."""

    def __init__(self, course: Infocom22) -> None:
        super().__init__(course.setting, "Chances for equal gradients.")
        self._course = course
        self._norms = np.full(course.num_clients, np.nan)

    def tell(self, record: RoundRecord) -> None:
        """Report a round, whose norms change the probabilities of all clients."""
        if record.reports is None or not record.cohort:
            return
        rate = self._course.problem.learning_rate
        way = (rate.at(record.round - 1) if rate else 1.0) * self._setting.local_steps
        norms, told = self._norms, record.reports.update_norms
        new = np.isfinite(told)
        norms[np.array(record.cohort)[new]] = told[new] / (way or 1.0)
        known = np.isfinite(norms)
        if not known.any() or not (mean := float(norms[known].mean())) > 0:
            return
        setting = self._course.drawn(np.where(known, norms, mean))
        self.turn_to(setting, record.round + 1, "The norms of gradients have changed.")
