"""`fedplan sweep`: every setting of a grid trained to the target, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli import text
from fedplan.cli.output import check_file, draw, print_facts, print_json, print_table, print_text
from fedplan.cli.progress import job_bar
from fedplan.cli.training import (
    Asked,
    asks,
    check_runner,
    compile_kernels,
    needed_keys,
    on_federation,
    runner_options,
)
from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.figures import Figure
    from fedplan.store import Store
    from fedplan.studies.archive import Engine
    from fedplan.studies.cells import Cell
    from fedplan.studies.experiment import Experiment
    from fedplan.studies.grid import SweptStudy
    from fedplan.studies.sweep import Sweep

_MOST_COLUMNS = 10  # of the matrix side by side; more go below


@click.command()
@asks()
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where runs are made: this machine, or a Ray cluster ($RAY_ADDRESS).",
)
@runner_options
@click.option("--output", "-o", metavar="FILE", help="Also write a row a run: .csv.")
def sweep(
    asked: Asked, engine: str, runner: str, federation: str | None, output: str | None
) -> None:
    """Train every clients-per-round x local-steps of a grid, and compare what the target costs.

    With participation=turns it is groups x local-steps.

    Runs are kept in the store as they end: the same command after an interruption goes on where it
    was, and one for another fleet or energy weight trains nothing again.

    STUDY is a study file (TOML) or one that is built in: demo, setup1, setup2, setup3. KEY=VALUE
    takes the place of what it says; clients-per-round, groups and local-steps take lists, and
    without them a grid of about 6 x 6 is tried.

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
    from fedplan.studies.cells import SUFFIXES, write_summaries
    from fedplan.studies.grid import read_sweep

    swept = asked.read(
        lambda: read_sweep(asked.study, asked.overrides, required=needed_keys(runner)),
        lambda: check_runner(runner, federation),
        lambda: _check_engine(engine, federation),
        lambda: check_file(output, SUFFIXES),
    )
    if federation is not None and swept.study.training.law == "turns":
        raise InputError(
            "a grid of groups is made from what devices cost, which nobody knows of a federation "
            "before it trains. Leave participation=turns out, or --runner flower."
        )
    experiment = asked.build(swept.study, federation=federation)
    if federation is not None:
        recall = partial(_train, swept, "none")
        experiment, result = on_federation(asked, experiment, federation, recall, swept=swept)
    else:
        with asked.open_store() as store:
            result = _train(swept, engine, experiment, store, quiet=asked.quiet)
    if output is not None:
        write_summaries(output, result.runs)
    draw(asked.plot, lambda: _figure(experiment, result), otherwise="there is no run to draw")
    if asked.output_format == "json":
        print_json(_as_json(experiment, result))
    else:
        _print(experiment, result)
    if result.best is None:
        raise click.exceptions.Exit(1)


def _check_engine(engine: str, federation: str | None) -> None:
    if engine != "local" and federation is not None:
        raise InputError(f"--engine {engine} is for simulated runs: leave it out, or --runner.")


def _train(
    swept: SweptStudy, engine: str, experiment: Experiment, store: Store, *, quiet: bool = True
) -> Sweep:
    """Make the runs of the grid; with engine "none" a federation has made them all."""
    from fedplan.studies.sweep import sweep_study

    if (fleet := experiment.assumed_fleet) is None:
        raise AssertionError("a study without a fleet is refused")
    made_by = _ready(engine, experiment, quiet=quiet)
    with job_bar(quiet=quiet) as count:
        grid = swept.grid(fleet)
        return sweep_study(experiment, grid, store, engine=made_by, count=count)


def _ready(name: str, experiment: Experiment, *, quiet: bool) -> Engine:
    """The engine of this name; the local one has compiled what it needs."""
    if name == "none":
        from fedplan.studies.archive import NoEngine

        return NoEngine(experiment.num_clients, experiment.study.name)
    if name == "ray":
        from fedplan.studies.ray_engine import RayEngine

        return RayEngine(experiment)
    compile_kernels(experiment, quiet=quiet)
    return experiment.simulator


def _figure(experiment: Experiment, result: Sweep) -> Figure:
    from fedplan.studies.figures import sweep_figure

    return sweep_figure(result, experiment.study.name, result.message)


def _as_json(experiment: Experiment, result: Sweep) -> dict[str, Any]:
    return {
        "success": result.best is not None,
        "study": experiment.study.name,
        "target_loss": experiment.stop.target_loss,
        "unit": experiment.objective.unit,
        "cells": [asdict(cell) for cell in sorted(result.cells, key=lambda cell: cell.setting)],
        "best": result.best and asdict(result.best),
        "message": result.message,
    }


def _print(experiment: Experiment, result: Sweep) -> None:
    print_facts(_facts(experiment, result))
    _print_matrices(result)
    notes = [result.message]
    if any(cell.reached < cell.seeds for cell in result.cells):
        notes.insert(0, "Where it says 3 of 5, only so many of the seeds reached the target.")
    print_text(*notes)


def _facts(experiment: Experiment, result: Sweep) -> Iterator[tuple[str, str]]:
    study, best = experiment.study, result.best
    yield "study", f"{study.name}: {experiment.data_name}, {study.task.model}"
    yield "runs", f"{len(result.runs):,}"
    if best is not None:
        law, clients = best.participation, experiment.num_clients
        yield text.who_trains(law, best.clients_per_round, best.groups, clients)
        yield "local steps", f"[bold]{best.local_steps:,}[/]"
        yield "rounds", text.with_error(best.rounds, best.rounds_sd)
        yield "time", text.seconds(best.time_s)
        yield "energy", text.joules(best.energy_j)
        cost = text.with_error(best.cost, best.cost_error)
        yield "cost", f"{cost} {experiment.objective.unit}"


def _print_matrices(result: Sweep) -> None:
    """Costs against the best: one row per E, one column per K or number of groups."""
    cells = {cell.setting: cell for cell in result.cells}
    clients = sorted({k for k, _ in cells})
    steps = sorted({e for _, e in cells})
    by_turns = any(cell.clients_per_round is None for cell in result.cells)
    for start in range(0, len(clients), _MOST_COLUMNS):
        columns = clients[start : start + _MOST_COLUMNS]
        names = (f"{k:,} groups" if by_turns else f"K={k:,}" for k in columns)
        rows = (
            (f"{e:,}", *(_shown(cells.get((k, e)), result.best_of_all) for k in columns))
            for e in steps
        )
        print_table(("local steps", *names), rows)


def _shown(cell: Cell | None, best: Cell | None) -> str:
    if cell is None:  # so many groups did not pay at this E
        return ""
    if cell.reached < cell.seeds or best is None:
        return f"[dim]{cell.reached} of {cell.seeds}[/]"
    return "[bold]best[/]" if cell is best else text.difference(cell.cost / best.cost)
