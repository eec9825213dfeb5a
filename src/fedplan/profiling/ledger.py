"""Ledger: what is known of every client from the rounds so far, its samples and what it costs."""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedplan.core.fleet import Fleet, FloatArray
from fedplan.core.records import Observation
from fedplan.profiling.observed import DeviceCosts, fleet_of, observed_costs
from fedplan.profiling.regression import exactly

RECENT, FEWEST = 8, 3  # observations by which it is judged what a client costs now


class Ledger:
    """Hears of every observation, in order; the same rounds make the same ledger.

    samples : of each client, where that is known beforehand.
    """

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self._samples = dict(enumerate(samples))
        # Of each number of local steps the last ones: lines need several, and old ones are stale.
        self._seen: dict[int, dict[int, deque[Observation]]] = defaultdict(dict)
        self._last: dict[int, deque[Observation]] = {}

    def hear(self, observations: Iterable[Observation]) -> None:
        """What the clients of one more round did."""
        for one in observations:
            if one.examples is not None:
                self._samples[one.client] = one.examples
            if not one.problem:
                by_steps = self._seen[one.client]
                by_steps.setdefault(one.local_steps, deque(maxlen=RECENT)).append(one)
                self._last.setdefault(one.client, deque(maxlen=RECENT)).append(one)

    def samples(self, num_clients: int) -> FloatArray:
        """Of every client; those that have not said are taken for the mean of those that have."""
        mean = statistics.fmean(self._samples.values()) if self._samples else 1.0
        return np.array([self._samples.get(client, mean) for client in range(num_clients)])

    def steps_seen(self, client: int) -> int:
        """With how many different numbers of local steps a client has been seen."""
        return len(self._seen.get(client, ()))

    def fleet(self, num_clients: int, known: Fleet | None = None) -> Fleet | None:
        """What every client's device costs now; None while nothing is known of any.

        known : their costs by an earlier measurement. They count until a client has been seen with
            two numbers of local steps, which tell a step from what a round takes besides.
        """
        costs = {} if known is None else _as_costs(known)
        seen = (
            one for by_steps in self._seen.values() for each in by_steps.values() for one in each
        )
        costs |= {
            client: one
            for client, one in observed_costs(seen).devices.items()
            if client not in costs or self.steps_seen(client) > 1
        }
        if not costs:
            return None
        recent = (one for each in self._last.values() for one in each)
        found = fleet_of(drifted(costs, recent), [str(client) for client in range(num_clients)])
        return found.with_samples(self.samples(num_clients))


def drifted(
    costs: Mapping[int, DeviceCosts], observations: Iterable[Observation]
) -> dict[int, DeviceCosts]:
    """The costs now, by client, from what was observed since, in its order.

    Training has one E, which alone does not tell steps from what is fixed; the ratio to what was
    measured with two needs not.
    """
    recent: dict[int, list[tuple[int, float, float]]] = {client: [] for client in costs}
    for one in observations:
        train_s, trip_s = one.train_seconds, one.round_trip_seconds
        if not one.problem and one.client in recent and train_s is not None and trip_s is not None:
            recent[one.client].append((one.local_steps, train_s, trip_s - train_s))
    return {client: _changed(known, recent[client][-RECENT:]) for client, known in costs.items()}


def _changed(known: DeviceCosts, recent: Sequence[tuple[int, float, float]]) -> DeviceCosts:
    if len(recent) < FEWEST:
        return known
    step, fixed = known.step_time_s.value, known.fixed_time_s.value
    training = _ratio([(train_s, fixed + step * steps) for steps, train_s, _ in recent])
    exchange = _ratio([(exchange_s, known.exchange_s.value) for _, _, exchange_s in recent])
    return replace(
        known,
        step_time_s=known.step_time_s.times(training),
        fixed_time_s=known.fixed_time_s.times(training),
        exchange_s=known.exchange_s.times(exchange),
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(new / old if old > 0 else 1.0 for new, old in pairs)


def _as_costs(fleet: Fleet) -> dict[int, DeviceCosts]:
    """The devices of a fleet, as if measured exactly."""
    return {
        client: DeviceCosts(
            step_time_s=exactly(float(fleet.step_time_s[client])),
            exchange_s=exactly(float(fleet.comm_time_s[client])),
            fixed_time_s=exactly(0.0),
            step_energy_j=exactly(float(fleet.step_energy_j[client])),
            comm_energy_j=exactly(float(fleet.comm_energy_j[client])),
            num_observations=0,
        )
        for client in range(len(fleet))
    }
