"""Export: the runs of a store as files that other programs read."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedplan.atomic import check_target, draft_of, unwritable
from fedplan.frames import check_parquet, write_parquet
from fedplan.records import RunRecord
from fedplan.store.entries import ExperimentEntry, RunEntry, StudyEntry
from fedplan.store.store import Store
from fedplan.strictjson import to_json

SUFFIXES = (".csv", ".json", ".parquet")
COLUMNS = (
    "clients_per_round",
    "local_steps",
    "seed",
    "status",
    "round",
    "loss",
    "accuracy",
    "cohort",
    "seconds",
    "joules",
)
_KINDS = dict(
    zip(COLUMNS, (int, int, int, str, int, float, float, list, float, float), strict=True)
)
_OF_THE_RUN = COLUMNS[:4]
_OF_THE_ROUND = COLUMNS[4:]


def check_export(path: str | os.PathLike[str]) -> None:
    """Refuse a file that runs cannot be exported to, as far as that shows beforehand."""
    check_target(path, SUFFIXES)
    if Path(path).suffix.lower() == ".parquet":
        check_parquet()


def export_runs(
    store: Store, entry: StudyEntry | ExperimentEntry, path: str | os.PathLike[str]
) -> int:
    """Write the runs of an experiment, or of a study's, and say how many there are.

    A `.csv` or `.parquet` has a row a round, a `.json` a list of runs, and what they are runs of.
    Runs stand in the order of K, E and seed. A failure leaves an old file as it was.
    """
    check_export(path)
    if isinstance(entry, StudyEntry):
        experiments = [one for one in store.experiments() if entry.has_runs_of(one)]
    else:
        experiments = [entry]
    listed = [(one.settings, run) for one in experiments for run in store.runs(one.settings)]
    listed.sort(key=lambda item: (item[1].clients_per_round, item[1].local_steps, item[1].seed))
    runs = _each_run(store, listed)
    try:
        with draft_of(path) as draft:
            match Path(path).suffix.lower():
                case ".csv":
                    _write_csv(draft, runs)
                case ".json":
                    _write_json(draft, runs, describe(store, entry))
                case _:
                    write_parquet(draft, _KINDS, map(_columns, runs))
    except OSError as error:
        reason = f"cannot be written ({error.strerror or error})"
        raise unwritable(path, SUFFIXES, reason) from error
    return len(listed)


def _each_run(store: Store, listed: list[tuple[dict[str, Any], RunEntry]]) -> Iterator[RunRecord]:
    """One run in memory at a time."""
    for settings, run in listed:
        found = store.find_run(settings, run.clients_per_round, run.local_steps, run.seed)
        if found is not None:
            yield found


def describe(store: Store, entry: StudyEntry | ExperimentEntry) -> dict[str, Any]:
    """Everything known of a study or an experiment but its runs."""
    known = asdict(entry)
    return known | {"steps": store.steps(entry)} if isinstance(entry, StudyEntry) else known


def _write_csv(draft: Path, runs: Iterator[RunRecord]) -> None:
    with draft.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for run in runs:
            columns = _columns(run)
            columns["cohort"] = [" ".join(map(str, cohort)) for cohort in columns["cohort"]]
            writer.writerows(zip(*columns.values(), strict=True))


def _write_json(draft: Path, runs: Iterator[RunRecord], heading: dict[str, Any]) -> None:
    with draft.open("x", encoding="utf-8") as file:
        file.write(to_json(heading)[:-1] + ', "runs": [')
        for place, run in enumerate(runs):
            file.write(",\n" if place else "\n")
            file.write(to_json(asdict(run)))
        file.write("\n]}\n")


def _columns(run: RunRecord) -> dict[str, list[Any]]:
    columns = {name: [getattr(run, name)] * len(run.rounds) for name in _OF_THE_RUN}
    return columns | {name: [getattr(r, name) for r in run.rounds] for name in _OF_THE_ROUND}
