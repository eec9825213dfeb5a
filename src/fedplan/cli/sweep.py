"""`fedplan sweep`: train every setting of a grid to the target and compare costs."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from fedplan.cli.output import (
    Facts,
    Marked,
    check_file,
    draw,
    print_result,
    study_in_words,
    who_trains,
)
from fedplan.cli.progress import job_bar
from fedplan.cli.training import StudyRequest, compile_kernels, study_options
from fedplan.errors import InputError
from fedplan.store import Store
from fedplan.studies.cells import SUFFIXES, Cell, write_summaries
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import sweep_figure
from fedplan.studies.grid import read_sweep
from fedplan.studies.ray_engine import RayEngine
from fedplan.studies.sweep import Sweep, recall_sweep, sweep_study
from fedplan.words import Table, counted, difference, joules, seconds, with_error

_MOST_COLUMNS = 10  # of the matrix side by side; more go below


@click.command()
@study_options(runners=True)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where runs are made: this machine, or a Ray cluster ($RAY_ADDRESS).",
)
@click.option("--output", "-o", metavar="FILE", help="Also write one row per run: .csv.")
def sweep(request: StudyRequest, engine: str, output: str | None) -> None:
    """Train every clients-per-round x local-steps of a grid, and compare what the target costs.

    With participation=turns, the grid is groups x local-steps.

    Runs are stored as they end: after an interruption the same command resumes, and for another
    fleet or energy weight nothing is trained again.

    STUDY is a study file (TOML) or a built-in study: demo, setup1, setup2, setup3. KEY=VALUE
    overrides it; clients-per-round, groups and local-steps take lists, without which a grid of
    about 6 x 6 is tried.

    \b
    Examples:
      fedplan sweep demo
      fedplan sweep demo clients-per-round=1,2,5,10 local-steps=10,20,40 seeds=10 --plot demo.png
      fedplan sweep demo participation=turns groups=4,8 local-steps=10,20,40
      fedplan sweep setup3 energy-weight=0.3 target-loss=1.3 --output runs.csv
      fedplan sweep study.toml file=other-fleet.csv --format json
      fedplan sweep study.toml local-steps=10,40 --runner flower --federation lab

    Exit codes: 0 some setting reached the target with every seed, 1 none did, 2 wrong input.
    """
    live = request.federation is not None

    def check_engine() -> None:
        if engine != "local" and live:
            raise InputError(f"--engine {engine} is for simulated runs: leave it out, or --runner.")

    swept = request.read(
        read_sweep, check_engine, lambda: check_file(output, SUFFIXES), required=request.required
    )
    if live and swept.study.training.law == "turns":
        raise InputError(
            "a grid of groups is made from what devices cost, which nobody knows of a federation "
            "before it trains. Leave participation=turns out, or --runner flower."
        )
    experiment = request.build(swept.study)
    grid = swept.grid(experiment.problem.fleet)

    def simulate(experiment: Experiment, store: Store) -> Sweep:
        made_by = RayEngine(experiment) if engine == "ray" else None
        if made_by is None:
            compile_kernels(experiment, quiet=request.quiet)
        with job_bar(quiet=request.quiet) as count:
            return sweep_study(experiment, grid, store, engine=made_by, count=count)

    experiment, result = request.train(
        experiment, simulate, lambda seen, store: recall_sweep(seen, grid, store), grid=grid
    )
    if output is not None:
        write_summaries(output, result.runs)
    name, note = experiment.study.name, result.message
    draw(
        request.plot, lambda: sweep_figure(result, name, note), otherwise="there is no run to draw"
    )
    print_result(request.output_format, _document(experiment, result), _blocks(experiment, result))


def _document(experiment: Experiment, result: Sweep) -> dict[str, Any]:
    return {
        "success": result.best is not None,
        "study": experiment.study.name,
        "target_loss": experiment.stop.target_loss,
        "unit": experiment.objective.unit,
        "cells": [asdict(cell) for cell in sorted(result.cells, key=lambda cell: cell.setting)],
        "best": result.best and asdict(result.best),
        "message": result.message,
    }


def _blocks(experiment: Experiment, result: Sweep) -> Iterator[Facts | Table | str]:
    yield Facts(_facts(experiment, result))
    yield from _matrices(result)
    if any(cell.reached < cell.seeds for cell in result.cells):
        yield "A cell such as 3 of 5 says how many of its seeds reached the target."
    yield result.message


def _facts(experiment: Experiment, result: Sweep) -> Iterator[tuple[str, str]]:
    yield "study", study_in_words(experiment)
    yield "runs", f"{len(result.runs):,}"
    if (best := result.best) is not None:
        law, clients = best.participation, experiment.num_clients
        yield who_trains(law, best.clients_per_round, best.groups, clients)
        yield "local steps", f"[bold]{best.local_steps:,}[/]"
        yield "rounds", with_error(best.rounds, best.rounds_sd)
        yield "time", seconds(best.time_s)
        yield "energy", joules(best.energy_j)
        cost = with_error(best.cost, best.cost_error)
        yield "cost", f"{cost} {experiment.objective.unit}"


def _matrices(result: Sweep) -> Iterator[Table]:
    """Costs against the best: one row per E, one column per K or number of groups."""
    cells = {cell.setting: cell for cell in result.cells}
    clients = sorted({k for k, _ in cells})
    steps = sorted({e for _, e in cells})
    by_turns = any(cell.clients_per_round is None for cell in result.cells)
    for start in range(0, len(clients), _MOST_COLUMNS):
        columns = clients[start : start + _MOST_COLUMNS]
        names = (counted(k, "group") if by_turns else f"K={k:,}" for k in columns)
        rows = [
            (f"{e:,}", *(_shown(cells.get((k, e)), result.best_of_all) for k in columns))
            for e in steps
        ]
        yield Table(("local steps", *names), rows)


def _shown(cell: Cell | None, best: Cell | None) -> str:
    if cell is None:  # so many groups did not pay at this E
        return ""
    if cell.reached < cell.seeds or best is None:
        return Marked(f"[dim]{cell.reached} of {cell.seeds}[/]")
    return Marked("[bold]best[/]") if cell is best else difference(cell.cost / best.cost)
