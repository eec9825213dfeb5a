"""Everything a store knows about a study, of any kind and however far it got."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedplan.core.records import RunRecord
from fedplan.errors import InputError
from fedplan.store import Entry, RunEntry, Store
from fedplan.studies.app_study import ASKED, Asked, app_outcome
from fedplan.studies.devices import Devices, observed_devices
from fedplan.studies.experiment import Experiment, build_experiment
from fedplan.studies.grid import Grid
from fedplan.studies.keys import TABLES
from fedplan.studies.outcome import Outcome, Question
from fedplan.studies.study import Study, find_faults, make_study
from fedplan.studies.sweep import Sweep, recall_sweep
from fedplan.studies.workflow import recall_study

_MOST_RECORDS = 40  # runs whose rounds are read: as many as a figure can show


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recalled:
    """A stored study or experiment.

    experiment : rebuilt from it; None if it cannot be built here, and `reason` says why:
        missing data, an app of the user's own, runs without a study.
    asked : what an app asked for, instead of an experiment.
    outcome : of a study that `fedplan run` or an app began.
    sweep : of one that `fedplan sweep` began.
    runs : all runs of the experiment without their rounds, for whichever study they were made.
    devices : by all that was observed of them; None if they are simulated.
    records : some of the runs with their rounds, where neither outcome nor sweep has them.
    """

    entry: Entry
    steps: dict[str, Any]
    runs: tuple[RunEntry, ...]
    devices: Devices | None
    records: tuple[RunRecord, ...] = ()
    experiment: Experiment | None = None
    asked: Asked | None = None
    outcome: Outcome | None = None
    sweep: Sweep | None = None
    reason: str = ""

    @property
    def status(self) -> str | None:
        """How the study ended; None if `fedplan run` did not begin it."""
        return None if self.outcome is None else self.outcome.status

    @property
    def question(self) -> Question | None:
        """What was to be reached, where that is known."""
        return self.experiment or self.asked

    @property
    def federation(self) -> str | None:
        """The live federation that trained; None if clients were simulated."""
        federation = self.entry.settings.get("federation")
        return federation if isinstance(federation, str) else None


def recall(store: Store, entry: Entry) -> Recalled:
    """Everything known about it, without training or writing anything."""
    known = stored_facts(store, entry)
    reason = "It was not begun from a study file."
    if known.entry.configuration:
        try:
            known = _with_outcome(known, store)
        except InputError as error:
            reason = str(error)
    if known.outcome is not None or known.sweep is not None:
        return known
    some = known.runs[:_MOST_RECORDS]
    found = (store.find_run(known.entry.settings, run, run.seed) for run in some)
    records = tuple(run for run in found if run is not None)
    if records and ASKED in known.steps and known.devices and known.devices.costs.devices:
        asked = Asked.from_step(entry.name, known.steps[ASKED])
        outcome = app_outcome(asked, records, known.devices)
        return replace(known, asked=asked, outcome=outcome, records=records)
    return replace(known, records=records, reason=known.reason or reason)


def stored_facts(store: Store, entry: Entry) -> Recalled:
    """What the store has: nothing is built, and nothing planned again."""
    live = entry.settings.get("engine") == "flower"
    return Recalled(
        entry=entry,
        steps=store.steps(entry),
        runs=tuple(store.runs(entry.settings)),
        devices=observed_devices(store, entry) if live else None,
    )


def stored_study(name: str, configuration: Mapping[str, Any]) -> tuple[Study, Grid | None]:
    """The study as it was read, and the grid if it was swept; InputError if it is neither."""
    tables: dict[str, dict[str, Any]] = {"task": {}, "training": {}, "planning": {}}
    for table, values in configuration.items():
        if table in TABLES and isinstance(values, dict):
            tables[table] = dict(values)
    # Keys of earlier versions, which are none now.
    tables["planning"].pop("pilot-budget", None)
    if tables["planning"].get("pilots") == "designed":
        del tables["planning"]["pilots"]
    if (grid := Grid.of_keys(tables["training"])) is not None:  # a study has single values
        tables["training"] |= dict.fromkeys(grid.keys)
    problems = [
        f"what is stored of it has {table}, which no study file has."
        for table in configuration
        if table not in tables
    ]
    if problems := [*problems, *(fault.message for fault in find_faults(tables))]:
        raise InputError(problems)
    return make_study(name, tables), grid


def _with_outcome(known: Recalled, store: Store) -> Recalled:
    study, grid = stored_study(known.entry.name, known.entry.configuration)
    experiment = build_experiment(study, federation=known.federation)
    if not known.entry.settings.keys() >= experiment.settings.keys():
        raise InputError("its runs were stored by another version of fedplan.")
    # Its runs are those it had then, whatever this version would call them.
    experiment = replace(experiment, settings=known.entry.settings)
    if known.devices is not None and known.devices.costs.devices:
        experiment = replace(experiment, fleet=known.devices.fleet)
    known = replace(known, experiment=experiment)
    if experiment.assumed_fleet is None:
        return replace(known, reason="It has no devices.")
    if grid is not None:
        return replace(known, sweep=recall_sweep(experiment, grid, store))
    designed = known.entry.configuration.get("planning", {}).get("pilots") == "designed"
    if designed or "profile" in known.steps:
        reason = "It was planned by an earlier version, from pilots or a profile of its devices."
        return replace(known, reason=reason)
    return replace(known, outcome=recall_study(experiment, store))
