"""Grouping: which devices of similar speed train together, and how often.

Devices are sorted by the time of their round and cut into contiguous groups. With p_j the data of a
group and c_j the cost of its round, rounds drawn in proportion to data cost sum_j p_j c_j, and the
cuts minimise that, by dynamic programming over the places where a cut may be. The cost of a group
is its mass times a sum of terms that only grow with the group, so it has the quadrangle inequality:
cuts move monotonically, and where there are too many places they are found coarsely first and then
between their neighbours.

Groups then train more often the cheaper they are, within bounds on how much a rare update counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedplan.core.fleet import FloatArray, IntArray, rising_order
from fedplan.core.plan import GroupCost
from fedplan.core.problem import Problem
from fedplan.core.setting import RoundCost
from fedplan.participation.turns import Turns

_PLACES = 512  # devices up to which a cut may be after every one, so that the result is exact
_COARSE = 256  # places of a larger fleet, where cuts are looked for first
_FINER = 8  # then cuts move by up to this many steps, which are this much finer each time
RAREST = 4.0  # a group's update counts at most so many times what its data would
LEAST_DATA = 0.5  # a group holds at least this part of an equal share of the data
LONGEST_CYCLE = 4  # rounds of a cycle per group, about and at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """Groups of devices, fastest first, and how often each trains in a cycle.

    ends : the positions of the cuts among the devices by rising time, both ends included.
    """

    law: ClassVar[str] = Turns.law
    problem: Problem
    local_steps: float
    ends: IntArray
    visits: tuple[int, ...]
    ranked: Ranked

    @cached_property
    def rows(self) -> tuple[GroupCost, ...]:
        """What a round of each group takes."""
        seconds, joules = self.ranked.seconds_and_joules(self.ends)
        columns = {
            "clients": np.diff(self.ends),
            "data_share": self.ranked.shares(self.ends),
            "frequency": self._frequencies,
            "time_s": seconds,
            "energy_j": joules,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        return tuple(GroupCost.of(self.problem.objective, **row) for row in named)

    @cached_property
    def round_cost(self) -> RoundCost:
        """What a round takes on average over a cycle."""
        seconds, joules = self.ranked.seconds_and_joules(self.ends)
        often = self._frequencies
        return RoundCost(
            time_s=float(often @ seconds),
            energy_j=float(often @ joules),
            clients=float(often @ np.diff(self.ends)),
        )

    def line(self) -> tuple[float, float]:
        """The cost of a local step and of a round, with the devices that are slowest at this E."""
        often, objective = self._frequencies, self.problem.objective
        (step_s, comm_s), (step_j, comm_j) = self.ranked.parts(self.ends)
        per_step = objective.of_round(step_s, step_j, 0.0)
        per_round = objective.of_round(comm_s, comm_j, np.diff(self.ends))
        return float(often @ per_step), float(often @ per_round)

    def whole(self) -> Turns:
        """The law, with every client by its number."""
        clients = self.ranked.clients()
        groups = tuple(
            tuple(np.sort(clients[start:end]).tolist())
            for start, end in zip(self.ends[:-1], self.ends[1:], strict=True)
        )
        return Turns(groups=groups, visits=self.visits)

    @property
    def _frequencies(self) -> FloatArray:
        return np.array(self.visits) / sum(self.visits)


class Grouper:
    """The devices ranked at one E, to be cut into any number of groups."""

    def __init__(self, problem: Problem, local_steps: float) -> None:
        self._problem, self._local_steps = problem, local_steps
        self._ranked = Ranked(problem, local_steps)
        self._most = problem.limits.max_clients_per_round or self._ranked.num_devices
        self._fewest = min(problem.limits.min_clients_per_round or 1, self._ranked.num_devices)
        self._places = self._ranked.places()
        start, end = self._places, self._places[:, np.newaxis]
        self._costs = self._ranked.cost_between(start, end)
        self._spans = end - start, self._ranked.mass(end) - self._ranked.mass(start)

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest number of groups that limits on clients per round allow."""
        devices = self._ranked.num_devices
        return -(-devices // self._most), devices // self._fewest

    def group(self, num_groups: int) -> Grouping | None:
        """The cheapest cut into at most this many groups, each with half an equal share or more.

        If a limit on clients per round allows no such cut, groups may hold less.
        """
        ends = self._cut(num_groups, LEAST_DATA / num_groups)
        if ends is None:
            ends = self._cut(num_groups, least=0.0)
        if ends is None:
            return None
        return Grouping(
            problem=self._problem,
            local_steps=self._local_steps,
            ends=ends,
            visits=self._visits(ends),
            ranked=self._ranked,
        )

    def _visits(self, ends: IntArray) -> tuple[int, ...]:
        seconds, joules = self._ranked.seconds_and_joules(ends)
        costs = self._problem.objective.of_round(seconds, joules, np.diff(ends))
        return choose_visits(self._ranked.shares(ends), costs)

    def _cut(self, num_groups: int, least: float) -> IntArray | None:
        ends = self._best(num_groups, least)
        if ends is None or self._places.size > self._ranked.num_devices:
            return ends
        spacing = int(np.diff(self._places).max())
        while spacing > 1:
            spacing = -(-spacing // _FINER)
            for first in (1, 2, 1):  # every other cut at a time: neighbours interact
                ends = self._moved(ends, first, spacing, least)
        return ends

    def _moved(self, ends: IntArray, first: int, spacing: int, least: float) -> IntArray:
        """Every other cut, moved to where its two groups cost least."""
        left, cut, right = ends[first - 1 : -2 : 2], ends[first:-1:2], ends[first + 1 :: 2]
        tried = cut + spacing * np.arange(-_FINER, _FINER + 1)[:, np.newaxis]
        cost = np.zeros(tried.shape)
        for start, end in ((left, tried), (tried, right)):
            start, end = np.broadcast_arrays(start, end)
            inside = np.clip(start, 0, self._ranked.num_devices), np.clip(end, 1, None)
            inside = inside[0], np.minimum(inside[1], self._ranked.num_devices)
            mass = self._ranked.mass(inside[1]) - self._ranked.mass(inside[0])
            fits = self._fits(end - start, mass, least)
            cost += np.where(fits, self._ranked.cost_between(*inside), np.inf)
        best = np.argmin(cost, axis=0)
        found = ends.copy()
        found[first:-1:2] = tried[best, np.arange(cut.size)]
        return found

    def _fits(self, size: IntArray, mass: FloatArray, least: float) -> NDArray[np.bool_]:
        allowed = (size >= self._fewest) & (size <= self._most)
        return np.asarray(allowed & (mass >= least * (1 - 1e-12)))

    def _best(self, num_groups: int, least: float) -> IntArray | None:
        """The cheapest of the places for cuts, both ends included; None if none is allowed."""
        places = self._places
        costs = np.where(self._fits(*self._spans, least), self._costs, np.inf)  # to x from
        best = costs[:, 0]
        total, used = float(best[-1]), 1
        cuts: list[IntArray] = []
        every = np.arange(places.size)
        for number in range(2, num_groups + 1):
            through = costs + best
            cuts.append(np.argmin(through, axis=1))
            best = through[every, cuts[-1]]
            if best[-1] < total * (1 - 1e-12) or not np.isfinite(total):
                total, used = float(best[-1]), number
        if not np.isfinite(total):
            return None
        ends = [places.size - 1]
        for earlier in reversed(cuts[: used - 1]):
            ends.append(int(earlier[ends[-1]]))
        return places[[0, *ends[::-1]]]


class Ranked:
    """Devices with data by rising time, with the data and the cost of any range of them."""

    def __init__(self, problem: Problem, local_steps: float) -> None:
        fleet, self._objective = problem.fleet, problem.objective
        self._fleet = fleet
        times = fleet.round_times_s(local_steps)
        order = rising_order(times)
        shares = problem.data_shares
        if not shares.all():
            order = order[shares[order] > 0]
        counts = fleet.count[order]
        self.entries, self.reached = order, np.cumsum(counts)
        self.num_devices = int(self.reached[-1])
        self._times, self._shares = times[order], shares[order]
        self._joules = fleet.round_energy_j(local_steps)[order]
        self._before = self.reached - counts
        self._mass = np.concatenate([[0.0], np.cumsum(self._shares * counts)])
        self._energy = np.concatenate([[0.0], np.cumsum(self._joules * counts)])

    def places(self) -> IntArray:
        """Where cuts may be: after every device, or at equal steps of data and of devices."""
        if self.num_devices <= _PLACES:
            return np.arange(self.num_devices + 1)
        by_mass = np.searchsorted(self._mass, np.linspace(0, self._mass[-1], _COARSE // 2))
        by_count = np.linspace(0, self.num_devices, _COARSE // 2).astype(np.int64)
        edges = np.concatenate([[0], self.reached])
        return np.unique(np.concatenate([edges[by_mass.clip(0, edges.size - 1)], by_count]))

    def mass(self, places: IntArray) -> FloatArray:
        """Data of the devices before each place."""
        return self._up_to(places, self._mass, self._shares)

    def cost_between(self, start: IntArray, end: IntArray) -> FloatArray:
        """Data times cost of the groups between these places; arrays broadcast."""
        slowest = self._times[self._entry(np.maximum(end - 1, 0))]
        joules = self._up_to(end, self._energy, self._joules)
        used = joules - self._up_to(start, self._energy, self._joules)
        cost = self._objective.of_round(slowest, used, end - start)
        return np.asarray((self.mass(end) - self.mass(start)) * cost)

    def shares(self, ends: IntArray) -> FloatArray:
        """Data of each group between these cuts."""
        return np.diff(self.mass(ends))

    def seconds_and_joules(self, ends: IntArray) -> tuple[FloatArray, FloatArray]:
        """What a round of each group between these cuts takes."""
        joules = np.diff(self._up_to(ends, self._energy, self._joules))
        return self._times[self._entry(ends[1:] - 1)], joules

    def parts(
        self, ends: IntArray
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Seconds of each group's slowest device, and joules of all: of a step, of an exchange."""
        fleet, slowest = self._fleet, self.entries[self._entry(ends[1:] - 1)]
        counts = np.diff(self.reached, prepend=0)
        joules = []
        for column in (fleet.step_energy_j, fleet.comm_energy_j):
            each = column[self.entries]
            sums = np.concatenate([[0.0], np.cumsum(each * counts)])
            joules.append(np.diff(self._up_to(ends, sums, each)))
        return (fleet.step_time_s[slowest], fleet.comm_time_s[slowest]), (joules[0], joules[1])

    def clients(self) -> IntArray:
        """The numbers of all devices with data, by rising time."""
        starts = np.cumsum(self._fleet.count) - self._fleet.count
        first = np.repeat(starts[self.entries] - self._before, self.reached - self._before)
        return first + np.arange(self.num_devices)

    def _entry(self, places: IntArray) -> IntArray:
        return np.asarray(np.searchsorted(self.reached, places, "right"))

    def _up_to(self, places: IntArray, sums: FloatArray, each: FloatArray) -> FloatArray:
        entry = np.minimum(self._entry(places), each.size - 1)
        return np.asarray(sums[entry] + (places - self._before[entry]) * each[entry])


def choose_visits(shares: FloatArray, costs: FloatArray) -> tuple[int, ...]:
    """How often each group trains in a cycle: the cheaper the more often, within bounds.

    P_j ~ p_j / c_j minimises the cost of the same progress if rare updates achieve what they
    weigh. They achieve less where steps are long, so a group counts at most `RAREST` times its
    data. Of the cycles of up to four rounds per group whose whole visits come near these
    frequencies, the cheapest is taken, and of equals the shortest.
    """
    wanted = shares / np.where(costs > 0, costs, 1.0)
    wanted *= (shares / wanted).min()
    wanted = np.clip(wanted, shares / RAREST, shares)
    wanted /= wanted.sum()
    cycles = np.arange(shares.size, int(LONGEST_CYCLE * shares.size) + 1)
    visits = np.maximum(np.rint(np.multiply.outer(cycles, wanted)), 1.0)
    lengths = visits.sum(axis=1)
    near = (visits >= 0.75 * np.multiply.outer(lengths, wanted)).all(axis=1)
    prices = np.where(near, visits @ costs / lengths, np.inf)
    if not near.any():
        return (1,) * shares.size
    best = int(np.argmax(prices <= prices.min() * (1 + 1e-2)))
    return tuple(visits[best].astype(int).tolist())
