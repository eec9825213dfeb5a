"""Rankings kept: a fleet that is asked many questions is ranked once at each E.

Who is slowest depends on the devices alone, not on the bound, the prices or the limits. Whoever
plans for one fleet again and again, as the explorer does, gives it a memory; every function of the
theory then answers the same, sooner.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np

from fedplan.theory.fleet import Fleet, FloatArray, IntArray
from fedplan.theory.stragglers import SlowestClient

_MOST_COLUMNS = 4096  # round times kept, each of some K at one E


class RankingMemory:
    """The rankings of one fleet, the least recently used forgotten first; for any threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._rankings: OrderedDict[float, SlowestClient] = OrderedDict()
        self._columns: OrderedDict[tuple[float, bytes], FloatArray] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[RankingMemory], tuple[int]]:
        """In another process a memory begins empty: ranking is quicker than sending."""
        return RankingMemory, (self._max_bytes,)

    @property
    def num_bytes(self) -> int:
        """Bytes of the rankings held."""
        return self._bytes

    def find(self, local_steps: float, min_clients_per_round: int) -> SlowestClient | None:
        """The ranking at this E, if it is known for K as small as this."""
        with self._lock:
            known = self._rankings.get(local_steps)
            if known is None or known.min_clients_per_round > min_clients_per_round:
                return None
            self._rankings.move_to_end(local_steps)
            return known

    def keep(self, slowest: SlowestClient) -> None:
        """Remember a ranking, and forget others where there is no room for all."""
        with self._lock:
            old = self._rankings.pop(slowest.local_steps, None)
            self._bytes += slowest.num_bytes - (old.num_bytes if old else 0)
            self._rankings[slowest.local_steps] = slowest
            while self._bytes > self._max_bytes and self._rankings:
                _, forgotten = self._rankings.popitem(last=False)
                self._bytes -= forgotten.num_bytes

    def find_column(self, local_steps: float, clients_per_round: IntArray) -> FloatArray | None:
        """The seconds of a round at this E for exactly these K, if they were asked for before."""
        with self._lock:
            key = (local_steps, clients_per_round.tobytes())
            known = self._columns.get(key)
            if known is not None:
                self._columns.move_to_end(key)
            return known

    def keep_column(
        self, local_steps: float, clients_per_round: IntArray, seconds: FloatArray
    ) -> None:
        """Remember the seconds of a round at this E for these K."""
        with self._lock:
            self._columns[local_steps, clients_per_round.tobytes()] = seconds
            if len(self._columns) > _MOST_COLUMNS:
                self._columns.popitem(last=False)


def remembering(fleet: Fleet, max_bytes: int = 1 << 28) -> Fleet:
    """The same fleet with a memory of this size for its rankings.

    >>> fleet = remembering(Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0]))
    >>> rank(fleet, 1) is rank(fleet, 1)
    True
    """
    copy = Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s,
        step_energy_j=fleet.step_energy_j,
        comm_energy_j=fleet.comm_energy_j,
        count=fleet.count,
        device=fleet.device,
    )
    object.__setattr__(copy, "memory", RankingMemory(max_bytes))
    return copy


def rank(fleet: Fleet, local_steps: float, min_clients_per_round: int = 1) -> SlowestClient:
    """Whoever is slowest at this E, for K from the smallest one on; remembered where it can be.

    >>> fleet = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=[0.0, 5.0, 1.0])
    >>> rank(fleet, 1).round_time_s([3]).tolist()
    [7.0]
    """
    memory = fleet.memory
    known = None if memory is None else memory.find(local_steps, min_clients_per_round)
    if known is not None:
        return known
    slowest = SlowestClient(fleet, local_steps, min_clients_per_round)
    if memory is not None:
        memory.keep(slowest)
    return slowest


def round_times_s(fleet: Fleet, clients_per_round: IntArray, local_steps: IntArray) -> FloatArray:
    """Expected seconds of a round, exact stragglers; one row a K, one column an E."""
    lowest, columns = int(clients_per_round.min()), []
    for e in local_steps.tolist():
        memory = fleet.memory
        column = None if memory is None else memory.find_column(e, clients_per_round)
        if column is None:
            column = rank(fleet, e, lowest).round_time_s(clients_per_round)
            if memory is not None:
                memory.keep_column(e, clients_per_round, column)
        columns.append(column)
    return np.stack(columns, axis=1)
