"""`fedplan list`: the studies and experiments of a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import console, print_json
from fedplan.cli.stored import flat, local_time, open_stored, short
from fedplan.cli.study_runs import runs_of_study

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, StudyEntry


_OPEN = ("-", "Infinity")  # of a key that is not given, and of a limit that is none


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A study, with what tells it from others."""

    entry: StudyEntry
    steps: tuple[str, ...]
    num_runs: int
    differs: dict[str, str]


@click.command("list")
@store_options
def list_(store_url: str, output_format: str) -> None:
    """List what is stored: studies, experiments, and how many runs of each.

    Runs belong to an experiment: what is learnt and how, whatever K, E, the seed and the
    devices. Studies of the same experiment share its runs, and each counts those it has used.
    Studies of one name are told apart by their id, and by where they differ.

    \b
    Examples:
      fedplan list
      fedplan list --store sqlite:////data/fedplan.db --format json
    """
    with open_stored(store_url) as store:
        experiments, entries = store.experiments(), store.studies()
        studies = [
            _Listed(
                entry=study,
                steps=tuple(store.steps(study)),
                num_runs=len(runs_of_study(store, study, experiments)),
                differs=differs,
            )
            for study, differs in zip(entries, _differences(entries), strict=True)
        ]
    if output_format == "json":
        print_json(_as_json(store_url, studies, experiments))
    elif not experiments:
        click.echo(f"Nothing is stored in {store_url} yet.")
    else:
        _print_table(studies, experiments)


def _differences(studies: list[StudyEntry]) -> Iterator[dict[str, str]]:
    """Of each study, what it says where others of its name say something else.

    What it leaves open is left out: the others say it.
    """
    said = {study.fingerprint: dict(flat(study.configuration)) for study in studies}
    for study in studies:
        others = [said[one.fingerprint] for one in studies if one.name == study.name]
        yield {
            key.rpartition(".")[2]: value
            for key, value in said[study.fingerprint].items()
            if value not in _OPEN and any(other.get(key) != value for other in others)
        }


def _as_json(
    url: str, studies: list[_Listed], experiments: list[ExperimentEntry]
) -> dict[str, Any]:
    return {
        "success": True,
        "store": url,
        "studies": [
            {
                "name": study.entry.name,
                "fingerprint": study.entry.fingerprint,
                "experiment": study.entry.experiment.fingerprint,
                "differs": study.differs,
                "steps": study.steps,
                "num_runs": study.num_runs,
                "created": study.entry.created,
            }
            for study in studies
        ],
        "experiments": [asdict(experiment) for experiment in experiments],
    }


def _print_table(studies: list[_Listed], experiments: list[ExperimentEntry]) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console()
    if studies:
        table = Table(box=None)
        for title in ("study", "id", "experiment"):
            table.add_column(title, no_wrap=title != "study")
        table.add_column("differs by")
        table.add_column("decided")
        table.add_column("runs", justify="right")
        table.add_column("made", no_wrap=True)
        for study in studies:
            table.add_row(
                escape(study.entry.name),
                short(study.entry.fingerprint),
                short(study.entry.experiment.fingerprint),
                escape(" ".join(f"{key}={value}" for key, value in study.differs.items()) or "-"),
                escape(", ".join(study.steps) or "-"),
                f"{study.num_runs:,}",
                local_time(study.entry.created),
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
