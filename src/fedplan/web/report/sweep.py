"""The sections of a sweep: what every setting of the grid has cost."""

from __future__ import annotations

from fedplan.figures.sweep import ratio_label
from fedplan.markup import Markup, tag
from fedplan.studies.cells import Cell
from fedplan.studies.figures import sweep_figure
from fedplan.studies.stored import Recalled
from fedplan.studies.sweep import Sweep
from fedplan.web.report.parts import (
    Section,
    amount,
    facts,
    figure,
    joules,
    seconds,
    section,
    wide_table,
)

_MOST_CELLS = 100  # of the table; the figure has all


def sweep_sections(found: Recalled) -> tuple[str, str, list[Section]]:
    """Status, message and sections."""
    experiment, sweep = found.experiment, found.sweep
    if experiment is None or sweep is None:
        raise AssertionError("a sweep is of an experiment")
    grid = found.configuration["training"]
    of_groups = isinstance(grid.get("groups"), list)
    who, steps = grid["groups" if of_groups else "clients-per-round"], grid["local-steps"]
    numbers = "numbers of groups that take turns" if of_groups else "numbers of clients per round"
    asked = (
        f"What reaching a training loss of {experiment.stop.target_loss:g} costs with every one of "
        f"{len(who)} {numbers} and {len(steps)} of local steps, "
        f"{experiment.study.training.seeds} seeds each: {experiment.data_name}, "
        f"{experiment.study.task.model}, {experiment.num_clients:,} clients."
    )
    summary = facts(
        [
            ("What was asked", asked),
            ("What was found", sweep.message),
            ("Runs", f"{len(sweep.runs):,} of {sweep.total:,}"),
        ]
    )
    status = "swept" if len(sweep.runs) == sweep.total else "unfinished"
    sections = [section("Summary", summary)]
    if sweep.cells:
        unit = experiment.objective.unit
        sections.append(section("What each setting cost", _figure(sweep), _table(sweep, unit)))
    return status, sweep.message, sections


def _figure(sweep: Sweep) -> Markup:
    best = sweep.best
    if best is not None and not best.cost:  # real devices may have measured nothing
        return Markup("")
    words = "A cell is a setting; the dearer, the stronger its colour"
    if best is not None:
        words += f"; the best is {best.label}"
    return figure(
        sweep_figure(sweep, ""),
        "Mean cost against the best",
        f"{words}. The table has the numbers.",
    )


def _table(sweep: Sweep, unit: str) -> list[Markup]:
    best = sweep.best_of_all

    def against(cell: Cell) -> str:
        if best is None or not best.cost or cell.reached < cell.seeds:
            return "-"
        return ratio_label(cell.cost / best.cost)

    rows = [
        (
            cell.label,
            f"{cell.reached} of {cell.seeds}",
            amount(cell.rounds),
            seconds(cell.time_s),
            joules(cell.energy_j),
            amount(cell.cost),
            against(cell),
        )
        for cell in sweep.cells[:_MOST_CELLS]
    ]
    head = ("setting", "reached", "rounds", "time", "energy", f"cost ({unit})", "against the best")
    parts = [wide_table("Settings, the cheapest first", head, rows)]
    if (more := len(sweep.cells) - len(rows)) > 0:
        parts.append(tag("p", f"{more:,} dearer settings are left out of the table."))
    return parts
