"""Sweep: every (K, E) of a grid trained to the target, and what each has cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fedplan.errors import InputError
from fedplan.records import RunRecord, Stop
from fedplan.simulation import Job
from fedplan.studies.archive import Archive, Progress
from fedplan.theory.cost import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to; `rounds`, seconds and joules are infinite where it did not arrive."""

    clients_per_round: int
    local_steps: int
    seed: int
    rounds: float
    time_s: float
    energy_j: float

    @classmethod
    def of(cls, run: RunRecord) -> Outcome:
        """The outcome of a run with a target."""
        reached = run.status == "target"
        return cls(
            clients_per_round=run.clients_per_round,
            local_steps=run.local_steps,
            seed=run.seed,
            rounds=run.num_rounds if reached else math.inf,
            time_s=run.time_s if reached else math.inf,
            energy_j=run.energy_j if reached else math.inf,
        )

    def cost(self, objective: Objective) -> float:
        """What the run was worth."""
        if math.isinf(self.rounds):
            return math.inf
        taken_part = self.clients_per_round * self.rounds
        return float(objective.of_round(self.time_s, self.energy_j, taken_part))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCost:
    """Mean cost at one (K, E) over the seeds, and the standard error of that mean."""

    clients_per_round: int
    local_steps: int
    cost: float
    error: float

    @property
    def setting(self) -> tuple[int, int]:
        """(K, E)."""
        return self.clients_per_round, self.local_steps


def grid_jobs(
    clients_per_round: Iterable[int], local_steps: Iterable[int], seeds: Iterable[int]
) -> list[Job]:
    """One job a (K, E, seed), seeds outermost: a sweep cut short has whole grids of some seeds."""
    steps = sorted(set(local_steps), reverse=True)
    clients = sorted(set(clients_per_round))
    return [
        Job(clients_per_round=k, local_steps=e, seed=seed)
        for seed in seeds
        for e in steps
        for k in clients
    ]


def sweep(
    archive: Archive, jobs: Sequence[Job], stop: Stop, *, progress: Progress | None = None
) -> list[Outcome]:
    """Train every job to the target; what the archive has is not trained again."""
    if stop.target_loss is None:
        raise InputError("a sweep compares what a target costs, and needs one. Set target-loss.")
    return [Outcome.of(run) for run in archive.run_all(jobs, stop, progress=progress)]


def cell_costs(outcomes: Iterable[Outcome], objective: Objective) -> list[CellCost]:
    """Every (K, E) of the outcomes, cheapest first; one that some seed did not arrive at is last.

    >>> runs = [Outcome(clients_per_round=1, local_steps=5, seed=s, rounds=9, time_s=s, energy_j=0)
    ...     for s in (2, 4)]
    >>> cell_costs(runs, Objective.weighted(0.0))
    [CellCost(clients_per_round=1, local_steps=5, cost=3.0, error=1.0)]
    """
    cells: dict[tuple[int, int], list[float]] = {}
    for outcome in outcomes:
        setting = (outcome.clients_per_round, outcome.local_steps)
        cells.setdefault(setting, []).append(outcome.cost(objective))
    found = []
    for (clients, steps), costs in cells.items():
        mean = math.fsum(costs) / len(costs)
        sound = len(costs) > 1 and math.isfinite(mean)
        error = float(np.std(costs, ddof=1)) / math.sqrt(len(costs)) if sound else math.nan
        found.append(CellCost(clients_per_round=clients, local_steps=steps, cost=mean, error=error))
    return sorted(found, key=lambda cell: (cell.cost, cell.setting))


def empirical_optimum(outcomes: Sequence[Outcome], objective: Objective) -> CellCost | None:
    """The (K, E) cheapest on every other seed, at what it costs on the seeds between.

    Chosen and priced on the same seeds, the cheapest of many cells would look cheaper than it is.
    None where no cell arrives with all seeds.
    """
    seeds = sorted({outcome.seed for outcome in outcomes})
    choosing, checking = set(seeds[::2]), set(seeds[1::2]) or set(seeds)
    best = cell_costs((o for o in outcomes if o.seed in choosing), objective)[0]
    if math.isinf(best.cost):
        return None
    priced = cell_costs((o for o in outcomes if o.seed in checking), objective)
    return next(cell for cell in priced if cell.setting == best.setting)
