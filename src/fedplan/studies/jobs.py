"""Jobs: which runs to make, for given settings and seeds."""

from __future__ import annotations

from collections.abc import Iterable

from fedplan.core.setting import Setting
from fedplan.simulation import Job


def make_jobs(settings: Iterable[Setting], seeds: Iterable[int]) -> list[Job]:
    """One job for each setting and seed, seed by seed: what is cut short has whole grids.

    >>> from fedplan.participation import uniform
    >>> jobs = make_jobs([uniform(2, 5), uniform(4, 5)], range(2))
    >>> [(job.setting.clients_per_round, job.seed) for job in jobs]
    [(2, 0), (4, 0), (2, 1), (4, 1)]
    """
    every = list(settings)
    return [Job(course=setting, seed=seed) for seed in seeds for setting in every]
