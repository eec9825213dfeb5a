"""Several energy weights: what fedplan and the paper's choice cost, beside the best of a grid."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from fedplan import Bound, Objective, Problem, make_plan, uniform
from fedplan.core.course import Course
from fedplan.core.records import RunRecord
from fedplan.simulation import Job
from fedplan.studies import (
    Archive,
    Cell,
    Experiment,
    Report,
    RunSummary,
    choose_setting,
    empirical_optimum,
    make_cells,
    make_course,
    planned_problem,
    run_pilots,
)
from fedplan_reproduction.design import Design
from fedplan_reproduction.grid import AS_IT_IS, TrainedGrid

FEDPLAN, PAPER, BEST = "fedplan", "paper", "best measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What one method's setting costs at one energy weight; infinite where a seed never arrives.

    clients_per_round, local_steps : None where the pilots led to no plan, and of fedplan, which
        begins with groups and goes on as the rounds tell.
    relative_cost : over the best of the grid; NaN where there is no such thing.
    """

    energy_weight: float
    method: str
    clients_per_round: int | None
    local_steps: int | None
    cost: float
    error: float
    time_s: float
    energy_j: float
    relative_cost: float
    rounds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """What every method costs at each weight, and the runs of those that were trained for it.

    quickest : those of the weight 0, by the name of their line in a figure of curves.
    """

    priced: list[Priced]
    quickest: dict[str, list[RunRecord]]


def price_plans(
    experiment: Experiment,
    archive: Archive,
    grid: TrainedGrid,
    design: Design,
    seeds: Sequence[int],
    *,
    report: Report | None = None,
) -> Plans:
    """Train for every weight as fedplan and as the paper does, beside the best of the grid.

    fedplan's bill has every round; the paper's leaves out its pilots, for they are shared by all
    weights. The best is chosen by half of the seeds; all three are priced by the other half.
    """
    runs = grid.summaries[AS_IT_IS]
    checking = list(seeds[1::2] or seeds)
    found = []
    quickest: dict[str, list[RunRecord]] = {}
    for weight in design.energy_weights:
        objective = Objective.weighted(weight)
        best = empirical_optimum(runs, objective)
        weighted = replace(experiment, objective=objective)
        course = make_course("online", planned_problem(weighted))
        made = _train(experiment, archive, course, checking, report)
        found.append(_priced(weight, FEDPLAN, None, made, best))
        lines = {FEDPLAN: made}
        setting = _paper_setting(weighted, archive, design.published_ratio, report)
        chosen = None if setting is None else uniform(*setting)
        made = [] if chosen is None else _train(experiment, archive, chosen, checking, report)
        found.append(_priced(weight, PAPER, setting, made, best))
        if chosen is not None:
            lines[f"{PAPER}: {chosen.label}"] = made
        if weight == 0:
            quickest = lines
        cheapest = None if best is None else best.setting
        own = [run for run in runs if run.setting == cheapest and run.seed in checking]
        found.append(_cost(weight, BEST, cheapest, own, best))
    return Plans(priced=found, quickest=quickest)


def _paper_setting(
    experiment: Experiment, archive: Archive, ratio: float | None, report: Report | None
) -> tuple[int, int] | None:
    """The paper's (K, E), from its own pilots or, where these take hours, from its own ratio."""
    problem = planned_problem(experiment)
    if ratio is not None:
        # A ratio tells no number of rounds, so the study's limit of rounds does not apply.
        own = Problem(fleet=problem.fleet, objective=problem.objective)
        setting = make_plan(own, Bound.from_ratio(ratio), method="paper").setting
        return None if setting is None else setting.pair
    planning, most = experiment.study.planning, experiment.stop.max_rounds
    progress = None if report is None else partial(report, "pilots")
    pilots = list(run_pilots(planning, most, archive, progress=progress))
    return choose_setting(problem, planning, pilots).setting


def _train(
    experiment: Experiment,
    archive: Archive,
    course: Course,
    seeds: Sequence[int],
    report: Report | None,
) -> list[RunRecord]:
    jobs = [Job(course=course, seed=seed) for seed in seeds]
    progress = None if report is None else lambda job, record: report("plans", job, record)
    return archive.run_all(jobs, experiment.stop, progress=progress)


def _priced(
    weight: float,
    method: str,
    setting: tuple[int, int] | None,
    runs: Sequence[RunRecord],
    best: Cell | None,
) -> Priced:
    return _cost(weight, method, setting, [RunSummary.of(run) for run in runs], best)


def _cost(
    weight: float,
    method: str,
    setting: tuple[int, int] | None,
    runs: Sequence[RunSummary],
    best: Cell | None,
) -> Priced:
    cost = error = time_s = energy_j = rounds = math.nan
    if runs:
        (cell,) = make_cells(runs, Objective.weighted(weight))
        cost, error = cell.cost, cell.cost_error
        arrives = cell.reached == cell.seeds
        time_s, energy_j, rounds = math.inf, math.inf, math.inf
        if arrives:
            time_s, energy_j = cell.time_s, cell.energy_j
            rounds = statistics.fmean(run.rounds for run in runs)
    return Priced(
        energy_weight=weight,
        method=method,
        clients_per_round=setting and setting[0],
        local_steps=setting and setting[1],
        cost=cost,
        error=error,
        time_s=time_s,
        energy_j=energy_j,
        relative_cost=cost / best.cost if best is not None and best.cost else math.nan,
        rounds=rounds,
    )
