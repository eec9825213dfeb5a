"""The folder of a reproduction: its tables, the figure drawn from them, and a page about both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fedplan import InputError
from fedplan.atomic import draft_of
from fedplan.figures import save_figure
from fedplan_reproduction.checks import Check
from fedplan_reproduction.curves import CurvePoint
from fedplan_reproduction.overhead import Overhead
from fedplan_reproduction.page import page_text
from fedplan_reproduction.panels import training_figure, weights_figure
from fedplan_reproduction.published import FIGURES
from fedplan_reproduction.reproduce import Reproduction
from fedplan_reproduction.table1 import Row
from fedplan_reproduction.tables import Heading, TrainedRun, read_rows, write_rows, write_table
from fedplan_reproduction.weights import Priced

_PILOTS = (
    "clients_per_round", "local_steps", "upper_loss", "lower_loss", "rounds_to_upper",
    "rounds_to_lower", "seed",
)  # fmt: skip
_TABLE_1 = (
    "clients_per_round", "local_steps", "loss", "published_rounds", "rounds", "rounds_sd", "seeds",
    "never", "within_10_percent_or_3_rounds",
)  # fmt: skip


def write_folder(made: Reproduction, folder: Path, *, command: str) -> list[Path]:
    """Write everything into the folder, which is made if need be; says which files."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror}). Give another --output."
        ) from error
    if made.table1:
        write_table(folder / "table1.csv", _TABLE_1, _table1_rows(made.table1))
        write_table(folder / "pilots.csv", _PILOTS, _pilot_rows(made.table1))
    pictures: list[str] = []
    if made.grid is not None:
        prepared = made.prepared
        heading = Heading(
            setup=prepared.setup,
            command=command,
            target_loss=prepared.target_loss,
            seeds=len(prepared.seeds),
        )
        write_rows(folder / "heading.csv", Heading, [heading])
        write_rows(folder / "runs.csv", TrainedRun, made.grid.runs)
        write_rows(folder / "plans.csv", Priced, made.priced)
        write_rows(folder / "checks.csv", Check, made.checks)
        if made.overheads:
            write_rows(folder / "overhead.csv", Overhead, made.overheads)
        if prepared.setup != "setup3":
            write_rows(folder / "curves.csv", CurvePoint, made.curves)
        pictures.append(draw(folder, prepared.setup).name)
    page = folder / "README.md"
    with draft_of(page) as draft:
        draft.write_text(page_text(made, command=command, pictures=pictures), encoding="utf-8")
    return sorted(path for path in folder.iterdir() if path.is_file())


def draw(folder: Path, setup: str) -> Path:
    """Draw the paper's figure of a setup from the tables in a folder; nothing is trained."""
    (heading,) = read_rows(folder / "heading.csv", Heading)
    if heading.setup != setup:
        raise InputError(
            f"{folder} is not of {setup}. Give the --output that `fedplan reproduce {setup}` had."
        )
    caption = FIGURES[setup]
    runs = [run.summary for run in read_rows(folder / "runs.csv", TrainedRun)]
    priced = read_rows(folder / "plans.csv", Priced)
    title = f"Figure {caption.number} of the paper, measured (Setup {setup[-1]})"
    note = (
        f"To the loss {heading.target_loss:g}; mean over the seeds ({heading.seeds}); bands are "
        "standard deviations, bars standard errors. fedplan with every round, the paper without "
        "its pilots."
    )
    if setup == "setup3":
        figure = weights_figure(runs, priced, title=title, note=note)
    else:
        points = read_rows(folder / "curves.csv", CurvePoint)
        figure = training_figure(
            points, runs, priced, caption, target_loss=heading.target_loss, title=title, note=note
        )
    picture = folder / f"figure{caption.number}.png"
    save_figure(figure, picture)
    return picture


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
