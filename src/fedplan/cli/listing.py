"""`fedplan list`: the studies and experiments of a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import console, print_json
from fedplan.cli.stored import flat, local_time, short

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, StudyEntry


@click.command("list")
@store_options
def list_(store_url: str, output_format: str) -> None:
    """List what is stored: studies, experiments, and how many runs of each.

    Runs belong to an experiment: what is learnt and how, whatever K, E, the seed and the
    devices. Studies of the same experiment share its runs.

    \b
    Examples:
      fedplan list
      fedplan list --store sqlite:////data/fedplan.db --format json
    """
    from fedplan.store import Store

    with Store(store_url, readonly=True) as store:
        experiments = store.experiments()
        studies = [(study, list(store.steps(study))) for study in store.studies()]
    if output_format == "json":
        print_json(_as_json(store_url, studies, experiments))
    elif not experiments:
        click.echo(f"Nothing is stored in {store_url} yet.")
    else:
        _print_table(studies, experiments)


def _as_json(
    url: str, studies: list[tuple[StudyEntry, list[str]]], experiments: list[ExperimentEntry]
) -> dict[str, Any]:
    return {
        "success": True,
        "store": url,
        "studies": [
            {
                "name": study.name,
                "fingerprint": study.fingerprint,
                "experiment": study.experiment.fingerprint,
                "steps": steps,
                "num_runs": study.num_runs,
                "created": study.created,
            }
            for study, steps in studies
        ],
        "experiments": [asdict(experiment) for experiment in experiments],
    }


def _print_table(
    studies: list[tuple[StudyEntry, list[str]]], experiments: list[ExperimentEntry]
) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console()
    if studies:
        table = Table("study", "id", "experiment", "decided", box=None)
        table.add_column("runs", justify="right")
        table.add_column("made", no_wrap=True)
        for study, steps in studies:
            table.add_row(
                escape(study.name),
                short(study.fingerprint),
                short(study.experiment.fingerprint),
                escape(", ".join(steps) or "-"),
                f"{study.num_runs:,}",
                local_time(study.created),
            )
        out.print(table)
        out.print()
    table = Table(box=None)
    table.add_column("experiment", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("made", no_wrap=True)
    table.add_column("settings")
    for experiment in experiments:
        settings = (f"{key.rpartition('.')[2]}={value}" for key, value in flat(experiment.settings))
        table.add_row(
            short(experiment.fingerprint),
            f"{experiment.num_runs:,}",
            local_time(experiment.created),
            escape(" ".join(settings)),
        )
    out.print(table)
