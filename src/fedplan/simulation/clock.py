"""The virtual clock: seconds and joules of a round, from who took part and their devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedplan.errors import InputError
from fedplan.records import RunRecord
from fedplan.theory.fleet import QUANTITIES, Fleet


class Clock:
    """Prices rounds on one fleet; entry k of the fleet (counts expanded) is client k.

    >>> clock = Clock(Fleet(step_time_s=[1.0, 2.0], comm_time_s=0.5, step_energy_j=3.0), 2)
    >>> clock.round_cost([0, 1], local_steps=2)
    (4.5, 12.0)
    """

    def __init__(self, fleet: Fleet, num_clients: int) -> None:
        if len(fleet) != num_clients:
            raise InputError(
                "`len(fleet) == num_clients` must hold, but got "
                f"{len(fleet)} devices for {num_clients} clients. Give one device a client."
            )
        self._step_s, self._comm_s, self._step_j, self._comm_j = (
            np.repeat(getattr(fleet, name), fleet.count) for name in QUANTITIES
        )

    def round_cost(self, cohort: Sequence[int], local_steps: int) -> tuple[float, float]:
        """Seconds (the slowest of the cohort) and joules (their sum) of one round, Eqs. 4 and 7."""
        clients = np.asarray(cohort, dtype=np.int64)
        seconds = self._step_s[clients] * local_steps + self._comm_s[clients]
        joules = self._step_j[clients] * local_steps + self._comm_j[clients]
        return float(seconds.max()), float(joules.sum())

    def reprice(self, run: RunRecord) -> RunRecord:
        """The same run on this fleet, without training again."""
        rounds = []
        for record in run.rounds:
            if record.cohort:
                seconds, joules = self.round_cost(record.cohort, run.local_steps)
                record = replace(record, seconds=seconds, joules=joules)
            rounds.append(record)
        return replace(run, rounds=tuple(rounds))
