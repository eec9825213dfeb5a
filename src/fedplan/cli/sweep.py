"""`fedplan sweep`: every setting of a grid trained to the target, and what each costs."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.live import check_runner, needed_keys, on_federation, runner_options
from fedplan.cli.options import (
    download_option,
    plot_option,
    quiet_option,
    store_options,
    verbose_option,
)
from fedplan.cli.output import (
    amount,
    check_file,
    check_plot,
    console,
    difference,
    joules,
    note_kept,
    print_json,
    save_plot,
    seconds,
    who_trains,
)
from fedplan.cli.preparing import build, compile_kernels, read_checked
from fedplan.cli.progress import job_bar
from fedplan.errors import InputError

if TYPE_CHECKING:
    from fedplan.store import Store
    from fedplan.studies.archive import Engine
    from fedplan.studies.building import Experiment
    from fedplan.studies.grid import SweptStudy
    from fedplan.studies.sweep import Cell, Sweep

_MOST_COLUMNS = 10  # of the matrix side by side; more go below


@click.command()
@click.argument("study", metavar="STUDY")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@store_options
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where runs are made: this machine, or a Ray cluster ($RAY_ADDRESS).",
)
@runner_options
@plot_option
@click.option("--output", "-o", metavar="FILE", help="Also write a row a run: .csv.")
@download_option
@quiet_option
@verbose_option
def sweep(
    study: str,
    overrides: tuple[str, ...],
    store_url: str,
    output_format: str,
    engine: str,
    runner: str,
    federation: str | None,
    plot: str | None,
    output: str | None,
    download: bool,
    quiet: bool,
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
    from fedplan.store import Store
    from fedplan.studies.grid import read_sweep
    from fedplan.studies.summary import SUFFIXES, write_summaries

    read = read_checked(
        lambda: read_sweep(study, overrides, required=needed_keys(runner)),
        lambda: check_runner(runner, federation),
        lambda: _check_engine(engine, federation),
        lambda: check_plot(plot),
        lambda: check_file(output, SUFFIXES),
    )

    from fedplan.studies.sweep import sweep_study

    experiment = build(read.study, download=download, quiet=quiet, federation=federation)
    note_kept(store_url)
    if federation is not None:
        experiment, result = on_federation(
            experiment, federation, store_url, partial(_recall, read), quiet=quiet, swept=read
        )
    else:
        if experiment.fleet is None:
            raise AssertionError("a study without a fleet is refused when it is read")
        with Store(store_url) as store:
            made_by = _ready(engine, experiment, quiet=quiet)
            with job_bar(quiet=quiet) as count:
                result = sweep_study(
                    experiment, read.grid(experiment.fleet), store, engine=made_by, count=count
                )
    if output is not None:
        write_summaries(output, result.runs)
    if plot is not None:
        from fedplan.studies.picture import sweep_figure

        save_plot(sweep_figure(result, experiment.study.name, result.message), plot)
    if output_format == "json":
        print_json(_as_json(experiment, result))
    else:
        _print_table(experiment, result)
    if result.best is None:
        raise click.exceptions.Exit(1)


def _check_engine(engine: str, federation: str | None) -> None:
    if engine != "local" and federation is not None:
        raise InputError(f"--engine {engine} is for simulated runs: leave it out, or --runner.")


def _recall(swept: SweptStudy, experiment: Experiment, store: Store) -> Sweep:
    """The sweep from its runs in the store, which a federation has made."""
    from fedplan.studies.archive import NoEngine
    from fedplan.studies.sweep import sweep_study

    if experiment.fleet is None:
        raise AssertionError("devices that have trained were profiled")
    engine = NoEngine(experiment.num_clients, experiment.study.name)
    return sweep_study(experiment, swept.grid(experiment.fleet), store, engine=engine)


def _ready(name: str, experiment: Experiment, *, quiet: bool) -> Engine:
    """The engine of this name; the local one has compiled what it needs."""
    if name == "ray":
        from fedplan.studies.ray_engine import RayEngine

        return RayEngine(experiment)
    compile_kernels(experiment, quiet=quiet)
    return experiment.simulator


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


def _print_table(experiment: Experiment, result: Sweep) -> None:
    from rich.table import Table

    out = console()
    study, best = experiment.study, result.best
    facts = Table.grid(padding=(0, 3))
    facts.add_row("study", f"{study.name}: {experiment.data_name}, {study.task.model}")
    facts.add_row("runs", f"{len(result.runs):,}")
    if best is not None:
        law, clients = best.participation, experiment.num_clients
        facts.add_row(*who_trains(law, best.clients_per_round, best.groups, clients))
        facts.add_row("local steps", f"[bold]{best.local_steps:,}[/]")
        facts.add_row("rounds", _with_error(best.rounds, best.rounds_sd))
        facts.add_row("time", seconds(best.time_s))
        facts.add_row("energy", joules(best.energy_j))
        unit = experiment.objective.unit
        facts.add_row("cost", f"{_with_error(best.cost, best.cost_error)} {unit}")
    out.print(facts)
    for table in _matrices(result):
        out.print()
        out.print(table)
    out.print()
    if any(cell.reached < cell.seeds for cell in result.cells):
        out.print("Where it says 3 of 5, only so many of the seeds reached the target.\n")
    out.print(result.message, markup=False)


def _with_error(value: float, error: float) -> str:
    return amount(value) if math.isnan(error) else f"{amount(value)} ± {amount(error)}"


def _matrices(result: Sweep) -> list[Any]:
    """Costs against the best: one row per E, one column per K or number of groups."""
    from rich.table import Table

    cells = {cell.setting: cell for cell in result.cells}
    clients = sorted({k for k, _ in cells})
    steps = sorted({e for _, e in cells})
    by_turns = any(cell.clients_per_round is None for cell in result.cells)
    tables = []
    for start in range(0, len(clients), _MOST_COLUMNS):
        columns = clients[start : start + _MOST_COLUMNS]
        table = Table(box=None)
        table.add_column("local steps", justify="right")
        for k in columns:
            table.add_column(f"{k:,} groups" if by_turns else f"K={k:,}", justify="right")
        for e in steps:
            shown = (_shown(cells.get((k, e)), result.best_of_all) for k in columns)
            table.add_row(f"{e:,}", *shown)
        tables.append(table)
    return tables


def _shown(cell: Cell | None, best: Cell | None) -> str:
    if cell is None:  # so many groups did not pay at this E
        return ""
    if cell.reached < cell.seeds or best is None:
        return f"[dim]{cell.reached} of {cell.seeds}[/]"
    return "[bold]best[/]" if cell is best else difference(cell.cost / best.cost)
