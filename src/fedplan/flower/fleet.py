"""From what clients did to what their devices cost: seconds and joules of steps and the rest."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from fedplan.errors import FedplanError
from fedplan.records import Observation
from fedplan.theory.fleet import Fleet

SHORTEST_S = 1e-9  # of a step: a fleet has no device that takes no time at all
RECENT, FEWEST = 8, 3  # observations a client's drift is judged by
_TO_SD = 1.4826  # from a median deviation to the standard deviation of a normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """fixed + slope * steps, through most points; `spread` is the deviation of the others."""

    fixed: float
    slope: float
    spread: float

    def at(self, steps: int) -> float:
        """The line's value."""
        return self.fixed + self.slope * steps


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCosts:
    """What a device takes: to train, to exchange the model (with its spread), and joules."""

    train_s: Line
    exchange_s: float
    exchange_spread_s: float
    train_j: Line

    def drifted(self, recent: Sequence[Observation]) -> DeviceCosts:
        """The costs now, by how much longer the same takes than it did.

        Training has one E, which alone does not tell steps from what is fixed; the ratio to what
        was measured with two needs not.
        """
        if len(recent) < FEWEST:
            return self
        steps = _ratio([(_train_s(one), self.train_s.at(one.local_steps)) for one in recent])
        exchange = _ratio([(_exchange_s(one), self.exchange_s) for one in recent])
        return DeviceCosts(
            train_s=_times(self.train_s, steps),
            exchange_s=self.exchange_s * exchange,
            exchange_spread_s=self.exchange_spread_s * exchange,
            train_j=self.train_j,
        )


def device_costs(observations: Iterable[Observation]) -> dict[int, DeviceCosts]:
    """What each client's device costs, by client; of failed answers nothing is learnt.

    >>> seen = [Observation(client=3, local_steps=e, train_seconds=1.0 + 0.5 * e,
    ...     round_trip_seconds=3.0 + 0.5 * e) for e in (2, 8)]
    >>> costs = device_costs(seen)[3]
    >>> costs.train_s.slope, costs.train_s.fixed, costs.exchange_s
    (0.5, 1.0, 2.0)
    """
    by_client: dict[int, list[Observation]] = {}
    for one in observations:
        if _is_measured(one):
            by_client.setdefault(one.client, []).append(one)
    return {client: _costs(seen) for client, seen in sorted(by_client.items())}


def recent_by_client(observations: Iterable[Observation]) -> dict[int, list[Observation]]:
    """The last few observations of each client, in the order given."""
    by_client: dict[int, list[Observation]] = {}
    for one in observations:
        if _is_measured(one):
            by_client.setdefault(one.client, []).append(one)
    return {client: seen[-RECENT:] for client, seen in by_client.items()}


def fleet_of(costs: Mapping[int, DeviceCosts], names: Sequence[str]) -> Fleet:
    """The fleet of these clients; one that never answered is taken for a median device.

    What of training no step accounts for counts as exchange: both are paid once a round.
    """
    if not costs:
        raise FedplanError(
            "no client has answered well enough to know what its device costs. The problems stand "
            "in the log, and in the table observations of the store."
        )
    rows = {
        client: (
            max(one.train_s.slope, SHORTEST_S),
            max(one.exchange_s + one.train_s.fixed, 0.0),
            max(one.train_j.slope, 0.0),
            max(one.train_j.fixed, 0.0),
        )
        for client, one in costs.items()
    }
    typical = tuple(statistics.median(column) for column in zip(*rows.values(), strict=True))
    columns = zip(*(rows.get(client, typical) for client in range(len(names))), strict=True)
    step_s, comm_s, step_j, comm_j = (list(column) for column in columns)
    return Fleet(
        step_time_s=step_s,
        comm_time_s=comm_s,
        step_energy_j=step_j,
        comm_energy_j=comm_j,
        device=names,
    )


def _costs(seen: list[Observation]) -> DeviceCosts:
    exchange = [_exchange_s(one) for one in seen]
    middle = statistics.median(exchange)
    joules = [(one.local_steps, one.joules) for one in seen if one.joules is not None]
    return DeviceCosts(
        train_s=_line([(one.local_steps, _train_s(one)) for one in seen]),
        exchange_s=middle,
        exchange_spread_s=_TO_SD * statistics.median(abs(one - middle) for one in exchange),
        train_j=_line(joules) if joules else Line(fixed=0.0, slope=0.0, spread=0.0),
    )


def _line(points: Sequence[tuple[int, float]]) -> Line:
    """Theil and Sen's line: the median slope of all pairs, which a quarter of outliers leave be."""
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2]
    slope = statistics.median(slopes) if slopes else 0.0
    if slope <= 0:  # one number of steps alone, or too short to tell: all of it is steps
        slope = statistics.median(value / steps for steps, value in points)
    fixed = max(0.0, statistics.median(value - slope * steps for steps, value in points))
    rest = statistics.median(abs(value - fixed - slope * steps) for steps, value in points)
    return Line(fixed=fixed, slope=slope, spread=_TO_SD * rest)


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(new / old if old > 0 else 1.0 for new, old in pairs)


def _times(line: Line, factor: float) -> Line:
    return Line(fixed=line.fixed * factor, slope=line.slope * factor, spread=line.spread * factor)


def _is_measured(one: Observation) -> bool:
    return not one.problem and one.train_seconds is not None and one.round_trip_seconds is not None


def _train_s(one: Observation) -> float:
    return one.train_seconds or 0.0


def _exchange_s(one: Observation) -> float:
    return max(0.0, (one.round_trip_seconds or 0.0) - _train_s(one))
