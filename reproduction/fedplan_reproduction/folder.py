"""The folder of a reproduction: tables and figures with their data, and a page about them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedplan import InputError
from fedplan.atomic import draft_of
from fedplan.figures import Figure, convergence_data, save_figure
from fedplan_reproduction.grid import TrainedGrid
from fedplan_reproduction.page import page_text
from fedplan_reproduction.reproduce import Reproduction
from fedplan_reproduction.table1 import Row
from fedplan_reproduction.total_time import total_time_data
from fedplan_reproduction.weights_figure import weights_figure

CURVES_OVER_STEPS, CURVES_OVER_CLIENTS = "curves-steps.png", "curves-clients.png"
TIMES, WEIGHTS = "times.png", "weights.png"

_PILOTS = (
    "clients_per_round", "local_steps", "upper_loss", "lower_loss", "rounds_to_upper",
    "rounds_to_lower", "seed",
)  # fmt: skip
_TABLE_1 = (
    "clients_per_round", "local_steps", "loss", "published_rounds", "rounds", "rounds_sd", "seeds",
    "never", "within_10_percent_or_3_rounds",
)  # fmt: skip
_LINES = ("figure", "line", "x_name", "x", "y_name", "y", "spread")


def write_folder(made: Reproduction, folder: Path, *, command: str) -> list[Path]:
    """Write everything into the folder, which is made if need be; says which files."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror}). Give another --output."
        ) from error
    _write(folder / "table1.csv", _TABLE_1, _table1_rows(made.table1))
    _write(folder / "pilots.csv", _PILOTS, _pilot_rows(made.table1))
    figures = {} if made.grid is None else figures_of(made, made.grid)
    for name, figure in figures.items():
        save_figure(figure, folder / name)
    curves = [name for name in (CURVES_OVER_STEPS, CURVES_OVER_CLIENTS) if name in figures]
    tables = {"curves.csv": curves, "times.csv": [TIMES], "weights.csv": [WEIGHTS]}
    for table, names in tables.items():
        rows = [row for name in names if name in figures for row in _line_rows(name, figures[name])]
        if rows:
            _write(folder / table, _LINES, rows)
    page = folder / "README.md"
    with draft_of(page) as draft:
        draft.write_text(
            page_text(made, command=command, pictures=tuple(figures)), encoding="utf-8"
        )
    return sorted(path for path in folder.iterdir() if path.is_file())


def figures_of(made: Reproduction, grid: TrainedGrid) -> dict[str, Figure]:
    """The figures that there are runs for, by the name of their file."""
    prepared = made.prepared
    target, setup = prepared.target_loss, prepared.setup
    seeds = len(prepared.seeds)
    note = (
        f"Mean and standard deviation over the seeds ({seeds}), of training samples; a line ends "
        "where half of its runs have."
    )
    groups = {
        CURVES_OVER_STEPS: (
            f"{setup}: K={grid.shown_clients}, different E",
            [run for run in grid.shown if run.clients_per_round == grid.shown_clients],
        ),
        CURVES_OVER_CLIENTS: (
            f"{setup}: E={grid.shown_steps}, different K",
            [run for run in grid.shown if run.local_steps == grid.shown_steps],
        ),
    }
    figures = {
        name: convergence_data(runs, title=title, target_loss=target, note=note)
        for name, (title, runs) in groups.items()
        if any(run.status != "diverged" and run.final_loss is not None for run in runs)
    }
    totals = grid.total_times()
    clients = [total.clients_per_round for total in totals]
    steps = [total.local_steps for total in totals]
    if len(set(clients)) < len(clients) or len(set(steps)) < len(steps):
        note = f"Loss {target:g}; mean and standard deviation over the seeds ({seeds})."
        title = f"{setup}: time to the target"
        figures[TIMES] = total_time_data(totals, title=title, note=note)
    if any(math.isfinite(one.relative_cost) for one in made.priced):
        figures[WEIGHTS] = weights_figure(
            made.priced,
            title=f"{setup}: cost against the energy weight",
            note=f"Loss {target:g}; fedplan with every round, the paper without its pilots; "
            + ("standard errors over every other seed." if seeds > 3 else "priced on one seed."),
        )
    return figures


def _table1_rows(rows: Sequence[Row]) -> Iterable[Sequence[object]]:
    for row in rows:
        for cell in (row.upper, row.lower):
            yield (
                row.clients_per_round,
                row.local_steps,
                cell.loss,
                "" if cell.published is None else f"{cell.published:g}",
                "never" if cell.mean is None else cell.mean,
                "" if cell.mean is None else cell.sd,
                len(cell.found),
                cell.never,
                {True: "yes", False: "no", None: ""}[cell.is_close],
            )


def _pilot_rows(rows: Sequence[Row]) -> Iterable[Sequence[object]]:
    for row in rows:
        setting = (row.clients_per_round, row.local_steps, row.upper.loss, row.lower.loss)
        for seed, upper, lower in zip(row.seeds, row.upper.found, row.lower.found, strict=True):
            rounds = ("" if found is None else found for found in (upper, lower))
            yield (*setting, *rounds, seed)


def _line_rows(name: str, figure: Figure) -> Iterable[Sequence[object]]:
    for panel in figure.panels:
        for line in panel.lines:
            if line.look is None:  # the target
                continue
            spread = line.high - line.y if line.high.size else [None] * line.x.size
            for x, y, side in zip(line.x, line.y, spread, strict=True):
                where, what = (panel.x.label, f"{x:.6g}"), (panel.y.label, f"{y:.6g}")
                yield (
                    Path(name).stem,
                    line.name,
                    *where,
                    *what,
                    "" if side is None else f"{side:.3g}",
                )


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with draft_of(path) as draft, draft.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
