"""`fedplan simulate`: train a study with FedAvg, on a virtual clock."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import download_option, output_options, quiet_option
from fedplan.cli.output import (
    amount,
    check_plot,
    console,
    joules,
    print_json,
    save_plot,
    say_not_drawn,
    seconds,
    who_trains,
)
from fedplan.cli.preparing import build, compile_kernels, read_checked
from fedplan.cli.progress import round_bar

if TYPE_CHECKING:
    from fedplan.core.records import RunRecord
    from fedplan.studies.building import Experiment

_MOST_ROWS = 12  # seeds up to which each has a row of its own
_NEEDED = ("clients-per-round", "local-steps")


@click.command()
@click.argument("study", metavar="STUDY")
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@output_options
@download_option
@quiet_option
def simulate(
    study: str,
    overrides: tuple[str, ...],
    output_format: str,
    plot: str | None,
    download: bool,
    quiet: bool,
) -> None:
    """Train with FedAvg, simulated, once a seed.

    STUDY is a study file (TOML) or one that is built in: demo, setup1, setup2, setup3 (the paper's
    experiments). KEY=VALUE takes the place of what it says.

    \b
    Examples:
      fedplan simulate demo --plot demo.png
      fedplan simulate setup3 clients-per-round=20 local-steps=45 seeds=50
      fedplan simulate demo participation=turns groups=4
      fedplan simulate demo participation=shuffled dropout=0.1
      fedplan simulate setup2 --download target-loss=0.2
      fedplan simulate setup1 data=mnist target-loss=0.5 --format json
      fedplan simulate study.toml file=fleet.csv learning-rate=0.05
    """
    from fedplan.studies import read_study

    read = read_checked(
        lambda: read_study(study, overrides, required=_NEEDED), lambda: check_plot(plot)
    )
    experiment = build(read, download=download, quiet=quiet)
    compile_kernels(experiment, quiet=quiet)
    runs, steps_per_second = _run(experiment, quiet=quiet)
    message = _message(experiment, runs)
    if plot is not None and any(run.rounds for run in runs):
        _draw(experiment, runs, message, plot)
    elif plot is not None:
        say_not_drawn(plot, "no run has a round")
    if output_format == "json":
        print_json(_as_json(experiment, runs, steps_per_second, message))
    else:
        _print_table(experiment, runs, steps_per_second, message)
    if not _sound(runs):
        raise click.exceptions.Exit(1)


def _run(experiment: Experiment, *, quiet: bool) -> tuple[list[RunRecord], float]:
    """The runs, and how many local steps they made a second, evaluation included."""
    from fedplan.studies.settings import build_jobs

    jobs = build_jobs(experiment)
    runs = []
    with round_bar(jobs, experiment.stop.max_rounds, quiet=quiet) as bar:
        progress = None if bar is None else bar.report
        start = time.perf_counter()
        for run in experiment.simulator.run_all(jobs, experiment.stop, progress=progress):
            runs.append(run)
            if bar is not None:
                bar.finish(run)
        took_s = time.perf_counter() - start
    steps = sum(run.taken_part * run.local_steps for run in runs)
    return runs, steps / took_s


def _draw(experiment: Experiment, runs: list[RunRecord], message: str, path: str) -> None:
    from fedplan.figures import run_figure_data

    target = experiment.stop.target_loss
    name = experiment.study.name
    save_plot(run_figure_data(runs, name=name, target_loss=target, note=message), path)


def _sound(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs that did not diverge: averages are over these."""
    return [run for run in runs if run.status != "diverged"]


def _message(experiment: Experiment, runs: Sequence[RunRecord]) -> str:
    """What came of the runs, and what to change where it went wrong."""
    training, stop = experiment.study.training, experiment.stop
    count: Counter[str] = Counter(run.status for run in runs)

    def who(status: str) -> str:
        return "The run" if len(runs) == 1 else f"{count[status]} of {len(runs)} runs"

    parts = []
    if count["target"]:
        rounds = _spread([run.num_rounds for run in runs if run.status == "target"], amount)
        parts.append(f"{who('target')} reached the loss {stop.target_loss:g}, in {rounds} rounds.")
    elif stop.target_loss is not None:
        parts.append(f"No run reached the loss {stop.target_loss:g}.")
    else:
        finals = [loss for run in _sound(runs) if (loss := run.final_loss) is not None]
        parts += [f"The final loss is {_spread(finals, _loss)}."] if finals else []
    limits = {
        "rounds": f"{stop.max_rounds:,} rounds (rounds)",
        "time": f"{seconds(stop.max_time_s)} (max-time-s)",
        "energy": f"{joules(stop.max_energy_j)} (max-energy-j)",
    }
    parts += [
        f"{who(status)} ended at the limit of {limit}."
        for status, limit in limits.items()
        if count[status]
    ]
    if count["diverged"]:
        parts.append(
            f"{who('diverged')} diverged: lower learning-rate "
            f"(now {training.learning_rate:g}) or local-steps (now {training.local_steps})."
        )
    return " ".join(parts)


def _as_json(
    experiment: Experiment, runs: Sequence[RunRecord], steps_per_second: float, message: str
) -> dict[str, Any]:
    priced = experiment.fleet is not None
    training, setting = experiment.study.training, runs[0].setting
    return {
        "success": bool(_sound(runs)),
        "study": experiment.study.name,
        "participation": training.law,
        "clients_per_round": setting.clients_per_round,
        "groups": setting.groups,
        "local_steps": setting.local_steps,
        "dropout": training.dropout,
        "num_clients": experiment.simulator.num_clients,
        "target_loss": experiment.stop.target_loss,
        "runs": [
            {
                "seed": run.seed,
                "status": run.status,
                "rounds": run.num_rounds,
                "final_loss": run.final_loss,
                "target_reached": run.status == "target",
                "time_s": run.time_s if priced else None,
                "energy_j": run.energy_j if priced else None,
                "losses": list(run.losses),
            }
            for run in runs
        ],
        "local_steps_per_second": steps_per_second,
        "message": message,
    }


def _loss(value: float) -> str:
    return f"{value:.4g}"


def _spread(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """Mean and standard deviation, as far as there are any.

    >>> _spread([1.0, 2.0, 3.0], amount), _spread([4.0], amount), _spread([], amount)
    ('2 ± 1', '4', '-')
    """
    if not values:
        return "-"
    mean = shown(statistics.fmean(values))
    if len(values) == 1:
        return mean
    return f"{mean} ± {shown(float(f'{statistics.stdev(values):.2g}'))}"


def _columns(
    experiment: Experiment,
) -> dict[str, tuple[Callable[[RunRecord], float | None], Callable[[float], str]]]:
    """What the table shows of a run: how to find it and how to write it."""
    columns: dict[str, Any] = {
        "rounds": (lambda run: run.num_rounds, amount),
        "final loss": (lambda run: run.final_loss, _loss),
    }
    if experiment.fleet is not None:
        columns["time"] = (lambda run: run.time_s, seconds)
        if experiment.fleet.mean("step_energy_j") or experiment.fleet.mean("comm_energy_j"):
            columns["energy"] = (lambda run: run.energy_j, joules)
    return columns


def _print_table(
    experiment: Experiment, runs: Sequence[RunRecord], steps_per_second: float, message: str
) -> None:
    from rich.table import Table

    out = console()
    columns = _columns(experiment)
    facts = Table.grid(padding=(0, 3))
    facts.add_row(
        "study", f"{experiment.study.name}: {experiment.data_name}, {experiment.study.task.model}"
    )
    setting = runs[0].setting
    law, clients = setting.participation.law, experiment.num_clients
    facts.add_row(*who_trains(law, setting.clients_per_round, setting.groups, clients))
    facts.add_row("local steps", f"{setting.local_steps:,}")
    for name, (find, shown) in columns.items():
        values = [value for run in _sound(runs) if (value := find(run)) is not None]
        facts.add_row(name, f"[bold]{_spread(values, shown)}[/]")
    statuses = Counter(run.status for run in runs)
    facts.add_row("ended by", ", ".join(f"{name} ({count})" for name, count in statuses.items()))
    facts.add_row("speed", f"{amount(steps_per_second)} local steps/s")
    out.print(facts)
    if 1 < len(runs) <= _MOST_ROWS:
        rows = Table(box=None)
        for name in ("seed", *columns, "ended by"):
            rows.add_column(name, justify="right" if name != "ended by" else "left")
        for run in runs:
            cells = [
                "-" if (value := find(run)) is None else shown(value)
                for find, shown in columns.values()
            ]
            rows.add_row(str(run.seed), *cells, run.status)
        out.print()
        out.print(rows)
    out.print()
    out.print(message, markup=False)
