"""`fedplan simulate`: train a study with FedAvg, on a virtual clock."""

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click

from fedplan.cli.output import Facts, draw, picked, print_result, study_in_words, who_trains
from fedplan.cli.progress import step_bar
from fedplan.cli.training import StudyRequest, compile_kernels, study_options
from fedplan.core.records import RunRecord
from fedplan.core.setting import Setting
from fedplan.figures import run_figure_data
from fedplan.studies.experiment import Experiment, build_jobs
from fedplan.studies.study_file import read_study
from fedplan.words import Table, amount, in_words, joules, seconds, table_of

_MOST_ROWS = 12  # seeds; of more, there is no table
_NEEDED = ("clients-per-round", "local-steps")


@click.command()
@study_options(stores=False)
def simulate(request: StudyRequest) -> None:
    """Simulate FedAvg, once for each seed.

    STUDY is a study file (TOML) or a built-in study: demo, setup1, setup2, setup3 (the paper's
    experiments). KEY=VALUE overrides it.

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
    experiment = request.build(request.read(read_study, required=_NEEDED))
    compile_kernels(experiment, quiet=request.quiet)
    runs, steps_per_second = _run(experiment, quiet=request.quiet)
    document = _as_json(experiment, runs, steps_per_second)
    name, target, note = experiment.study.name, experiment.stop.target_loss, document["message"]
    draw(
        request.plot,
        lambda: run_figure_data(runs, name=name, target_loss=target, note=note),
        when=any(run.rounds for run in runs),
        otherwise="no run has a round",
    )
    blocks = _blocks(experiment, runs[0].setting, document)
    print_result(request.output_format, document, blocks)


def _run(experiment: Experiment, *, quiet: bool) -> tuple[list[RunRecord], float]:
    """The runs, and their local steps per second, evaluation included."""
    jobs = build_jobs(experiment)
    with step_bar(quiet=quiet, rounds=len(jobs) * experiment.stop.max_rounds) as report:
        progress = None if report is None else partial(report, "training")
        start = time.perf_counter()
        runs = list(experiment.simulator.run_all(jobs, experiment.stop, progress=progress))
        took_s = time.perf_counter() - start
    return runs, sum(run.taken_part * run.local_steps for run in runs) / took_s


def _sound(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs that did not diverge: averages are over these."""
    return [run for run in runs if run.status != "diverged"]


def _message(experiment: Experiment, runs: Sequence[RunRecord]) -> str:
    """The result of the runs, and what to change if it went wrong."""
    training, stop = experiment.study.training, experiment.stop
    count: Counter[str] = Counter(run.status for run in runs)

    def who(status: str) -> str:
        return "The run" if len(runs) == 1 else f"{count[status]} of {len(runs)} runs"

    parts = []
    if count["target"]:
        rounds = _spread([run.num_rounds for run in runs if run.status == "target"])
        parts.append(f"{who('target')} reached the loss {stop.target_loss:g}, in {rounds} rounds.")
    elif stop.target_loss is not None:
        parts.append(f"No run reached the loss {stop.target_loss:g}.")
    else:
        finals = [loss for run in _sound(runs) if (loss := run.final_loss) is not None]
        parts += [f"The final loss is {_spread(finals)}."] if finals else []
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
    experiment: Experiment, runs: Sequence[RunRecord], steps_per_second: float
) -> dict[str, Any]:
    priced = experiment.fleet is not None
    training, setting = experiment.study.training, runs[0].setting
    return {
        "success": bool(_sound(runs)),
        "study": experiment.study.name,
        "participation": training.law,
        **picked(setting, "clients_per_round", "groups", "local_steps"),
        "dropout": training.dropout,
        "num_clients": experiment.simulator.num_clients,
        "target_loss": experiment.stop.target_loss,
        "runs": [
            {
                **picked(run, "seed", "status"),
                "rounds": run.num_rounds,
                **picked(run, "final_loss", "test_accuracy"),
                "target_reached": run.status == "target",
                "time_s": run.time_s if priced else None,
                "energy_j": run.energy_j if priced else None,
                "losses": list(run.losses),
            }
            for run in runs
        ],
        "local_steps_per_second": steps_per_second,
        "message": _message(experiment, runs),
    }


def _spread(values: Sequence[float], name: str = "") -> str:
    """Mean and standard deviation of values of this name, as far as there are any.

    >>> _spread([1.0, 2.0, 3.0]), _spread([4.0], "time_s"), _spread([])
    ('2 ± 1', '4 s', '-')
    """
    if not values:
        return "-"
    mean = in_words(statistics.fmean(values), name)
    if len(values) == 1:
        return mean
    return f"{mean} ± {in_words(float(f'{statistics.stdev(values):.2g}'), name)}"


def _blocks(
    experiment: Experiment, setting: Setting, document: dict[str, Any]
) -> Iterator[Facts | Table | str]:
    """The document as a terminal shows it."""
    runs, fleet = document["runs"], experiment.fleet
    columns = {"rounds": "rounds", "final loss": "final_loss"}
    if fleet is not None:
        columns["time"] = "time_s"
        if fleet.mean("step_energy_j") or fleet.mean("comm_energy_j"):
            columns["energy"] = "energy_j"
    law, clients = setting.participation.law, experiment.num_clients
    facts = [
        ("study", study_in_words(experiment)),
        who_trains(law, setting.clients_per_round, setting.groups, clients),
        ("local steps", f"{setting.local_steps:,}"),
    ]
    for name, key in columns.items():
        found = (run[key] for run in runs if run["status"] != "diverged")
        values = [value for value in found if value is not None]
        facts.append((name, f"[bold]{_spread(values, key)}[/]"))
    ends = Counter(run["status"] for run in runs)
    facts.append(("ended by", ", ".join(f"{name} ({count})" for name, count in ends.items())))
    speed = amount(document["local_steps_per_second"])
    yield Facts([*facts, ("speed", f"{speed} local steps/s")])
    if 1 < len(runs) <= _MOST_ROWS:
        yield table_of(runs, {"seed": "seed", **columns, "ended by": "status"})
    yield document["message"]
