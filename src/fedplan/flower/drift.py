"""Drift: how much longer than when it was profiled a device takes now."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fedplan.core.records import Observation
from fedplan.profiling import DeviceCosts

RECENT, FEWEST = 8, 3  # observations a client's drift is judged by


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
