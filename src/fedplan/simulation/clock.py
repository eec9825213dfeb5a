"""The virtual clock: seconds and joules of a round, from who took part and their devices."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from fedplan.core.fleet import QUANTITIES, Fleet, FloatArray, IntArray
from fedplan.core.records import RunRecord
from fedplan.errors import InputError


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
                f"{len(fleet)} devices for {num_clients} clients. Give one device per client."
            )
        self._step_s, self._comm_s, self._step_j, self._comm_j = (
            np.repeat(getattr(fleet, name), fleet.count) for name in QUANTITIES
        )

    def round_cost(self, cohort: Sequence[int] | IntArray, local_steps: int) -> tuple[float, float]:
        """Seconds (the slowest of the cohort) and joules (their sum) of one round, Eqs. 4 and 7."""
        seconds, joules = self._costs(np.asarray(cohort, dtype=np.int64), local_steps)
        return float(seconds), float(joules)

    def _costs(self, cohorts: IntArray, local_steps: int) -> tuple[FloatArray, FloatArray]:
        """Seconds and joules of each cohort, along the last axis."""
        seconds = self._step_s[cohorts] * local_steps + self._comm_s[cohorts]
        joules = self._step_j[cohorts] * local_steps + self._comm_j[cohorts]
        return seconds.max(axis=-1), joules.sum(axis=-1)

    def round_costs(
        self, cohorts: Sequence[Sequence[int]], local_steps: Sequence[int]
    ) -> list[tuple[float, float]]:
        """`round_cost` of many rounds at once, bit for bit; 0 if nobody took part."""
        costs = np.zeros((len(cohorts), 2))
        alike: dict[tuple[int, int], list[int]] = {}
        for place, key in enumerate(zip(map(len, cohorts), local_steps, strict=True)):
            alike.setdefault(key, []).append(place)
        for (size, steps), places in alike.items():
            if size:
                members = chain.from_iterable(cohorts[place] for place in places)
                clients = np.fromiter(members, np.int64, size * len(places)).reshape(-1, size)
                costs[places, 0], costs[places, 1] = self._costs(clients, steps)
        return [(seconds, joules) for seconds, joules in costs.tolist()]

    def reprice(self, run: RunRecord) -> RunRecord:
        """The same run priced on this fleet, without training again."""
        costs = self.round_costs(
            [record.cohort for record in run.rounds],
            [(record.setting or run.setting).local_steps for record in run.rounds],
        )
        rounds = (
            replace(record, seconds=seconds, joules=joules)
            for record, (seconds, joules) in zip(run.rounds, costs, strict=True)
        )
        return replace(run, rounds=tuple(rounds))
