"""Problem: the question. Which devices, whose data, what to minimise, within which limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from fedplan.core.constraints import Constraints
from fedplan.core.fleet import QUANTITIES, Fleet, FloatArray, IntArray
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """The question that a plan answers; CLI, study file, page and Flower each build one.

    fleet : the devices, with their samples if known.
    objective : what a second, a joule and a client's round are worth; by default time alone.
    limits : what a plan must respect.
    target_loss, learning_rate : the loss to reach, and the schedule; None if the question
        is about costs alone.

    >>> problem = Problem(fleet=Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, samples=[30, 10]))
    >>> problem.data_shares.tolist(), problem.objective.unit
    ([0.75, 0.25], 's')
    """

    fleet: Fleet
    objective: Objective = field(default_factory=lambda: Objective.weighted(0.0))
    limits: Constraints = field(default_factory=Constraints)
    target_loss: float | None = None
    learning_rate: LearningRate | None = None

    @property
    def data_shares(self) -> FloatArray:
        """p_k of one device of each entry of the fleet; summed over all devices they give 1."""
        return self.fleet.samples / float(self.fleet.samples @ self.fleet.count)

    def digest(self, more: object = None) -> str:
        """16 hexadecimal digits that identify this question and `more`."""
        digest = hashlib.sha256()
        for name in (*QUANTITIES, "samples", "count"):
            digest.update(np.ascontiguousarray(getattr(self.fleet, name)).tobytes())
        rest = (self.objective, self.limits, self.target_loss, self.learning_rate, more)
        digest.update(repr(rest).encode())
        return digest.hexdigest()[:16]

    def evened(self, most: float) -> Problem:
        """The same question where no client counts for more than `most` average clients.

        >>> fleet = Fleet(step_time_s=[1.0] * 4, comm_time_s=0.0, samples=[97, 1, 1, 1])
        >>> Problem(fleet=fleet).evened(2.0).data_shares.round(3).tolist()
        [0.5, 0.167, 0.167, 0.167]
        """
        fleet = self.fleet
        columns = {name: getattr(fleet, name) for name in (*QUANTITIES, "count", "device")}
        samples = even_out(fleet.samples, most, fleet.count)
        return replace(self, fleet=Fleet(**columns, samples=samples))

    def with_samples(self, samples: ArrayLike) -> Problem:
        """The same question with these numbers of samples, one per client.

        A fleet with counts is expanded, because each device has its own data.
        """
        sizes = np.asarray(samples, dtype=np.float64)
        return replace(self, fleet=self.fleet.with_samples(sizes))


def even_out(samples: FloatArray, most: float, count: IntArray | int = 1) -> FloatArray:
    """Samples with which no client counts for more than `most` average clients with data.

    What the largest lose, the others gain in proportion; the total stays.

    >>> even_out(np.array([6.0, 1.0, 1.0, 0.0]), 1.5).tolist()
    [4.0, 2.0, 2.0, 0.0]
    """
    counts = np.broadcast_to(count, samples.shape)
    held = samples * counts
    total, limit = held.sum(), most * held.sum() / counts[samples > 0].sum()
    heavy, scale = np.zeros(samples.shape, dtype=bool), 1.0
    while (more := ~heavy & (samples * scale > limit * (1 + 1e-12))).any():
        heavy |= more
        light = held[~heavy].sum()
        scale = (total - limit * counts[heavy].sum()) / light if light else 0.0
    return np.where(heavy, limit, samples * scale)
