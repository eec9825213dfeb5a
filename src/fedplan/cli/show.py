"""`fedplan list` and `fedplan show`: what a store has, and what is known of one of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli import text
from fedplan.cli.decided import decided
from fedplan.cli.options import store_options
from fedplan.cli.output import console, print_facts, print_json, print_table
from fedplan.cli.stored import flat, local_time, one_stored, open_stored, short
from fedplan.cli.study_runs import ended_by, runs_of_experiment, runs_of_study

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, RunEntry, StudyEntry

_OPEN = ("-", "Infinity")  # of a key that is not given, and of a limit that is none


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
            {
                "name": study.name,
                "fingerprint": study.fingerprint,
                "experiment": study.experiment.fingerprint,
                "differs": differs,
                "steps": list(store.steps(study)),
                "num_runs": len(runs_of_study(store, study, experiments)),
                "created": study.created,
            }
            for study, differs in zip(entries, _differences(entries), strict=True)
        ]
    if output_format == "json":
        listed = [asdict(one) for one in experiments]
        print_json({"success": True, "store": store_url, "studies": studies, "experiments": listed})
    elif not experiments:
        click.echo(f"Nothing is stored in {store_url} yet.")
    else:
        _print_list(studies, experiments)


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


def _print_list(studies: list[dict[str, Any]], experiments: list[ExperimentEntry]) -> None:
    from rich.markup import escape

    if studies:
        rows = (
            (
                escape(study["name"]),
                short(study["fingerprint"]),
                short(study["experiment"]),
                escape(" ".join(f"{k}={v}" for k, v in study["differs"].items()) or "-"),
                escape(", ".join(study["steps"]) or "-"),
                f"{study['num_runs']:,}",
                local_time(study["created"]),
            )
            for study in studies
        )
        names = ("study", "id", "experiment", "differs by", "decided", "runs", "made")
        left = {*names} - {"runs"}
        print_table(names, rows, left=left, whole=("id", "experiment", "made"), below=False)
        click.echo()
    made = (
        (
            short(one.fingerprint),
            f"{one.num_runs:,}",
            local_time(one.created),
            escape(" ".join(f"{k.rpartition('.')[2]}={v}" for k, v in flat(one.settings))),
        )
        for one in experiments
    )
    head = ("experiment", "runs", "made", "settings")
    left = {*head} - {"runs"}
    print_table(head, made, left=left, whole=head[:3], below=False)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--runs", "with_runs", is_flag=True, help="List its runs, too.")
@store_options
def show(name: str, with_runs: bool, store_url: str, output_format: str) -> None:
    """Show a study or an experiment: its settings, what was decided, its runs.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows.

    \b
    Examples:
      fedplan show demo
      fedplan show 3f2a --runs
      fedplan show demo --runs --format json
    """
    from fedplan.store import StudyEntry, describe

    with one_stored(store_url, name) as (store, entry):
        known = describe(store, entry)
        if isinstance(entry, StudyEntry):
            runs = runs_of_study(store, entry, store.experiments())
        else:
            runs = runs_of_experiment(store, entry, store.studies())
    if output_format == "json":
        listed = [{**run.to_dict(), "made_for": role or None} for run, role in runs]
        print_json(
            {"success": True, **known, "num_runs": len(runs), "runs": listed if with_runs else None}
        )
    else:
        _print_facts(entry, known, len(runs))
        if with_runs and runs:
            _print_runs(runs)


def _print_facts(
    entry: StudyEntry | ExperimentEntry, known: Mapping[str, Any], num_runs: int
) -> None:
    from rich.markup import escape

    facts = [("experiment", f"[bold]{short(entry.fingerprint)}[/]")]
    made = local_time(entry.created)
    if "name" in known:
        facts = [
            ("study", f"[bold]{escape(known['name'])}[/] ({short(entry.fingerprint)})"),
            ("experiment", short(known["experiment"]["fingerprint"])),
        ]
        made += ", with " + ", ".join(f"{name} {one}" for name, one in known["versions"].items())
    others = f" (its experiment has {entry.num_runs:,})" if entry.num_runs > num_runs else ""
    print_facts([*facts, ("made", made), ("runs", f"{num_runs:,}{others}")])
    for title, lines in (
        ("configuration", flat(known.get("configuration", {}))),
        ("settings", flat(known.get("settings", {}))),
        ("decided", decided(known.get("steps", {}))),
    ):
        if rows := [(f"  {escape(key)}", escape(value)) for key, value in lines]:
            console().print(f"\n{title}")
            print_facts(rows)


def _print_runs(made: list[tuple[RunEntry, str]]) -> None:
    runs = [run for run, _ in made]
    columns: dict[str, Callable[[RunEntry], str]] = {
        "K": lambda run: text.count(run.clients_per_round),
        "E": lambda run: f"{run.local_steps:,}",
        "seed": lambda run: str(run.seed),
        "rounds": lambda run: f"{run.num_rounds:,}",
        "final loss": lambda run: "-" if run.final_loss is None else f"{run.final_loss:.4g}",
    }
    if any(run.groups for run in runs):
        columns["groups"] = lambda run: text.count(run.groups)
    if any(run.time_s for run in runs):
        columns["time"] = lambda run: text.seconds(run.time_s)
    if any(run.energy_j for run in runs):
        columns["energy"] = lambda run: text.joules(run.energy_j)
    last = ("participation", "course", "made for", "ended by")
    rows = (
        (
            *(shown(run) for shown in columns.values()),
            run.law,
            run.course,
            role or "-",
            ended_by(run, role),
        )
        for run, role in made
    )
    print_table((*columns, *last), rows, left=last)
