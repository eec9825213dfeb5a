"""What devices cost, from the rounds they took part in; a ledger keeps it for every client."""

import math
import statistics
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fedplan.core.fleet import QUANTITIES, Fleet, FloatArray
from fedplan.core.records import Observation
from fedplan.errors import FedplanError, unmet
from fedplan.profiling.regression import UNSEEN_FIXED_PART, Measured, exactly, fit_line, median_of

MOST_SECONDS = 1e7  # of one round; nobody waits a third of a year for a client
MOST_JOULES = 1e10
MOST_STEPS = 10**9
RECENT, FEWEST = 8, 3  # observations, at most and at least, that show what a client costs now
SHORTEST_S = 1e-9  # of a step: a fleet has no device that takes no time at all


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCosts:
    """What a device costs, each part with its interval.

    exchange_s : seconds of a round trip beyond training.
    fixed_time_s : seconds of a round's training that no step accounts for.
    step_energy_j, comm_energy_j : of training, by step and by round; None if no energy was
        measured.
    """

    step_time_s: Measured
    exchange_s: Measured
    fixed_time_s: Measured
    step_energy_j: Measured | None
    comm_energy_j: Measured | None
    num_observations: int

    @property
    def comm_time_s(self) -> Measured:
        """Seconds of a round in addition to its steps: the exchange, and the start of training.

        Both are paid once per round, as the column of a fleet means.
        """
        return self.exchange_s.plus(self.fixed_time_s)

    def quantities(self) -> dict[str, float]:
        """The row of a fleet, with 0 for what is unknown."""
        found = {name: part.value if (part := getattr(self, name)) else 0.0 for name in QUANTITIES}
        return found | {"step_time_s": max(self.step_time_s.value, SHORTEST_S)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCosts:
    """Costs by client, in the order of their numbers; and what was rejected, and why."""

    devices: dict[int, DeviceCosts]
    rejected: tuple[str, ...]


def observed_costs(observations: Iterable[Observation]) -> ObservedCosts:
    """What each client's steps and rounds cost, from the rounds it took part in.

    train_seconds = fixed_time_s + step_time_s * local_steps by robust regression, where a client
    was seen with at least two numbers of local steps, otherwise train_seconds / local_steps, which
    counts the fixed part in and says so by a wide interval; likewise where more steps did not take
    longer. exchange_s is the median of what the round trip took beyond training. Energy follows the
    same line: its slope is a step's, the rest is the round's; without one all of it is the steps'.

    Answers that were not used, and values that are no numbers, negative, absurd or at odds with one
    another, are left out and named in `rejected`: what a client reports is not to be trusted. The
    order does not matter.

    >>> seen = [Observation(client=7, local_steps=e, train_seconds=1 + 0.5 * e,
    ...     round_trip_seconds=3 + 0.5 * e) for e in (10, 20, 10, 40, 20)]
    >>> costs = observed_costs(seen).devices[7]
    >>> costs.step_time_s.value, costs.exchange_s.value, costs.fixed_time_s.value
    (0.5, 2.0, 1.0)
    >>> costs.comm_time_s.value
    3.0
    """
    by_client: dict[int, list[Observation]] = defaultdict(list)
    rejected = []
    for observation in observations:
        if doubt := _doubt(observation):
            rejected.append(f"client {observation.client}: {doubt}")
        else:
            by_client[observation.client].append(observation)
    devices = {client: _costs(tuple(seen)) for client, seen in sorted(by_client.items())}
    return ObservedCosts(devices=devices, rejected=tuple(sorted(rejected)))


def fleet_of(costs: Mapping[int, DeviceCosts], names: Sequence[str]) -> Fleet:
    """The fleet of these clients; one whose costs are not known is taken for a median device."""
    if not costs:
        raise FedplanError(
            "no client has answered well enough to know what its device costs. The problems are "
            "in the log, and in the table observations of the store."
        )
    rows = {client: one.quantities() for client, one in costs.items()}
    typical = {
        quantity: statistics.median(row[quantity] for row in rows.values())
        for quantity in next(iter(rows.values()))
    }
    columns = {
        quantity: [rows.get(client, typical)[quantity] for client in range(len(names))]
        for quantity in typical
    }
    return Fleet(**columns, device=names)


def _doubt(seen: Observation) -> str:
    """Why an observation says nothing about a device; empty if it does."""
    if seen.problem:
        return f"its answer was not used: {seen.problem}."
    steps, joules = seen.local_steps, seen.joules
    train_s, trip_s = (
        math.nan if value is None else value  # which fails every comparison
        for value in (seen.train_seconds, seen.round_trip_seconds)
    )
    most_s = f"{MOST_SECONDS:g}"
    rules = {
        f"1 <= local_steps <= {MOST_STEPS}": 1 <= steps <= MOST_STEPS and steps == int(steps),
        f"0 < train_seconds <= {most_s}": 0 < train_s <= MOST_SECONDS,
        f"train_seconds <= round_trip_seconds <= {most_s}": train_s <= trip_s <= MOST_SECONDS,
        f"0 <= joules <= {MOST_JOULES:g}": joules is None or 0 <= joules <= MOST_JOULES,
    }
    got = {"local_steps": steps, "train_seconds": train_s, "round_trip_seconds": trip_s}
    return next(iter(unmet(rules, **got, joules=joules)), "")


@lru_cache(maxsize=1 << 12)  # most clients of a live federation have nothing new after a round
def _costs(seen: tuple[Observation, ...]) -> DeviceCosts:
    trained = [(one.local_steps, one.train_seconds or 0.0) for one in seen]
    step_time, fixed_time = _by_step(trained)
    joules = [(one.local_steps, one.joules) for one in seen if one.joules is not None]
    step_energy, comm_energy = _by_step(joules) if joules else (None, None)
    beyond = [(one.round_trip_seconds or 0.0) - (one.train_seconds or 0.0) for one in seen]
    return DeviceCosts(
        step_time_s=step_time,
        exchange_s=median_of(beyond),
        fixed_time_s=fixed_time,
        step_energy_j=step_energy,
        comm_energy_j=comm_energy,
        num_observations=len(seen),
    )


def _by_step(points: Sequence[tuple[int, float]]) -> tuple[Measured, Measured]:
    """What a step costs, and what comes on top of the steps, from (steps, cost) of each call.

    If no line can be seen, all of it counts for the steps, by the calls with the most of them,
    where the rest weighs least; the intervals allow for a large rest.
    """
    line = fit_line([steps for steps, _ in points], [cost for _, cost in points])
    if line is not None:
        rest = [max(0.0, cost - line.slope.value * steps) for steps, cost in points]
        return line.slope, median_of(rest)
    most = max(steps for steps, _ in points)
    longest = median_of([cost for steps, cost in points if steps == most])
    # Where other numbers of steps did not cost less, a step may cost next to nothing.
    unseen = UNSEEN_FIXED_PART if all(steps == most for steps, _ in points) else 1.0
    step = Measured(
        value=longest.value,
        low=min(longest.low, longest.value * (1 - unseen)),
        high=max(longest.high, longest.value * (1 + UNSEEN_FIXED_PART)),
    )
    return step.times(1 / most), Measured(value=0.0, low=0.0, high=longest.value * unseen)


class Ledger:
    """Hears of every observation, in order; the same rounds make the same ledger.

    samples : of each client, where that is known beforehand.
    """

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self._samples = dict(enumerate(samples))
        # The last ones for each number of local steps: lines need several, and old ones are stale.
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
        """Samples of every client; unknown ones are assumed to be the mean of the others."""
        mean = statistics.fmean(self._samples.values()) if self._samples else 1.0
        return np.array([self._samples.get(client, mean) for client in range(num_clients)])

    def steps_seen(self, client: int) -> int:
        """The number of different local steps with which a client has been observed."""
        return len(self._seen.get(client, ()))

    def fleet(self, num_clients: int, known: Fleet | None = None) -> Fleet | None:
        """What every client's device costs now; None while nothing is known.

        known : their costs as measured earlier. They count until a client has been observed with
            two numbers of local steps, which separate a step from the fixed cost of a round.
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
    """The costs now, by client, from what was observed since, in order.

    A single E cannot separate steps from fixed costs; the ratio to what was measured with
    two of them need not.
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
    columns = [map(exactly, fleet.per_device(getattr(fleet, name)).tolist()) for name in QUANTITIES]
    return {
        client: DeviceCosts(
            step_time_s=step_s,
            exchange_s=exchange_s,
            fixed_time_s=exactly(0.0),
            step_energy_j=step_j,
            comm_energy_j=comm_j,
            num_observations=0,
        )
        for client, (step_s, exchange_s, step_j, comm_j) in enumerate(zip(*columns, strict=True))
    }
