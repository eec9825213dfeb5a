"""Reproduce: one setup of the paper, from its Table I to the checks of its theorems.

Every run goes through the archive: the same call after a crash makes only what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from fedplan import InputError
from fedplan.store import Store
from fedplan.studies import (
    Experiment,
    Progress,
    Report,
    Study,
    build_experiment,
    planned_problem,
    read_study,
)
from fedplan_reproduction.checks import Check, check_theory
from fedplan_reproduction.curves import CurvePoint, curve_points
from fedplan_reproduction.design import Design, design_of
from fedplan_reproduction.grid import TrainedGrid, train_grid
from fedplan_reproduction.overhead import Overhead, best_loss_of, overheads
from fedplan_reproduction.table1 import Row, measure_table1, table_of
from fedplan_reproduction.weights import Plans, Priced, price_plans


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A setup ready to be run; everything that can be wrong has been looked at."""

    setup: str
    quick: bool
    overrides: tuple[str, ...]
    design: Design
    seeds: range
    target_loss: float
    experiment: Experiment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reproduction:
    """What came of a setup: Table I, the grid with all that is made of it, or both."""

    prepared: Prepared
    table1: list[Row]
    grid: TrainedGrid | None
    curves: list[CurvePoint]
    priced: list[Priced]
    checks: list[Check]
    overheads: list[Overhead]
    took_s: float


def study_of(setup: str, overrides: Sequence[str] = (), *, quick: bool = False) -> Study:
    """The study of a setup, with what a quick look changes."""
    return read_study(setup, [*design_of(setup, quick=quick).overrides, *overrides])


def prepare(
    setup: str, overrides: Sequence[str] = (), *, seeds: int | None = None, quick: bool = False
) -> Prepared:
    """Read the study and load its data; `seeds` takes the place of the design's."""
    design = design_of(setup, quick=quick)
    study = study_of(setup, overrides, quick=quick)
    count = design.seeds if seeds is None else seeds
    if count < 1:
        raise InputError(f"`seeds >= 1` must hold, but got seeds={count}.")
    if any(text.partition("=")[0].strip().split(".")[-1] == "seeds" for text in overrides):
        raise InputError("seeds of a reproduction are given as --seeds N, not as seeds=N.")
    experiment = build_experiment(study)
    target_loss = planned_problem(experiment).target_loss or 0.0
    table_of(study)  # refuses a study without pairs before anything is trained
    first = study.training.first_seed
    return Prepared(
        setup=setup,
        quick=quick,
        overrides=tuple(overrides),
        design=design,
        seeds=range(first, first + count),
        target_loss=target_loss,
        experiment=experiment,
    )


def reproduce(
    prepared: Prepared,
    store: Store,
    *,
    table: bool = True,
    figure: bool = True,
    report: Report | None = None,
) -> Reproduction:
    """Train what the store does not have; `report` hears the step's name and every round.

    table, figure : whether Table I is measured, and the grid that figure and checks need.
    """
    start = time.perf_counter()
    experiment, seeds = prepared.experiment, prepared.seeds
    table1: list[Row] = []
    if table:
        archive, progress = experiment.archive(store), _step(report, "Table I")
        table1 = measure_table1(prepared.setup, experiment, archive, seeds, progress=progress)
    grid, plans = None, Plans(priced=[], quickest={})
    if figure:
        archive, design = experiment.archive(store), prepared.design
        progress = _step(report, "figures")
        grid = train_grid(experiment, archive, design, seeds, progress=progress)
        plans = price_plans(experiment, archive, grid, design, seeds, report=report)
    return Reproduction(
        prepared=prepared,
        table1=table1,
        grid=grid,
        curves=[] if grid is None else curve_points(grid, plans.quickest),
        priced=plans.priced,
        checks=[] if grid is None else check_theory(grid, experiment.num_clients),
        overheads=_overheads(prepared, table1, plans.priced),
        took_s=time.perf_counter() - start,
    )


def _overheads(prepared: Prepared, table1: list[Row], priced: list[Priced]) -> list[Overhead]:
    """Equation 26; not of a quick look, for the lowest loss takes longer than its training."""
    if prepared.quick or not table1 or not priced:
        return []
    return overheads(
        table1,
        priced,
        num_clients=prepared.experiment.num_clients,
        target_loss=prepared.target_loss,
        best_loss=best_loss_of(prepared.experiment.study),
    )


def _step(report: Report | None, name: str) -> Progress | None:
    return None if report is None else lambda job, record: report(name, job, record)
