"""`fedplan reproduce`: the paper's tables, figures and theorems, measured beside the published."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedplan import InputError
from fedplan.cli.options import download_option, quiet_option, store_options, verbose_option
from fedplan.cli.output import note_kept, print_blocks, print_json
from fedplan.cli.progress import step_bar
from fedplan.cli.training import compile_kernels, fetch_data
from fedplan.words import Table, seconds

if TYPE_CHECKING:
    from fedplan_reproduction.reproduce import Reproduction
    from fedplan_reproduction.table1 import Cell

_SETUPS = ("setup1", "setup2", "setup3")


@click.command()
@click.argument("setup", metavar="SETUP", type=click.Choice([*_SETUPS, "all"]))
@click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--seeds", type=int, metavar="N", help="Runs a setting; without it 10, 1 and 20.")
@click.option("--quick", is_flag=True, help="2 seeds, a coarse grid, a higher target.")
@click.option("--table-only", is_flag=True, help="Table I alone: no figures, no checks.")
@click.option("--figure-only", is_flag=True, help="Figure and checks alone: no Table I.")
@click.option("--redraw", is_flag=True, help="Only draw the figure again, from FOLDER's tables.")
@click.option("--output", "-o", metavar="FOLDER", help="Where to; without it reproduction-SETUP.")
@store_options
@download_option
@quiet_option
@verbose_option
def reproduce(
    setup: str,
    overrides: tuple[str, ...],
    seeds: int | None,
    quick: bool,
    table_only: bool,
    figure_only: bool,
    redraw: bool,
    output: str | None,
    store_url: str,
    output_format: str,
    download: bool,
    quiet: bool,
) -> None:
    """Repeat an experiment of the paper, and compare it with the published results.

    SETUP is setup1, setup2, setup3 or all. Table I, the five panels of Figure 3, 4 or 5 with the
    paper's plan and fedplan's course in them, and what the theorems say, held against the runs: all
    goes into a folder, with a page that says what reproduces and what does not. Everything is kept
    in the store: the same command after an interruption goes on where it was. KEY=VALUE takes the
    place of what the study says.

    \b
    Examples:
      fedplan reproduce setup3 --quick
      fedplan reproduce setup1 --seeds 50 --table-only
      fedplan reproduce setup3 data-seed=1 --output draw-1
      fedplan reproduce setup2 --download schedule=harmonic rounds=100
      fedplan reproduce setup1 --redraw --output reproduction/results/setup1
      fedplan reproduce all --format json

    Exit codes: 0 measured, whether it reproduces or not, 1 failed, 2 wrong input.
    """
    if table_only and figure_only:
        raise InputError("--table-only and --figure-only leave nothing to do. Give one of them.")
    setups = _SETUPS if setup == "all" else (setup,)
    folders = [_folder(output, name, alone=setup != "all") for name in setups]
    _check_folders(output, folders)
    if redraw:
        from fedplan_reproduction.folder import draw

        for name, folder in zip(setups, folders, strict=True):
            picture = draw(folder, name)
            if output_format != "json":
                print_blocks([f"Drawn: {picture}"])
        if output_format == "json":
            print_json({"success": True, "output": [str(folder) for folder in folders]})
        return

    from fedplan.store import Store
    from fedplan_reproduction import reproduce as reproduction
    from fedplan_reproduction.folder import write_folder

    studies = [reproduction.study_of(name, overrides, quick=quick) for name in setups]
    if download:
        fetch_data(studies, quiet=quiet)

    # All of them first: what is missing of the last is said before the first is trained.
    prepared = [reproduction.prepare(name, overrides, seeds=seeds, quick=quick) for name in setups]
    if setup == "all" and output is not None:
        Path(output).mkdir(exist_ok=True)
    answers = []
    note_kept(store_url)
    with Store(store_url) as store:
        for one, folder in zip(prepared, folders, strict=True):
            compile_kernels(one.experiment, quiet=quiet)
            with step_bar(quiet=quiet) as progress:
                made = reproduction.reproduce(
                    one, store, table=not figure_only, figure=not table_only, report=progress
                )
            write_folder(made, folder, command=_command())
            if output_format == "json":
                answers.append(_as_json(made, folder))
            else:
                _print(made, folder)
    if output_format == "json":
        print_json({"success": True, "setups": answers})


def _folder(output: str | None, setup: str, *, alone: bool) -> Path:
    if output is None:
        return Path(f"reproduction-{setup}")
    return Path(output) if alone else Path(output) / setup


def _check_folders(output: str | None, folders: list[Path]) -> None:
    """Refuse a place that cannot be written before any work is done."""
    if output is not None and not Path(output).resolve().parent.is_dir():
        raise InputError(
            f"there is no folder {Path(output).parent} to write {output} into. Make it."
        )
    for folder in (*folders, *([Path(output)] if output else [])):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, and must be a folder. Give another --output.")


def _command() -> str:
    """What was typed."""
    return shlex.join(["fedplan", *sys.argv[1:]])


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "loss": cell.loss,
        "published_rounds": cell.published,
        "rounds": cell.mean,
        "rounds_sd": cell.sd if cell.mean is not None else None,
        "never": cell.never,
        "reproduces": cell.is_close,
    }


def _as_json(made: Reproduction, folder: Path) -> dict[str, Any]:
    from fedplan_reproduction.page import best_time, cautions, summary

    best = None if made.grid is None else best_time(made.grid)
    return {
        "setup": made.prepared.setup,
        "quick": made.prepared.quick,
        "seeds": len(made.prepared.seeds),
        "target_loss": made.prepared.target_loss,
        "took_s": made.took_s,
        "output": str(folder),
        "table1": [
            {
                "clients_per_round": row.clients_per_round,
                "local_steps": row.local_steps,
                "upper": _cell_json(row.upper),
                "lower": _cell_json(row.lower),
                "reproduces": row.is_close,
            }
            for row in made.table1
        ],
        "quickest": best
        and {
            "clients_per_round": best.clients_per_round,
            "local_steps": best.local_steps,
            "time_s": best.cost,
        },
        "plans": [asdict(one) for one in made.priced],
        "checks": [asdict(one) for one in made.checks],
        "cautions": cautions(made),
        "summary": summary(made),
    }


def _print(made: Reproduction, folder: Path) -> None:
    from fedplan_reproduction.page import cautions, rounds_of, summary

    blocks: list[str | Table] = []
    if made.table1:
        blocks.append(Table(*rounds_of(made), title=f"{made.prepared.setup}: rounds"))
    blocks += [
        "\n".join(f"- {line}" for line in [*cautions(made), *summary(made)]),
        f"Seeds: {len(made.prepared.seeds)}; {seconds(made.took_s)}: {folder / 'README.md'}",
    ]
    print_blocks(blocks)
