"""The grid of a setup: every (K, E) trained to the target, and priced for several fleets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedplan import Fleet, Objective, uniform
from fedplan.core.records import RunRecord
from fedplan.simulation import Clock
from fedplan.studies import Archive, Experiment, Progress, RunSummary, make_jobs, planned_problem
from fedplan_reproduction.design import Design
from fedplan_reproduction.tables import TrainedRun

AS_IT_IS = 1.0
COMM_FACTORS = (0.25, AS_IT_IS, 4.0)  # communication costs this many times the study's
TIME, ENERGY = Objective.weighted(0.0), Objective.weighted(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedGrid:
    """What was trained.

    summaries : by how many times the study's communication costs; the runs are the same.
    runs : one row each, at what communication costs in the study.
    shown : the runs of the curves.
    """

    summaries: dict[float, list[RunSummary]]
    runs: list[TrainedRun]
    shown: tuple[RunRecord, ...]
    shown_clients: int
    shown_steps: int


def train_grid(
    experiment: Experiment,
    archive: Archive,
    design: Design,
    seeds: Sequence[int],
    *,
    progress: Progress | None = None,
) -> TrainedGrid:
    """Train every (K, E) of the design; only the runs of the curves are kept whole."""
    fleet = planned_problem(experiment).fleet
    num_clients = experiment.num_clients
    clocks = {factor: Clock(scaled(fleet, factor), num_clients) for factor in COMM_FACTORS}
    settings = design.settings(num_clients)
    shown_clients = min((k for k, _ in settings), key=lambda k: abs(k - design.shown_clients))

    def take(run: RunRecord) -> tuple[dict[float, RunSummary], TrainedRun, RunRecord | None]:
        prices = {factor: RunSummary.of(clock.reprice(run)) for factor, clock in clocks.items()}
        is_shown = run.clients_per_round == shown_clients or run.local_steps == design.shown_steps
        return prices, _row(run), run if is_shown else None

    jobs = make_jobs([uniform(*setting) for setting in settings], seeds)
    taken = archive.map_all(jobs, experiment.stop, take, progress=progress)
    return TrainedGrid(
        summaries={factor: [prices[factor] for prices, *_ in taken] for factor in COMM_FACTORS},
        runs=[row for _, row, _ in taken],
        shown=tuple(run for *_, run in taken if run is not None),
        shown_clients=shown_clients,
        shown_steps=design.shown_steps,
    )


def _row(run: RunRecord) -> TrainedRun:
    return TrainedRun(
        clients_per_round=run.setting.pair[0],
        local_steps=run.local_steps,
        seed=run.seed,
        status=run.status,
        rounds=run.num_rounds,
        time_s=run.time_s,
        energy_j=run.energy_j,
        test_accuracy=run.test_accuracy,
    )


def scaled(fleet: Fleet, factor: float) -> Fleet:
    """The same devices where communication takes this many times the seconds and joules.

    >>> fleet = scaled(Fleet(step_time_s=0.1, comm_time_s=2.0, count=3), 4.0)
    >>> float(fleet.comm_time_s[0]), len(fleet)
    (8.0, 3)
    """
    return Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s * factor,
        step_energy_j=fleet.step_energy_j,
        comm_energy_j=fleet.comm_energy_j * factor,
        count=fleet.count,
        device=fleet.device,
    )
