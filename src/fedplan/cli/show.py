"""`fedplan show`: what is known of one study or experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import store_options
from fedplan.cli.output import console, joules, print_json, seconds
from fedplan.cli.stored import find_stored, flat, local_time, short

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
    from fedplan.store import Store, StudyEntry, describe

    with Store(store_url, readonly=True) as store:
        entry = find_stored(store, name, store_url)
        known = describe(store, entry)
        experiment = entry.experiment if isinstance(entry, StudyEntry) else entry
        runs = store.runs(experiment.settings) if with_runs else None
    if output_format == "json":
        listed = None if runs is None else [asdict(run) for run in runs]
        print_json({"success": True, **known, "runs": listed})
    else:
        _print_facts(entry, known)
        if runs:
            _print_runs(runs)


def _print_facts(entry: StudyEntry | ExperimentEntry, known: Mapping[str, Any]) -> None:
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
    facts.add_row("runs", f"{entry.num_runs:,}")
    out.print(facts)
    for title in ("configuration", "settings", "steps"):
        if known.get(title):
            rows = Table.grid(padding=(0, 3))
            for key, value in flat(known[title]):
                rows.add_row(f"  {escape(key)}", escape(value))
            out.print(f"\n{'decided' if title == 'steps' else title}")
            out.print(rows)


def _print_runs(runs: list[RunEntry]) -> None:
    from rich.table import Table

    columns: dict[str, Callable[[RunEntry], str]] = {
        "K": lambda run: f"{run.clients_per_round:,}",
        "E": lambda run: f"{run.local_steps:,}",
        "seed": lambda run: str(run.seed),
        "rounds": lambda run: f"{run.num_rounds:,}",
        "final loss": lambda run: "-" if run.final_loss is None else f"{run.final_loss:.4g}",
    }
    if any(run.time_s for run in runs):
        columns["time"] = lambda run: seconds(run.time_s)
    if any(run.energy_j for run in runs):
        columns["energy"] = lambda run: joules(run.energy_j)
    table = Table(box=None)
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column("ended by")
    for run in runs:
        table.add_row(*(shown(run) for shown in columns.values()), run.status)
    out = console()
    out.print()
    out.print(table)
