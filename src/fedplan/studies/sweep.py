"""Sweep: every setting of a grid trained to the target, and its cost."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from fedplan.core.objective import costs_nothing
from fedplan.errors import FedplanError, InputError
from fedplan.simulation import Job
from fedplan.store import Store
from fedplan.studies.archive import Count, Engine, Progress
from fedplan.studies.cells import Cell, RunSummary, empirical_optimum, make_cells
from fedplan.studies.experiment import Experiment, build_setting, make_jobs
from fedplan.studies.grid import Grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sweep:
    """A grid, trained.

    total : runs of the whole grid.
    cells : cheapest first.
    best : the empirical optimum; None if no cell arrives with all seeds.
    """

    runs: tuple[RunSummary, ...]
    total: int
    cells: tuple[Cell, ...]
    best: Cell | None
    message: str

    @property
    def best_of_all(self) -> Cell | None:
        """The empirical optimum over all its seeds: what other cells are compared with."""
        if self.best is None:
            return None
        return next(cell for cell in self.cells if cell.setting == self.best.setting)


def sweep_study(
    experiment: Experiment,
    grid: Grid,
    store: Store,
    *,
    engine: Engine | None = None,
    count: Count | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Train every setting of the grid with every seed; stored runs are not trained again.

    engine : makes the runs; by default the experiment's simulator.
    count : told how many of the runs are done.
    progress : told of every round.
    """
    fleet, objective = experiment.assumed_fleet, experiment.objective
    if fleet is None or experiment.stop.target_loss is None:
        raise InputError("a sweep compares what a target costs, and needs target-loss and [fleet].")
    if costs_nothing(fleet, objective):
        raise InputError(
            "nothing costs anything: the objective counts energy alone, and no device uses any. "
            "Lower energy-weight, or give the fleet its joules."
        )
    configuration = experiment.study.configuration()
    configuration["training"] |= grid.keys
    jobs = _jobs(experiment, grid)
    entry = store.save_study(experiment.study.name, configuration, experiment.settings)
    archive = experiment.archive(store, engine)
    runs = archive.map_all(jobs, experiment.stop, RunSummary.of, count=count, progress=progress)
    if any(run.status == "target" and run.rounds == 0 for run in runs):
        raise FedplanError(
            "the loss before training is at the target already, so that nothing costs anything: "
            f"lower target-loss (now {experiment.stop.target_loss:g})."
        )
    result = _concluded(experiment, grid, runs, len(jobs))
    store.save_step(entry, "sweep", {"best": result.best and asdict(result.best)})
    return result


def recall_sweep(experiment: Experiment, grid: Grid, store: Store) -> Sweep:
    """The sweep so far, from the store alone: nothing is trained or written."""
    archive, jobs = experiment.archive(store, readonly=True), _jobs(experiment, grid)
    runs = archive.map_all(jobs, experiment.stop, RunSummary.of)
    if not runs:
        message = "No run has ended yet."
        return Sweep(runs=(), total=len(jobs), cells=(), best=None, message=message)
    result = _concluded(experiment, grid, runs, len(jobs))
    if len(runs) == len(jobs):
        return result
    so_far = f"The sweep has not ended: {len(runs):,} of {len(jobs):,} runs are done. "
    return replace(result, message=so_far + result.message)


def _jobs(experiment: Experiment, grid: Grid) -> list[Job]:
    """One job for each setting and seed; several numbers of groups may give the same setting."""
    settings = (build_setting(experiment, who, steps) for who, steps in grid.pairs)
    return make_jobs(dict.fromkeys(settings), experiment.study.training.every_seed)


def _concluded(experiment: Experiment, grid: Grid, runs: Sequence[RunSummary], total: int) -> Sweep:
    best = empirical_optimum(runs, experiment.objective)
    cells = make_cells(runs, experiment.objective)
    return Sweep(
        runs=tuple(runs),
        total=total,
        cells=tuple(cells),
        best=best,
        message=_message(experiment, grid, runs, cells, best),
    )


def _message(
    experiment: Experiment,
    grid: Grid,
    runs: Sequence[RunSummary],
    cells: Sequence[Cell],
    best: Cell | None,
) -> str:
    stop, training = experiment.stop, experiment.study.training
    whole = sum(cell.reached == cell.seeds for cell in cells)
    counted = f"{whole:,} of {len(cells):,} settings reached the loss {stop.target_loss:g}"
    counted += " with every seed." if training.seeds > 1 else "."
    if best is None:
        if all(run.status == "diverged" for run in runs):
            return (
                f"{counted} All runs diverged: lower learning-rate (now "
                f"{training.learning_rate:g})."
            )
        if whole:
            return f"{counted} No seed has been tried with all of them."
        lowest = min(run.final_loss or math.inf for run in runs)
        return (
            f"{counted} The lowest loss at the end of a run is {lowest:.4g}. Allow more rounds "
            f"(now {stop.max_rounds:,}), or raise target-loss."
        )
    words = f"{best.label} costs least"
    if training.seeds > 1:
        words += " by half of the seeds. By the other half, which had no say in the choice, it "
        words += f"costs {best.cost:.4g} {experiment.objective.unit} on average."
    else:
        words += " on the one seed tried; add seeds to see how far to trust it."
    return " ".join([words, counted, *_edges(grid, best, experiment.num_clients)])


def _edges(grid: Grid, best: Cell, num_clients: int) -> list[str]:
    """What to add to a grid whose optimum is at an end."""
    found = []
    for name, value, values, most in (
        (
            "number of groups" if grid.groups else "clients-per-round",
            best.setting[0],
            grid.who,
            num_clients,
        ),
        ("local-steps", best.local_steps, grid.local_steps, None),
    ):
        if value == values[0] > 1:
            found.append(f"It is the smallest {name} tried: add smaller ones.")
        elif value == values[-1] != most:
            found.append(f"It is the largest {name} tried: add larger ones.")
    return found
