"""Grids over (K, E): the cost surface, and the lattices of frontier and regret."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedplan.convergence.bound import Bound, rounds_for_gap
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.objective import Objective
from fedplan.errors import InputError
from fedplan.frames import make_frame
from fedplan.participation.rankings import round_times_s
from fedplan.participation.uniform_sampling import round_energy_j

_MAX_PAIRS = 1e6  # (K, E) pairs of a complete grid, whatever the fleet
_MAX_STEPS = 4096  # values of E of a complete grid: past them one step more changes little
_MAX_WORK = 3e8  # devices x pairs
STEPS_PER_DECADE = 13  # of a ladder of E for a large fleet, which is ranked at each of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surface:
    """Predictions for every pair of `clients_per_round` (rows) and `local_steps` (columns)."""

    clients_per_round: IntArray
    local_steps: IntArray
    expected_rounds: FloatArray
    time_s: FloatArray
    energy_j: FloatArray
    cost: FloatArray

    def to_frame(self) -> Any:
        """A data frame with one row per (K, E): of polars if installed, else of pandas."""
        clients, steps = np.meshgrid(self.clients_per_round, self.local_steps, indexing="ij")
        totals = ("expected_rounds", "time_s", "energy_j", "cost")
        columns = {name: getattr(self, name).ravel() for name in totals}
        return make_frame(
            {"clients_per_round": clients.ravel(), "local_steps": steps.ravel()} | columns
        )


def lattice(low: int, high: int, size: int) -> IntArray:
    """All integers from low to high if at most `size`, else about `size` of them in ratio.

    >>> lattice(1, 5, 10).tolist(), lattice(1, 1000, 4).tolist()
    ([1, 2, 3, 4, 5], [1, 10, 100, 1000])
    """
    if high - low < size:
        return np.arange(low, high + 1)
    return np.unique(np.rint(np.geomspace(low, high, size)).astype(np.int64))


def ladder(low: int, high: int, per_decade: float) -> IntArray:
    """Integers from low to high in ratio; the same for other ends, so that caches have them.

    >>> ladder(3, 60, 4).tolist()
    [3, 6, 10, 18, 32, 56, 60]
    """
    powers = np.arange(int(np.log10(high) * per_decade) + 1) / per_decade
    rungs = np.rint(10.0**powers).astype(np.int64)
    inside = rungs[(low < rungs) & (rungs < high)]
    return np.unique(np.concatenate([[low], inside, [high]]))


def between_neighbours(points: IntArray, position: int, size: int) -> IntArray:
    """A finer lattice around a point of this one; the point stays in it."""
    low = int(points[max(position - 1, 0)])
    high = int(points[min(position + 1, points.size - 1)])
    return np.union1d(lattice(low, high, size), points[position])


def fits_whole(fleet: Fleet, clients_range: tuple[int, int], steps_range: tuple[int, int]) -> bool:
    """Whether every (K, E) of these ranges can be looked at in about a second."""
    steps = steps_range[1] - steps_range[0] + 1
    pairs = float(clients_range[1] - clients_range[0] + 1) * steps
    affordable = pairs <= _MAX_PAIRS and pairs * fleet.count.size <= _MAX_WORK
    return affordable and steps <= _MAX_STEPS


def affordable_lattice(entries: int) -> int:
    """Points per axis of a grid over (K, E) for a fleet of so many entries: 64, at a million 20.

    Each E ranks the whole fleet and each small K weighs most of it.
    """
    return int(np.clip(2e7 / entries, 8, 64))


def cost_surface(
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    clients_per_round: ArrayLike,
    local_steps: ArrayLike,
    *,
    target_gap: float = 1.0,
    seconds: FloatArray | None = None,
) -> Surface:
    """Rounds, seconds, joules and cost over a grid of (K, E).

    seconds : those of a round at each (K, E), if already known.

    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0)
    >>> surface = cost_surface(fleet, Bound(a0=100.0, b0=1.0), Objective.weighted(0), [1, 2], [10])
    >>> surface.time_s.round(1).tolist()
    [[75.0], [60.0]]
    """
    ks = np.atleast_1d(np.asarray(clients_per_round, dtype=np.int64))
    es = np.atleast_1d(np.asarray(local_steps, dtype=np.int64))
    if ks.min() < 1 or ks.max() > len(fleet) or es.min() < 1:
        raise InputError(
            "`1 <= clients_per_round <= num_clients` and `local_steps >= 1` must hold, but got "
            f"clients_per_round={ks.min()}..{ks.max()}, num_clients={len(fleet)}, "
            f"local_steps={es.min()}..{es.max()}."
        )
    if seconds is None:
        seconds = round_times_s(fleet, ks, es)
    k, e = ks[:, np.newaxis], es[np.newaxis, :]
    rounds = rounds_for_gap(bound, k, e, len(fleet), target_gap)
    joules = round_energy_j(fleet, k, e)
    return Surface(
        clients_per_round=ks,
        local_steps=es,
        expected_rounds=rounds,
        time_s=seconds * rounds,
        energy_j=joules * rounds,
        cost=objective.of_round(seconds, joules, k) * rounds,
    )
