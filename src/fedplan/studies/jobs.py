"""Jobs: which runs to make, for given settings and seeds."""

from __future__ import annotations

from collections.abc import Iterable

from fedplan.simulation import Job


def make_jobs(settings: Iterable[tuple[int, int]], seeds: Iterable[int]) -> list[Job]:
    """One job a (K, E) and seed, seeds outermost: what is cut short has all settings of some.

    >>> [(job.clients_per_round, job.seed) for job in make_jobs([(2, 5), (4, 5)], range(2))]
    [(2, 0), (4, 0), (2, 1), (4, 1)]
    """
    every = list(settings)
    return [
        Job(clients_per_round=clients, local_steps=steps, seed=seed)
        for seed in seeds
        for clients, steps in every
    ]
