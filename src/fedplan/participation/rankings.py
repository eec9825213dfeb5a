"""Cached rankings: a fleet is ranked only once for each E.

Who is slowest depends on the devices alone, not on the bound, the prices or the limits, and how
likely each rank is to be the slowest depends on the number of devices alone. So a plan gives its
fleet a cache, and a program that plans for one fleet repeatedly, such as the explorer, keeps one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from copy import copy
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.participation.slowest import SlowestClient, chances_of_ranks

_SHARE_OF_CHANCES = 0.25  # of a cache's bytes; the rest is for rankings
_MOST_LINES_BYTES = 1 << 24  # of all E together
_FEW = 512  # devices whose rounds are worked out for every K at once

T = TypeVar("T")


class Cache(Generic[T]):
    """Values by key within some bytes, thread-safe; the least recently used is dropped first."""

    def __init__(self, max_bytes: float, size: Callable[[T], int]) -> None:
        self._max_bytes, self._size, self.num_bytes = max_bytes, size, 0
        self._values: OrderedDict[object, T] = OrderedDict()
        self._lock = Lock()

    def find(self, key: object) -> T | None:
        """What is kept under a key."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: object, value: T) -> T:
        """Keep a value, and return it."""
        with self._lock:
            old = self._values.pop(key, None)
            self.num_bytes += self._size(value) - (0 if old is None else self._size(old))
            self._values[key] = value
            while self.num_bytes > self._max_bytes and self._values:
                self.num_bytes -= self._size(self._values.popitem(last=False)[1])
            return value


class RankingCache:
    """The rankings of one fleet and what was read off them."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        rankings = (1 - _SHARE_OF_CHANCES) * max_bytes
        self._rankings = Cache[SlowestClient](rankings, lambda slowest: slowest.num_bytes)
        self._chances = Cache[FloatArray](max_bytes - rankings, lambda chances: chances.nbytes)
        # By E: rising K, and the slowest client's seconds of a step and of communication.
        self._lines = Cache[FloatArray](_MOST_LINES_BYTES, lambda lines: lines.nbytes)
        self._all_chances: FloatArray | None = None  # for few devices; rank x K

    def __reduce__(self) -> tuple[type[RankingCache], tuple[int]]:
        """In another process a cache begins empty: ranking is quicker than sending."""
        return RankingCache, (self._max_bytes,)

    @property
    def num_bytes(self) -> int:
        """Bytes of the rankings held."""
        return self._rankings.num_bytes + self._chances.num_bytes

    def rank(self, fleet: Fleet, local_steps: float, min_clients_per_round: int) -> SlowestClient:
        """The ranking at this E, for K from the smallest one on."""
        known = self._rankings.find(local_steps)
        if known is not None and known.min_clients_per_round <= min_clients_per_round:
            return known
        slowest = SlowestClient(
            fleet, local_steps, min_clients_per_round, partial(_chances, self._chances)
        )
        return self._rankings.keep(local_steps, slowest)

    def lines(self, fleet: Fleet, local_steps: float, ks: IntArray) -> FloatArray:
        """Seconds of a step and of communication of the slowest client at this E; 2 x K."""
        known = self._lines.find(local_steps)
        if known is None:
            # For few devices, every K is computed as quickly as one.
            few = len(fleet) <= _FEW and fleet.is_ungrouped
            known = self._every_line(fleet, local_steps) if few else np.empty((3, 0))
            self._lines.keep(local_steps, known)
        if known.shape[1] == len(fleet):
            return known[1:, ks - 1]
        places = np.searchsorted(known[0], ks)
        if not known.size or (known[0].take(places, mode="clip") != ks).any():
            new = np.setdiff1d(ks, known[0])
            read = self.rank(fleet, local_steps, int(new[0])).step_and_comm_s(new)
            known = np.concatenate([known, [new, *read]], axis=1)
            known = self._lines.keep(local_steps, known[:, np.argsort(known[0])])
            places = np.searchsorted(known[0], ks)
        return known[1:, places]

    def _every_line(self, fleet: Fleet, local_steps: float) -> FloatArray:
        ks = np.arange(1, len(fleet) + 1)
        if self._all_chances is None:
            every = np.zeros((ks.size, ks.size))
            for column, k in zip(every.T, ks.tolist(), strict=True):
                chances = chances_of_ranks(len(fleet), k)
                column[: chances.size] = chances
            self._all_chances = every
        return np.vstack([ks, self.rank(fleet, local_steps, 1).weighed(self._all_chances)])


def _chances(kept: Cache[FloatArray], num_clients: int, clients_per_round: int) -> FloatArray:
    """Cached `chances_of_ranks`; no method, or rankings would hold the cache they are in."""
    known = kept.find(clients_per_round)
    if known is not None:
        return known
    return kept.keep(clients_per_round, chances_of_ranks(num_clients, clients_per_round))


def with_cache(fleet: Fleet, max_bytes: int = 1 << 27) -> Fleet:
    """The same fleet with a cache of this size for its rankings, unless it has one.

    >>> fleet = with_cache(Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0]))
    >>> rank(fleet, 1) is rank(fleet, 1)
    True
    """
    if fleet.cache is not None:
        return fleet
    twin = copy(fleet)
    object.__setattr__(twin, "cache", RankingCache(max_bytes))
    return twin


def rank(fleet: Fleet, local_steps: float, min_clients_per_round: int = 1) -> SlowestClient:
    """The slowest client at this E, for K from the smallest one on; from the cache if there is one.

    >>> fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0])
    >>> rank(fleet, 1).round_time_s([3]).tolist()
    [7.0]
    """
    if fleet.cache is None:
        return SlowestClient(fleet, local_steps, min_clients_per_round)
    cache: RankingCache = fleet.cache
    return cache.rank(fleet, local_steps, min_clients_per_round)


def step_and_comm_s(fleet: Fleet, clients_per_round: IntArray, local_steps: float) -> FloatArray:
    """Expected step and communication seconds of the slowest at one E; 2 x K.

    >>> fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0])
    >>> step_and_comm_s(fleet, np.array([3]), 1).tolist()
    [[2.0], [5.0]]
    """
    if fleet.cache is None:
        slowest = SlowestClient(fleet, local_steps, int(clients_per_round.min()))
        return np.stack(slowest.step_and_comm_s(clients_per_round))
    cache: RankingCache = fleet.cache
    return cache.lines(fleet, local_steps, clients_per_round)


def round_times_s(fleet: Fleet, clients_per_round: IntArray, local_steps: IntArray) -> FloatArray:
    """Expected seconds of a round, exact stragglers; one row per K, one column per E."""
    fleet = with_cache(fleet)  # the chances of ranks are the same at every E
    columns = []
    for e in local_steps.tolist():
        step_s, comm_s = step_and_comm_s(fleet, clients_per_round, e)
        columns.append(step_s * e + comm_s)
    return np.stack(columns, axis=1)
