"""RunSummary: what one run came to without its rounds, and a file of many."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

from fedplan.atomic import draft_of, unwritable
from fedplan.core.objective import Objective
from fedplan.core.records import RunRecord, Status

SUFFIXES = (".csv",)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What one run came to, without its rounds."""

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
        return cls(
            clients_per_round=run.clients_per_round,
            local_steps=run.local_steps,
            seed=run.seed,
            status=run.status,
            rounds=run.num_rounds,
            time_s=run.time_s,
            energy_j=run.energy_j,
            final_loss=run.final_loss,
            participation=run.setting.participation.law,
            groups=run.setting.groups,
            taken_part=run.taken_part,
        )

    @property
    def setting(self) -> tuple[int, int]:
        """What runs are compared by: K, or the number of groups that take turns, and E."""
        return self.clients_per_round or self.groups or 0, self.local_steps

    def cost(self, objective: Objective) -> float:
        """What reaching the target was worth; infinite where the run did not reach it."""
        if self.status != "target":
            return math.inf
        return float(objective.of_round(self.time_s, self.energy_j, self.taken_part))


def write_summaries(path: str | os.PathLike[str], runs: Iterable[RunSummary]) -> None:
    """Write a .csv with a row a run and all digits; a failure leaves an old file as it was."""
    try:
        with draft_of(path) as draft, draft.open("x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(field.name for field in fields(RunSummary))
            writer.writerows(astuple(run) for run in runs)
    except OSError as error:
        reason = f"cannot be written ({error.strerror or error})"
        raise unwritable(path, SUFFIXES, reason) from error
