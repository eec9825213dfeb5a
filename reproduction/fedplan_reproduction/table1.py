"""Table I: rounds to two losses for each sampled (K, E), measured beside the published ones."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fedplan import InputError, uniform
from fedplan.core.records import Stop
from fedplan.studies import Archive, Experiment, Progress, Study, make_jobs
from fedplan_reproduction.published import published_pilots

MARGIN, MARGIN_ROUNDS = 0.1, 3.0  # within either of them counts as reproduced


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Rounds to one loss: the paper's, and of every seed of ours; None where it never arrived."""

    loss: float
    published: float | None
    found: tuple[int | None, ...]

    @property
    def arrived(self) -> list[int]:
        """Rounds of the seeds that arrived."""
        return [rounds for rounds in self.found if rounds is not None]

    @property
    def mean(self) -> float | None:
        """Mean over the seeds that arrived."""
        return statistics.fmean(self.arrived) if self.arrived else None

    @property
    def sd(self) -> float:
        """Standard deviation over the seeds that arrived."""
        return statistics.stdev(self.arrived) if len(self.arrived) > 1 else 0.0

    @property
    def never(self) -> int:
        """Seeds that did not arrive."""
        return len(self.found) - len(self.arrived)

    @property
    def is_close(self) -> bool | None:
        """Whether the mean is within 10% or 3 rounds; None where the paper has no number.

        >>> Cell(loss=0.5, published=82.0, found=(80, 76)).is_close
        True
        >>> Cell(loss=0.5, published=82.0, found=(82, None)).is_close
        False
        """
        if self.published is None:
            return None
        if self.mean is None or self.never:
            return False
        return abs(self.mean - self.published) <= max(MARGIN_ROUNDS, MARGIN * self.published)

    def __str__(self) -> str:
        """Mean and standard deviation, and how many never arrived.

        >>> str(Cell(loss=0.5, published=None, found=(4, 6, None)))
        '5.0 ± 1.4 (1 of 3 never)'
        """
        if self.mean is None:
            return "never"
        text = f"{self.mean:.1f} ± {self.sd:.1f}"
        return f"{text} ({self.never} of {len(self.found)} never)" if self.never else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One (K, E) of Table I."""

    clients_per_round: int
    local_steps: int
    seeds: tuple[int, ...]
    upper: Cell
    lower: Cell

    @property
    def is_close(self) -> bool | None:
        """Whether both losses are reached as published."""
        if self.upper.is_close is None or self.lower.is_close is None:
            return None
        return self.upper.is_close and self.lower.is_close


def measure_table1(
    setup: str,
    experiment: Experiment,
    archive: Archive,
    seeds: Sequence[int],
    *,
    progress: Progress | None = None,
) -> list[Row]:
    """Train every pair of the study's [planning] to its lower loss, with each seed."""
    pairs, upper, lower = table_of(experiment.study)
    stop = Stop(max_rounds=experiment.stop.max_rounds, target_loss=lower)
    jobs = make_jobs([uniform(*pair) for pair in pairs], seeds)
    runs = archive.run_all(jobs, stop, progress=progress)
    crossings = {
        job: (run.rounds_to(upper), run.rounds_to(lower))
        for job, run in zip(jobs, runs, strict=True)
    }
    rows = []
    for clients, steps in pairs:
        own = [crossings[job] for job in make_jobs([uniform(clients, steps)], seeds)]
        paper = _published(setup, clients, steps, upper, lower)
        rows.append(
            Row(
                clients_per_round=clients,
                local_steps=steps,
                seeds=tuple(seeds),
                upper=Cell(loss=upper, published=paper[0], found=tuple(a for a, _ in own)),
                lower=Cell(loss=lower, published=paper[1], found=tuple(b for _, b in own)),
            )
        )
    return rows


def table_of(study: Study) -> tuple[list[tuple[int, int]], float, float]:
    """Pairs and the two losses of a study."""
    planning = study.planning
    if planning.pairs is None or planning.upper_loss is None or planning.lower_loss is None:
        raise InputError("Table I needs pairs, upper-loss and lower-loss in [planning].")
    # A pair twice is one pair.
    pairs = list(dict.fromkeys((clients, steps) for clients, steps in planning.pairs))
    return pairs, planning.upper_loss, planning.lower_loss


def _published(
    setup: str, clients: int, steps: int, upper: float, lower: float
) -> tuple[float | None, float | None]:
    for pilot in published_pilots(setup):
        known = (pilot.clients_per_round, pilot.local_steps, pilot.upper_loss, pilot.lower_loss)
        if known == (clients, steps, upper, lower):
            return pilot.rounds_to_upper, pilot.rounds_to_lower
    return None, None
