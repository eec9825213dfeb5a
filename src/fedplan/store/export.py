"""Export: the runs of a store as files for other programs."""

import csv
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fedplan.atomic import check_target, draft_of
from fedplan.core.records import RunRecord
from fedplan.core.setting import Setting
from fedplan.csvfile import shielded
from fedplan.frames import check_parquet, write_parquet
from fedplan.store.entries import Entry, RunEntry, StudyEntry
from fedplan.store.store import Store
from fedplan.strictjson import to_json

SUFFIXES = (".csv", ".json", ".parquet")
_OF_THE_ROUND: dict[str, Any] = {
    "round": int,
    "loss": float,
    "accuracy": float,
    "cohort": list[int],
    "seconds": float,
    "joules": float,
    "model_loss": float,
    "shares": list[float],
    "test_accuracy": float,
}
_LISTS = ("cohort", "shares")
_COLUMNS: dict[str, Any] = {
    "clients_per_round": int,
    "local_steps": int,
    "seed": int,
    "status": str,
    **_OF_THE_ROUND,
    "participation": str,
    "course": str,
}
_TEXTS = [name for name, kind in _COLUMNS.items() if kind is str]


def check_export(path: str | os.PathLike[str]) -> None:
    """Refuse a file that runs cannot be exported to, as far as is known in advance."""
    check_target(path, SUFFIXES)
    if Path(path).suffix.lower() == ".parquet":
        check_parquet()


def export_runs(store: Store, entry: Entry, path: str | os.PathLike[str]) -> int:
    """Write the runs of an experiment or of a study, and return how many there are.

    A `.csv` or `.parquet` has one row per round, a `.json` a list of runs, and what they are runs
    of. Runs are in the order of K, E and seed. A failure leaves an old file as it was.
    """
    check_export(path)
    listed = [
        (one.settings, run)
        for one in store.experiments()
        if entry.has_runs_of(one)
        for run in store.runs(one.settings)
    ]
    listed.sort(key=lambda item: _place(item[1]))
    each = (store.find_run(settings, run, run.seed) for settings, run in listed)
    runs = (run for run in each if run is not None)  # one in memory at a time
    with draft_of(path, SUFFIXES) as draft:
        match Path(path).suffix.lower():
            case ".csv":
                _write_csv(draft, runs)
            case ".json":
                _write_json(draft, runs, describe(store, entry))
            case _:
                write_parquet(draft, _COLUMNS, map(_columns, runs))
    return len(listed)


def _place(run: RunEntry) -> tuple[int, int, str, int]:
    """The sort key of a run; those without a K come first, as in a store."""
    return run.clients_per_round or 0, run.local_steps, str(run.setting), run.seed


def describe(store: Store, entry: Entry) -> dict[str, Any]:
    """Everything known of a study or an experiment except its runs."""
    known = asdict(entry)
    return known | {"steps": store.steps(entry)} if isinstance(entry, StudyEntry) else known


def _write_csv(draft: Path, runs: Iterator[RunRecord]) -> None:
    with draft.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for run in runs:
            columns = _columns(run)
            for name in _LISTS:
                columns[name] = [" ".join(map(str, values)) for values in columns[name]]
            for name in _TEXTS:
                columns[name] = list(map(shielded, columns[name]))
            writer.writerows(zip(*columns.values(), strict=True))


def _write_json(draft: Path, runs: Iterator[RunRecord], heading: dict[str, Any]) -> None:
    with draft.open("x", encoding="utf-8") as file:
        file.write(to_json(heading)[:-1] + ', "runs": [')
        for place, run in enumerate(runs):
            file.write(",\n" if place else "\n")
            file.write(to_json(_as_dict(run)))
        file.write("\n]}\n")


def _columns(run: RunRecord) -> dict[str, list[Any]]:
    """The columns of a run, with one row per round."""
    rows = [
        _of_run(run, record.setting) | {name: getattr(record, name) for name in _OF_THE_ROUND}
        for record in run.rounds
    ]
    return {name: [row[name] for row in rows] for name in _COLUMNS}


def _of_run(run: RunRecord, setting: Setting | None) -> dict[str, Any]:
    """What distinguishes a run; `setting` is that of a round."""
    setting = setting or run.setting
    return {
        "clients_per_round": setting.clients_per_round,
        "local_steps": setting.local_steps,
        "seed": run.seed,
        "status": run.status,
        "participation": setting.participation.law,
        "course": run.course or "fixed",
    }


def _as_dict(run: RunRecord) -> dict[str, Any]:
    """A run with its setting; a round has one only if it differs."""
    rounds = []
    for record in run.rounds:
        values = asdict(replace(record, setting=None, signal=None, reports=None))
        del values["setting"], values["signal"], values["reports"]
        if (setting := record.setting or run.setting) is not run.setting and setting != run.setting:
            values["setting"] = setting.to_dict()
        rounds.append(values)
    return {
        **_of_run(run, run.setting),
        "message": run.message,
        "setting": run.setting.to_dict(),
        "decisions": [asdict(decision) for decision in run.decisions],
        "rounds": rounds,
    }
