"""`fedplan show`: what is known of one study or experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.decided import decided
from fedplan.cli.options import store_options
from fedplan.cli.output import console, joules, print_json, seconds
from fedplan.cli.stored import flat, local_time, one_stored, short
from fedplan.cli.study_runs import ended_by, runs_of_experiment, runs_of_study

if TYPE_CHECKING:
    from fedplan.store import ExperimentEntry, RunEntry, StudyEntry


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
    from rich.table import Table

    out = console()
    facts = Table.grid(padding=(0, 3))
    if "name" in known:
        facts.add_row("study", f"[bold]{escape(known['name'])}[/] ({short(entry.fingerprint)})")
        facts.add_row("experiment", short(known["experiment"]["fingerprint"]))
        made_with = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
        facts.add_row("made", f"{local_time(entry.created)}, with {made_with}")
    else:
        facts.add_row("experiment", f"[bold]{short(entry.fingerprint)}[/]")
        facts.add_row("made", local_time(entry.created))
    others = f" (its experiment has {entry.num_runs:,})" if entry.num_runs > num_runs else ""
    facts.add_row("runs", f"{num_runs:,}{others}")
    out.print(facts)
    for title, lines in (
        ("configuration", flat(known.get("configuration", {}))),
        ("settings", flat(known.get("settings", {}))),
        ("decided", decided(known.get("steps", {}))),
    ):
        rows = Table.grid(padding=(0, 3))
        for key, value in lines:
            rows.add_row(f"  {escape(key)}", escape(value))
        if rows.row_count:
            out.print(f"\n{title}")
            out.print(rows)


def _print_runs(made: list[tuple[RunEntry, str]]) -> None:
    from rich.table import Table

    runs = [run for run, _ in made]

    columns: dict[str, Callable[[RunEntry], str]] = {
        "K": lambda run: _count(run.clients_per_round),
        "E": lambda run: f"{run.local_steps:,}",
        "seed": lambda run: str(run.seed),
        "rounds": lambda run: f"{run.num_rounds:,}",
        "final loss": lambda run: "-" if run.final_loss is None else f"{run.final_loss:.4g}",
    }
    if any(run.groups for run in runs):
        columns["groups"] = lambda run: _count(run.setting.groups)
    if any(run.time_s for run in runs):
        columns["time"] = lambda run: seconds(run.time_s)
    if any(run.energy_j for run in runs):
        columns["energy"] = lambda run: joules(run.energy_j)
    table = Table(box=None)
    for name in columns:
        table.add_column(name, justify="right")
    for name in ("participation", "course", "made for", "ended by"):
        table.add_column(name)
    for run, role in made:
        cells = (shown(run) for shown in columns.values())
        law = run.setting.participation.law
        course = run.identity.partition("/")[0] or "fixed"
        table.add_row(*cells, law, course, role or "-", ended_by(run, role))
    out = console()
    out.print()
    out.print(table)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
