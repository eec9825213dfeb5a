"""`fedplan plot`, `export` and `report`: write what is stored to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from fedplan.cli.options import Command, stack, store_options
from fedplan.cli.output import check_file, draw, print_json
from fedplan.errors import Collector, FedplanError, InputError, InputProblem
from fedplan.store import Entry, Store, check_export, export_runs, in_words, salvage
from fedplan.store.database import UNREADABLE, damaged, path_of
from fedplan.words import counted, short

if TYPE_CHECKING:
    from fedplan.studies.stored import Recalled


def open_stored(url: str) -> Store:
    """Open a store for reading; a missing one is refused."""
    store = Store(url, readonly=True)  # checks the URL first
    if not path_of(url).exists():
        store.close()
        message = "is not there. Check the URL; `fedplan run` and `fedplan sweep` make a store."
        raise InputError(InputProblem(source=f"store {path_of(url)}", message=message))
    return store


@contextmanager
def one_stored(url: str, name: str, *checks: Callable[[], None]) -> Iterator[tuple[Store, Entry]]:
    """The store, for reading, and its entry of this name; all problems are reported at once."""
    collector = Collector()
    for check in checks:
        collector.attempt(check)
    opened = collector.attempt(lambda: open_stored(url))
    with opened or collector.finished(opened) as store:
        entry = collector.attempt(lambda: find_stored(store, name, url))
        collector.finish()
        if entry is None:
            raise AssertionError("a missing entry is a collected problem")
        yield store, entry


def find_stored(store: Store, name: str, url: str) -> Entry:
    """The newest study of this name, or the one thing whose fingerprint begins like this."""
    studies = store.studies()
    named = [study for study in studies if study.name == name]
    if named:
        return named[-1]
    entries: list[Entry] = [*studies, *store.experiments()]
    found = [entry for entry in entries if name and entry.fingerprint.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(short(entry.fingerprint) for entry in found)
        raise InputError(f"{name} is the beginning of {len(found)}: {ids}. Give more of it.")
    near = get_close_matches(name, [study.name for study in studies], n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InputError(
        f"there is no study or experiment {name!r} in {url}.{hint} `fedplan list` shows what there "
        "is; --store says where."
    )


def reads_store(command: Command) -> Command:
    """A command with the options of a store, which reports what it cannot read as damaged."""

    @store_options
    @wraps(command)
    def guarded(*args: Any, store_url: str, **options: Any) -> Any:
        try:
            return command(*args, store_url=store_url, **options)
        except FedplanError:
            raise
        except UNREADABLE as error:
            raise damaged(path_of(store_url), error) from error

    return guarded


def _written(help_: str, **default: Any) -> Callable[[Command], Command]:
    """NAME and --output of a command that reads the store and writes a file."""
    output = click.option("--output", "-o", metavar="FILE", help=help_, **default)
    return stack(click.argument("name", metavar="NAME"), output, reads_store)


def _say(output_format: str, words: str, **document: Any) -> None:
    """Say what was done, in words or as JSON."""
    if output_format == "json":
        print_json({"success": True, **document})
    elif words:
        click.echo(words)


def _recall(url: str, name: str, check: Callable[[], None]) -> Recalled:
    with one_stored(url, name, check) as (store, entry):
        from fedplan.studies.stored import recall

        return recall(store, entry)


@click.command()
@_written("Where to: .png, .svg or .html.", required=True)
def plot(name: str, output: str, store_url: str, output_format: str) -> None:
    """Draw a stored study or sweep, as far as it got, without training anything.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows. The figure of a study shows its pilots and what was fitted to them, training and its
    predicted end, what other settings would cost, and the bill; that of a sweep the cost of every
    setting; that of other runs their losses.

    \b
    Examples:
      fedplan plot demo -o demo.png
      fedplan plot 3f2a -o study.html
      fedplan plot digits --store sqlite:///runs/fedplan.db -o digits.svg
    """
    found = _recall(store_url, name, lambda: check_file(output))

    from fedplan.studies.figures import recalled_figure

    draw(output, lambda: recalled_figure(found), otherwise="there is nothing to draw")
    _say(output_format, "", output=output, status=found.status)  # `draw` has its own words


@click.command()
@click.argument("name", metavar="NAME", required=False)
@click.option(
    "--salvage", is_flag=True, help="Copy whatever is readable in a damaged store into a new one."
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    help="Where to: .csv, .json or .parquet; .db with --salvage.",
)
@reads_store
def export(
    name: str | None, salvage: bool, output: str, store_url: str, output_format: str
) -> None:
    """Write the runs of a study or an experiment into a file, round by round.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows.

    \b
    Examples:
      fedplan export demo --output demo.csv
      fedplan export 3f2a --output runs.parquet     needs polars: pip install 'fedplan[frames]'
      fedplan export --salvage --output rescued.db
    """
    if salvage:
        _salvage(name, output, store_url, output_format)
        return
    if name is None:
        raise click.MissingParameter(param_hint="'NAME'", param_type="argument")
    with one_stored(store_url, name, lambda: check_export(output)) as (store, entry):
        num_runs = export_runs(store, entry, output)
    words = f"Exported: {counted(num_runs, 'run')} to {output}"
    _say(output_format, words, output=output, num_runs=num_runs)


def _salvage(name: str | None, output: str, store_url: str, output_format: str) -> None:
    if name is not None:
        raise InputError("--salvage copies the whole store. Leave NAME out.")
    open_stored(store_url).close()
    saved = salvage(store_url, output)
    tables = {table: {"saved": good, "of": all_} for table, (good, all_) in saved.items()}
    _say(output_format, f"Saved: {in_words(saved)} to {output}", output=output, **tables)


@click.command()
@_written("Where to: .html.", default="report.html", show_default=True)
def report(name: str, output: str, store_url: str, output_format: str) -> None:
    """Write a report on a study: one HTML file that works offline and on paper.

    NAME is a study's name (the newest of several), or the beginning of an id that `fedplan list`
    shows. Nothing is trained: an unfinished study is reported as far as it got.

    \b
    Examples:
      fedplan report demo
      fedplan report demo -o demo.html
      fedplan report 3f2a --store sqlite:///runs/fedplan.db -o study.html
    """
    found = _recall(store_url, name, lambda: check_file(output, (".html",)))

    from fedplan.web.report import write_report

    write_report(found, output)
    _say(output_format, f"Written: {output}", output=output, status=found.status)
