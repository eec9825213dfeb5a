"""Listing: what a store lists, made of the rows of its tables."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from fedplan.store.entries import ExperimentEntry, RunEntry, StudyEntry, Versions
from fedplan.store.rows import RUN, VERSIONS, fields, of_kind

_OF_EXPERIMENTS = """
    experiments.fingerprint AS of_experiment, settings, experiments.created AS since,
    (SELECT count(*) FROM runs WHERE runs.experiment = experiments.id) AS num_runs
"""
EXPERIMENTS = f"SELECT {_OF_EXPERIMENTS} FROM experiments"  # noqa: S608
STUDIES = f"""
    SELECT studies.*, {_OF_EXPERIMENTS}
    FROM studies JOIN experiments ON experiments.id = studies.experiment
"""  # noqa: S608


def run_entry(row: sqlite3.Row) -> RunEntry:
    """A run without its rounds."""
    setting = json.loads(row["value"])
    groups = setting.get("groups")
    own = fields(row, RUN)
    if min(own["num_rounds"], own["time_s"], own["energy_j"]) < 0:
        raise ValueError("rounds, seconds and joules are 0 or more")
    return RunEntry(
        clients_per_round=setting.get("clients_per_round"),
        local_steps=setting["local_steps"],
        law=setting["law"],
        groups=None if groups is None else len(groups),
        identity=setting.get("course", ""),
        stored_setting=row["value"],
        **own,
        created=_moment(row, "created"),
        versions=Versions(**fields(row, VERSIONS)),
    )


def experiment_entry(row: sqlite3.Row) -> ExperimentEntry:
    """An experiment, with how many runs it has."""
    return ExperimentEntry(
        fingerprint=of_kind(row, "of_experiment", str),
        settings=json.loads(row["settings"]),
        num_runs=row["num_runs"],
        created=_moment(row, "since"),
    )


def study_entry(row: sqlite3.Row) -> StudyEntry:
    """A study, the versions that made it, and its experiment."""
    return StudyEntry(
        name=of_kind(row, "name", str),
        fingerprint=of_kind(row, "fingerprint", str),
        configuration=json.loads(row["configuration"]),
        experiment=experiment_entry(row),
        created=_moment(row, "created"),
        versions=Versions(**fields(row, VERSIONS)),
    )


def _moment(row: sqlite3.Row, name: str) -> str:
    """When something was made: a moment that a clock can show."""
    text = of_kind(row, name, str)
    datetime.fromisoformat(text).astimezone()
    return text
