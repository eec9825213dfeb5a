"""Cells: summaries of runs, and the cost of each setting over its runs."""

from __future__ import annotations

import csv
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

from fedplan.atomic import draft_of
from fedplan.core.objective import Objective
from fedplan.core.records import RunRecord, Status
from fedplan.core.setting import setting_label

SUFFIXES = (".csv",)
_RENAMED = ("rounds", "participation", "groups")  # fields that a run has under other names


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The result of one run, without its rounds."""

    clients_per_round: int | None
    local_steps: int
    seed: int
    status: Status
    rounds: int
    time_s: float
    energy_j: float
    final_loss: float | None
    participation: str = "uniform"
    groups: int | None = None
    taken_part: int = 0

    @classmethod
    def of(cls, run: RunRecord) -> RunSummary:
        """The summary of a run."""
        own = {one.name: getattr(run, one.name) for one in fields(cls) if one.name not in _RENAMED}
        law, groups = run.setting.participation.law, run.setting.groups
        return cls(**own, rounds=run.num_rounds, participation=law, groups=groups)

    @property
    def setting(self) -> tuple[int, int]:
        """What runs are compared by: K, or the number of groups that take turns, and E."""
        return self.clients_per_round or self.groups or 0, self.local_steps

    def cost(self, objective: Objective) -> float:
        """The cost of reaching the target; infinite if the run did not reach it."""
        if self.status != "target":
            return math.inf
        return float(objective.of_round(self.time_s, self.energy_j, self.taken_part))


def write_summaries(path: str | os.PathLike[str], runs: Iterable[RunSummary]) -> None:
    """Write a .csv with one row per run and all digits; a failure leaves an old file unchanged."""
    with draft_of(path, SUFFIXES) as draft, draft.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(RunSummary))
        writer.writerows(astuple(run) for run in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One setting, over its seeds.

    reached : seeds that reached the target.
    rounds, rounds_sd, time_s, energy_j : means, and a standard deviation, over those alone; NaN
        where there are none, or too few.
    cost, cost_error : mean over all seeds, and its standard error; infinite and NaN if a seed
        did not reach the target.
    """

    clients_per_round: int | None
    local_steps: int
    seeds: int
    reached: int
    rounds: float
    rounds_sd: float
    time_s: float
    energy_j: float
    cost: float
    cost_error: float
    participation: str
    groups: int | None

    @property
    def setting(self) -> tuple[int, int]:
        """What identifies a cell: K, or the number of groups that take turns, and E."""
        return self.clients_per_round or self.groups or 0, self.local_steps

    @property
    def label(self) -> str:
        """The setting in a few letters."""
        return setting_label(
            self.participation, self.clients_per_round, self.groups, self.local_steps
        )


def make_cells(runs: Iterable[RunSummary], objective: Objective) -> list[Cell]:
    """Every setting of the runs, cheapest first; those that missed the target with a seed last.

    >>> runs = [RunSummary(clients_per_round=1, local_steps=5, seed=s, status="target", rounds=9,
    ...     time_s=s, energy_j=0.0, final_loss=0.5) for s in (2, 4)]
    >>> [(cell.setting, cell.cost, cell.cost_error) for cell in make_cells(runs,
    ...     Objective.weighted(0.0))]
    [((1, 5), 3.0, 1.0)]
    """
    by_setting: dict[tuple[int, int], list[RunSummary]] = {}
    for run in runs:
        by_setting.setdefault(run.setting, []).append(run)
    cells = [_cell(runs_of_one, objective) for runs_of_one in by_setting.values()]
    return sorted(cells, key=lambda cell: (cell.cost, -cell.reached, cell.setting))


def _cell(runs: Sequence[RunSummary], objective: Objective) -> Cell:
    first, arrived = runs[0], [run for run in runs if run.status == "target"]
    costs = [run.cost(objective) for run in runs]
    return Cell(
        clients_per_round=first.clients_per_round,
        local_steps=first.local_steps,
        seeds=len(runs),
        reached=len(arrived),
        rounds=mean_of([run.rounds for run in arrived]),
        rounds_sd=deviation_of([run.rounds for run in arrived]),
        time_s=mean_of([run.time_s for run in arrived]),
        energy_j=mean_of([run.energy_j for run in arrived]),
        cost=mean_of(costs),  # infinite if one of them is
        cost_error=deviation_of(costs) / math.sqrt(len(costs)),
        participation=first.participation,
        groups=first.groups,
    )


def mean_of(values: Sequence[float]) -> float:
    """The mean; NaN for no values."""
    return statistics.fmean(values) if values else math.nan


def deviation_of(values: Sequence[float]) -> float:
    """The standard deviation; NaN for fewer than two values, or if one is infinite."""
    return statistics.stdev(values) if len(values) > 1 and math.inf not in values else math.nan


def empirical_optimum(runs: Sequence[RunSummary], objective: Objective) -> Cell | None:
    """The cheapest setting by half of the seeds (every other one), priced by the other half.

    Chosen and priced on the same seeds, the cheapest of many cells would look cheaper than it is.
    For an unfinished sweep, the seeds that all cells have count. None if no cell arrives
    with all seeds, or there is no such seed.
    """
    cells = make_cells(runs, objective)
    whole = {cell.setting for cell in cells if math.isfinite(cell.cost)}
    counts = Counter(run.seed for run in runs)
    seeds = sorted(seed for seed, count in counts.items() if count == len(cells))
    if not whole or not seeds:
        return None
    choosing, checking = set(seeds[::2]), set(seeds[1::2]) or set(seeds)
    best, *_ = make_cells(
        (run for run in runs if run.seed in choosing and run.setting in whole), objective
    )
    (priced,) = make_cells(
        (run for run in runs if run.seed in checking and run.setting == best.setting), objective
    )
    return priced
