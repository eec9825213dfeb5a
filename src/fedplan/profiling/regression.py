"""From measured times and energies to what a step and an exchange cost, whatever outliers say."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.9
UNSEEN_FIXED_PART = 0.5  # how far off a cost may be, as a share, where one E alone was seen
FEWEST_FOR_INTERVAL = 5  # below this, what an interval is computed from is too little to trust it
MOST_SECONDS = 1e7  # of one round; nobody waits a third of a year for a client
MOST_JOULES = 1e10
MOST_STEPS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A value, and the interval that holds the truth 9 times in 10.

    >>> Measured(value=2.0, low=1.9, high=2.3).spread
    0.15
    """

    value: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The farther end of the interval from the value, as a share of it."""
        reach = max(self.high - self.value, self.value - self.low)
        return round(reach / self.value, 12) if self.value else (math.inf if reach else 0.0)

    def times(self, factor: float) -> Measured:
        """The same in other units."""
        return Measured(value=self.value * factor, low=self.low * factor, high=self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """y = fixed + slope * steps."""

    fixed: float
    slope: Measured


def fit_line(local_steps: Sequence[float], values: Sequence[float]) -> Line | None:
    """The line through most points (Theil-Sen), whatever a quarter of them say.

    None where there is no line to see: one number of steps alone, or values that do not rise.

    >>> line = fit_line([1, 1, 2, 2, 4, 4], [3.0, 3.0, 5.0, 5.0, 9.0, 70.0])
    >>> line.fixed, line.slope.value
    (1.0, 2.0)
    """
    from scipy.stats import theilslopes  # half a second, which `fedplan --help` must not cost

    if len(set(local_steps)) < 2:
        return None
    # Sums over ties depend on the order of their terms in the last digit; observations have none.
    points = np.array(sorted(zip(local_steps, values, strict=True)), dtype=np.float64)
    steps, seen = points.T
    with np.errstate(invalid="ignore"):  # where almost all are equal it finds no interval: NaN
        slope, _, low, high = (float(part) for part in theilslopes(seen, steps, CONFIDENCE))
    if not slope > 0:
        return None
    fixed = max(0.0, float(np.median(seen - slope * steps)))
    if not math.isfinite(low + high) or len(points) < FEWEST_FOR_INTERVAL:
        low, high = slope * (1 - UNSEEN_FIXED_PART), slope * (1 + UNSEEN_FIXED_PART)
    interval = Measured(value=slope, low=max(0.0, min(low, slope)), high=max(high, slope))
    return Line(fixed=fixed, slope=interval)


def median_of(values: Sequence[float]) -> Measured:
    """The median of values that are >= 0, with its interval (all of them, where they are few).

    >>> median_of([1.0, 2.0, 9.0])
    Measured(value=2.0, low=1.0, high=9.0)
    """
    from scipy.stats import quantile_test

    value, low, high = float(np.median(values)), min(values), max(values)
    if len(values) >= FEWEST_FOR_INTERVAL:
        interval = quantile_test(sorted(values)).confidence_interval(CONFIDENCE)
        low = float(interval.low) if math.isfinite(interval.low) else low
        high = float(interval.high) if math.isfinite(interval.high) else high
    return Measured(value=value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one client took for one round.

    train_seconds : by the client's clock, its local steps alone.
    round_trip_seconds : by the server's clock, from sending the model to having it back.
    joules : of the client's device over the whole round trip; None where nothing measured them.
    """

    client: int
    local_steps: int
    train_seconds: float
    round_trip_seconds: float
    joules: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCosts:
    """What a device costs: the quantities of a fleet, each with its interval.

    fixed_time_s : seconds of a round's training that no step accounts for; 0 where one number of
        local steps alone was seen. A fleet has no column for it: whoever predicts the length of
        rounds adds it to comm_time_s.
    step_energy_j, comm_energy_j : None where no energy was measured.
    """

    step_time_s: Measured
    comm_time_s: Measured
    fixed_time_s: float
    step_energy_j: Measured | None
    comm_energy_j: Measured | None
    num_observations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCosts:
    """Costs by client, in the order of their numbers; and what was not believed, and why."""

    devices: dict[int, DeviceCosts]
    rejected: tuple[str, ...]


def observed_costs(observations: Iterable[Observation]) -> ObservedCosts:
    """What each client's steps and exchanges cost, from the rounds it took part in.

    train_seconds = fixed + step_time_s * local_steps by robust regression, where a client was seen
    with at least two numbers of local steps, otherwise train_seconds / local_steps, which counts
    the fixed part in and says so by a wide interval; likewise where more steps did not take longer.
    comm_time_s is the median of what the round trip took beyond training. Energy follows the same
    line: its slope is a step's, the rest the exchange's; without one it is shared out by time.

    Values that are no numbers, negative, absurd or at odds with one another are left out, and
    named in `rejected`: what a client reports is not to be trusted. The order does not matter.

    >>> seen = [Observation(client=7, local_steps=e, train_seconds=1 + 0.5 * e,
    ...     round_trip_seconds=3 + 0.5 * e) for e in (10, 20, 10, 40, 20)]
    >>> costs = observed_costs(seen).devices[7]
    >>> costs.step_time_s.value, costs.comm_time_s.value, costs.fixed_time_s
    (0.5, 2.0, 1.0)
    """
    by_client: dict[int, list[Observation]] = defaultdict(list)
    rejected = []
    for observation in observations:
        if fault := _fault(observation):
            rejected.append(f"client {observation.client}: {fault}")
        else:
            by_client[observation.client].append(observation)
    devices = {client: _device_costs(by_client[client]) for client in sorted(by_client)}
    return ObservedCosts(devices=devices, rejected=tuple(sorted(rejected)))


def _fault(seen: Observation) -> str | None:
    """Why an observation cannot be, if so; NaN fails every comparison."""
    if not (1 <= seen.local_steps <= MOST_STEPS and float(seen.local_steps).is_integer()):
        return (
            f"`local_steps` must be an integer from 1 to {MOST_STEPS}, but got {seen.local_steps}."
        )
    if not 0 < seen.train_seconds <= MOST_SECONDS:
        return f"`0 < train_seconds <= {MOST_SECONDS:g}` must hold, but got {seen.train_seconds}."
    if not seen.train_seconds <= seen.round_trip_seconds <= MOST_SECONDS:
        return (
            f"`train_seconds <= round_trip_seconds <= {MOST_SECONDS:g}` must hold, but got "
            f"{seen.train_seconds} and {seen.round_trip_seconds}."
        )
    if seen.joules is not None and not 0 <= seen.joules <= MOST_JOULES:
        return f"`0 <= joules <= {MOST_JOULES:g}` must hold, but got {seen.joules}."
    return None


def _device_costs(seen: list[Observation]) -> DeviceCosts:
    line = fit_line([o.local_steps for o in seen], [o.train_seconds for o in seen])
    step_energy, comm_energy = _energies(seen)
    return DeviceCosts(
        step_time_s=line.slope if line else _ratio(seen, [o.train_seconds for o in seen]),
        comm_time_s=median_of([o.round_trip_seconds - o.train_seconds for o in seen]),
        fixed_time_s=line.fixed if line else 0.0,
        step_energy_j=step_energy,
        comm_energy_j=comm_energy,
        num_observations=len(seen),
    )


def _energies(seen: list[Observation]) -> tuple[Measured | None, Measured | None]:
    known = [(o, o.joules) for o in seen if o.joules is not None]
    if not known:
        return None, None
    line = fit_line([o.local_steps for o, _ in known], [joules for _, joules in known])
    if line:
        rest = [max(0.0, joules - line.slope.value * o.local_steps) for o, joules in known]
        return line.slope, median_of(rest)
    training = [joules * (o.train_seconds / o.round_trip_seconds) for o, joules in known]
    rest = [max(0.0, joules - part) for (_, joules), part in zip(known, training, strict=True)]
    return _ratio([o for o, _ in known], training), _wide(rest)


def _ratio(seen: list[Observation], costs: Sequence[float]) -> Measured:
    """Cost a step where no line can be seen: with the most steps, where the rest weighs least."""
    most = max(o.local_steps for o in seen)
    pairs = zip(seen, costs, strict=True)
    measured = _wide([cost / most for o, cost in pairs if o.local_steps == most])
    if all(o.local_steps == most for o in seen):
        return measured
    # More steps did not cost more: a step may cost next to nothing.
    return Measured(value=measured.value, low=0.0, high=measured.high)


def _wide(values: Sequence[float]) -> Measured:
    """The median, with at least the interval that an unseen fixed part asks for."""
    middle = median_of(values)
    return Measured(
        value=middle.value,
        low=min(middle.low, middle.value * (1 - UNSEEN_FIXED_PART)),
        high=max(middle.high, middle.value * (1 + UNSEEN_FIXED_PART)),
    )
