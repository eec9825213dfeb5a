"""The report's sections on sweeps and other stored runs."""

from collections.abc import Callable

from fedplan.core.fleet import QUANTITIES
from fedplan.errors import InputError
from fedplan.figures import alone, convergence_data
from fedplan.store import RunEntry
from fedplan.studies.accounts import decision_table, run_table
from fedplan.studies.cells import Cell
from fedplan.studies.devices import Devices
from fedplan.studies.experiment import Experiment
from fedplan.studies.figures import sweep_figure
from fedplan.studies.stored import Recalled
from fedplan.studies.sweep import Sweep
from fedplan.web.report.page import Facts, Picture, Sections
from fedplan.words import Table, counted, in_words, joules, ratio_label, seconds, table_of

_MOST_CELLS, _MOST_ROWS = 100, 200  # of tables; a sweep's figure has all


def sweep_sections(
    found: Recalled, experiment: Experiment, sweep: Sweep
) -> tuple[str, str, Sections]:
    """Status, message and sections of a sweep: what every setting of the grid has cost."""
    grid = found.entry.configuration["training"]
    of_groups = isinstance(grid.get("groups"), list)
    who, steps = grid["groups" if of_groups else "clients-per-round"], grid["local-steps"]
    what = "groups that take turns" if of_groups else "clients per round"
    asked = (
        f"What reaching a training loss of {experiment.stop.target_loss:g} costs with every one of "
        f"{counted(len(who), 'number')} of {what} and {len(steps)} of local steps, "
        f"{counted(experiment.study.training.seeds, 'seed')} each: {experiment.data_name}, "
        f"{experiment.study.task.model}, {experiment.num_clients:,} clients."
    )
    summary = {
        "What was asked": asked,
        "What was found": sweep.message,
        "Runs": f"{len(sweep.runs):,} of {sweep.total:,}",
    }
    status = "swept" if len(sweep.runs) == sweep.total else "unfinished"
    sections: Sections = {"Summary": [Facts(summary)]}
    if sweep.cells:
        cells = _cells(sweep, experiment.objective.unit)
        sections["What each setting cost"] = [_sweep_figure(sweep), cells]
    return status, sweep.message, sections


def _sweep_figure(sweep: Sweep) -> Picture | None:
    best = sweep.best
    if best is not None and not best.cost:  # real devices may have measured nothing
        return None
    words = "A cell is a setting; the dearer, the stronger its colour"
    if best is not None:
        words += f"; the best is {best.label}"
    words += ". The table has the numbers."
    return Picture(sweep_figure(sweep, ""), "Mean cost against the best", words)


def _cells(sweep: Sweep, unit: str) -> Table:
    best = sweep.best_of_all

    def against(cell: Cell) -> str:
        if best is None or not best.cost or cell.reached < cell.seeds:
            return "-"
        return ratio_label(cell.cost / best.cost)

    columns: dict[str, str | Callable[[Cell], str]] = {
        "setting": "label",
        "reached": lambda cell: f"{cell.reached} of {cell.seeds}",
        "rounds": "rounds",
        "time": "time_s",
        "energy": "energy_j",
        f"cost ({unit})": "cost",
        "against the best": against,
    }
    title, rest = "Settings, the cheapest first", "dearer settings are left out of the table."
    return table_of(sweep.cells, columns, title=title, most=_MOST_CELLS, rest=rest)


def runs_sections(found: Recalled) -> tuple[str, str, Sections]:
    """Status, message and sections of runs of which it is not known what was asked."""
    message = f"{counted(len(found.runs), 'run')} in the store."
    summary, status = {"What there is": message}, "stored"
    record = found.records[0] if len(found.records) == 1 else None
    if record is not None:  # of an app that plans by itself
        status = "reached" if record.status == "target" else record.status
        message = summary["Training"] = _training(found.runs[0])
    if found.reason:
        summary["No more is said because"] = found.reason
    sections: Sections = {"Summary": [Facts(summary)]}
    if found.runs:
        shown = run_table(found.runs, title="Runs, by K, E and seed", most=_MOST_ROWS)
        sections["Runs"] = [*_losses(found), shown]
    if record is not None:
        sections["What was decided"] = [decision_table(record, in_full=True)]
    if found.devices is not None:
        sections["Devices"] = [device_table(found.devices)]
    return status, message, sections


def _training(run: RunEntry) -> str:
    ends = {"target": "reached its target", "unfinished": "has not ended"}
    end = ends.get(run.status, f"was ended by: {run.status}")
    energy = f", {joules(run.energy_j)}" if run.energy_j else ""
    loss = "" if run.final_loss is None else f", at a loss of {run.final_loss:.4g}"
    return (
        f"Training with {run.setting.label} {end} after {counted(run.num_rounds, 'round')}, "
        f"{seconds(run.time_s)}{energy}{loss}."
    )


def _losses(found: Recalled) -> list[Picture]:
    try:
        data = convergence_data(found.records, title="")
    except InputError:  # no run has a loss, or all have diverged
        return []
    words = "Mean over the seeds of each K and E, with one standard deviation."
    # One figure for each panel: side by side they would not fit a phone.
    return [
        Picture(alone(panel), f"{panel.y.label} against {panel.x.label}".capitalize(), words)
        for panel in data.panels
    ]


def device_table(devices: Devices) -> Table:
    """What a step and an exchange cost on each device."""
    fleet = devices.fleet
    rows = [
        (name, *(in_words(float(getattr(fleet, quantity)[place])) for quantity in QUANTITIES))
        for place, name in enumerate((fleet.device or ())[:_MOST_ROWS])
    ]
    head = ("device", "s per step", "s per exchange", "J per step", "J per exchange")
    return Table(head, rows, title="Devices, by all that was observed of them")
