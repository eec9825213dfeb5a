"""`fedplan simulate`: train a study with FedAvg, on a virtual clock."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli import text
from fedplan.cli.output import draw, print_facts, print_json, print_table, print_text
from fedplan.cli.progress import round_bar
from fedplan.cli.training import Asked, asks, compile_kernels

if TYPE_CHECKING:
    from fedplan.core.records import RunRecord
    from fedplan.figures import Figure
    from fedplan.studies.experiment import Experiment

_MOST_ROWS = 12  # seeds up to which each has a row of its own
_NEEDED = ("clients-per-round", "local-steps")
# How to find something of a run, and how to write it.
Column = tuple[Callable[["RunRecord"], float | None], Callable[[float], str]]


@click.command()
@asks(stores=False)
def simulate(asked: Asked) -> None:
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
    from fedplan.studies.study_file import read_study

    study = asked.read(lambda: read_study(asked.study, asked.overrides, required=_NEEDED))
    experiment = asked.build(study)
    compile_kernels(experiment, quiet=asked.quiet)
    runs, steps_per_second = _run(experiment, quiet=asked.quiet)
    message = _message(experiment, runs)
    draw(asked.plot, lambda: _figure(experiment, runs, message), otherwise="no run has a round")
    if asked.output_format == "json":
        print_json(_as_json(experiment, runs, steps_per_second, message))
    else:
        _print(experiment, runs, steps_per_second)
        print_text(message)
    if not _sound(runs):
        raise click.exceptions.Exit(1)


def _run(experiment: Experiment, *, quiet: bool) -> tuple[list[RunRecord], float]:
    """The runs, and how many local steps they made a second, evaluation included."""
    from fedplan.studies.experiment import build_jobs

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


def _figure(experiment: Experiment, runs: list[RunRecord], message: str) -> Figure | None:
    from fedplan.figures import run_figure_data

    target, name = experiment.stop.target_loss, experiment.study.name
    if not any(run.rounds for run in runs):
        return None
    return run_figure_data(runs, name=name, target_loss=target, note=message)


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
        rounds = _spread([run.num_rounds for run in runs if run.status == "target"], text.amount)
        parts.append(f"{who('target')} reached the loss {stop.target_loss:g}, in {rounds} rounds.")
    elif stop.target_loss is not None:
        parts.append(f"No run reached the loss {stop.target_loss:g}.")
    else:
        finals = [loss for run in _sound(runs) if (loss := run.final_loss) is not None]
        parts += [f"The final loss is {_spread(finals, _loss)}."] if finals else []
    limits = {
        "rounds": f"{stop.max_rounds:,} rounds (rounds)",
        "time": f"{text.seconds(stop.max_time_s)} (max-time-s)",
        "energy": f"{text.joules(stop.max_energy_j)} (max-energy-j)",
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

    >>> _spread([1.0, 2.0, 3.0], text.amount), _spread([4.0], _loss), _spread([], _loss)
    ('2 ± 1', '4', '-')
    """
    if not values:
        return "-"
    mean = shown(statistics.fmean(values))
    if len(values) == 1:
        return mean
    return f"{mean} ± {shown(float(f'{statistics.stdev(values):.2g}'))}"


def _columns(experiment: Experiment) -> dict[str, Column]:
    """What the table shows of a run."""
    columns: dict[str, Column] = {
        "rounds": (lambda run: run.num_rounds, text.amount),
        "final loss": (lambda run: run.final_loss, _loss),
    }
    if experiment.fleet is not None:
        columns["time"] = (lambda run: run.time_s, text.seconds)
        if experiment.fleet.mean("step_energy_j") or experiment.fleet.mean("comm_energy_j"):
            columns["energy"] = (lambda run: run.energy_j, text.joules)
    return columns


def _print(experiment: Experiment, runs: Sequence[RunRecord], steps_per_second: float) -> None:
    columns = _columns(experiment)
    print_facts(_facts(experiment, runs, columns, steps_per_second))
    if 1 < len(runs) <= _MOST_ROWS:
        rows = (
            (
                str(run.seed),
                *(
                    "-" if (v := find(run)) is None else shown(v)
                    for find, shown in columns.values()
                ),
                run.status,
            )
            for run in runs
        )
        print_table(("seed", *columns, "ended by"), rows, left=("ended by",))


def _facts(
    experiment: Experiment,
    runs: Sequence[RunRecord],
    columns: dict[str, Column],
    steps_per_second: float,
) -> Iterator[tuple[str, str]]:
    study, setting = experiment.study, runs[0].setting
    yield "study", f"{study.name}: {experiment.data_name}, {study.task.model}"
    law, clients = setting.participation.law, experiment.num_clients
    yield text.who_trains(law, setting.clients_per_round, setting.groups, clients)
    yield "local steps", f"{setting.local_steps:,}"
    for name, (find, shown) in columns.items():
        values = [value for run in _sound(runs) if (value := find(run)) is not None]
        yield name, f"[bold]{_spread(values, shown)}[/]"
    statuses = Counter(run.status for run in runs)
    yield "ended by", ", ".join(f"{name} ({count})" for name, count in statuses.items())
    yield "speed", f"{text.amount(steps_per_second)} local steps/s"
