"""Store: save and find runs, studies and their decisions."""

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

from fedplan.core.course import Identified
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError
from fedplan.store.database import DEFAULT_URL, Database
from fedplan.store.entries import (
    Entry,
    ExperimentEntry,
    RunEntry,
    StudyEntry,
    Versions,
    canonical_json,
    fingerprint_of,
)
from fedplan.store.rows import (
    RUN,
    VERSIONS,
    RunKey,
    append_round,
    fields,
    insert_once,
    insert_run,
    key_text,
    made_now,
    now,
    of_kind,
    pack_records,
    read_run,
    save_experiment,
    save_setting,
)

_OF_EXPERIMENTS = """
    experiments.fingerprint AS of_experiment, settings, experiments.created AS since,
    (SELECT count(*) FROM runs WHERE runs.experiment = experiments.id) AS num_runs
"""
EXPERIMENTS = f"SELECT {_OF_EXPERIMENTS} FROM experiments"  # noqa: S608
STUDIES = f"""
    SELECT studies.*, {_OF_EXPERIMENTS}
    FROM studies JOIN experiments ON experiments.id = studies.experiment
"""  # noqa: S608
_RUNS = """
    SELECT runs.*, value
    FROM runs JOIN experiments ON experiments.id = runs.experiment
        JOIN settings ON settings.id = runs.setting WHERE fingerprint = ?
"""
_NEW_STEP = (
    "INSERT INTO steps (study, name, value, created) VALUES (?, ?, ?, ?) ON CONFLICT (study, name)"
)
_END = {"unfinished": 0, "diverged": 2}  # any other end counts 1
_OF_SETTING = " AND (value, seed) = (?, ?)"
_IN_ORDER = " ORDER BY clients_per_round, local_steps, runs.setting, seed"


class Store:
    """One SQLite file. Whatever a `save_...` has saved survives kill -9 and power failures.

    url : `sqlite:///fedplan.db` in the current folder, or `sqlite:////full/path/fedplan.db`; the
        file is created if it does not exist.
    readonly : change and create nothing: a missing file reads as an empty store.

    Any number of threads may share a store, and any number of processes a file, each with a store
    of its own. An experiment is a mapping of everything that changes a number of a run other than
    its setting and the seed; runs of equal experiments are comparable.

    >>> import tempfile
    >>> start = RoundRecord(round=0, loss=2.0, accuracy=0.1, cohort=(), seconds=0.0, joules=0.0)
    >>> from fedplan.participation import uniform
    >>> run = RunRecord(setting=uniform(2, 5), seed=0, status="rounds", rounds=(start,))
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/a.db") as store:
    ...     kept = store.save_run({"data": "synthetic"}, run)
    ...     found = store.find_run({"data": "synthetic"}, uniform(2, 5), 0)
    >>> kept, found == run
    (True, True)
    """

    def __init__(self, url: str = DEFAULT_URL, *, readonly: bool = False) -> None:
        self._database = Database(url, readonly=readonly)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything saved is in it."""
        self._database.close()

    def save_run(self, experiment: Mapping[str, Any], run: RunRecord) -> bool:
        """Save a run, unless one as long with the same experiment, setting and seed exists.

        A longer run replaces a shorter one. Of two equally long, one that has ended counts as
        longer than one that is unfinished, and one that diverged in the next round as longer
        still: it has been further. Returns whether the run was kept.
        """
        if any(one.round >= next_.round for one, next_ in pairwise(run.rounds)):
            raise InputError("the rounds of a run must be numbered upwards. Sort them first.")
        packed = pack_records(run.rounds)
        with self._database.writing() as connection:
            key = _run_key(connection, experiment, run, run.seed)
            there = connection.execute(
                "SELECT id, status, (SELECT count(*) FROM rounds WHERE run = runs.id) "
                "FROM runs WHERE (experiment, setting, seed) = (:experiment, :setting, :seed)",
                key,
            ).fetchone()
            if there is not None:
                id_, status, length = there
                if (len(run.rounds), _END.get(run.status, 1)) <= (length, _END.get(status, 1)):
                    return False
                connection.execute("DELETE FROM runs WHERE id = ?", (id_,))
            insert_run(connection, key, run, packed)
        return True

    def save_round(
        self, experiment: Mapping[str, Any], course: Identified, seed: int, record: RoundRecord
    ) -> None:
        """Save one more round of a run in progress, as its last.

        Stored rounds from this one on are deleted: a run that was cut off resumes from its last
        checkpoint, which may be a round back. The run is unfinished until
        `save_run` saves all of it.
        """
        with self._database.writing() as connection:
            key = _run_key(connection, experiment, course, seed)
            append_round(connection, key, course, record)

    def find_run(
        self, experiment: Mapping[str, Any], course: Identified, seed: int
    ) -> RunRecord | None:
        """The run of a setting, or of a course, as it was saved; None if there is none."""
        key = fingerprint_of(experiment), key_text(course), int(seed)
        with self._database.reading() as connection:
            row = connection.execute(_RUNS + _OF_SETTING, key).fetchone()
            return None if row is None else read_run(connection, row)

    def find_runs(self, experiment: Mapping[str, Any]) -> list[RunRecord]:
        """All runs of an experiment, ordered by K, E and seed; those without a K come first."""
        fingerprint = fingerprint_of(experiment)
        with self._database.reading() as connection:
            rows = connection.execute(_RUNS + _IN_ORDER, (fingerprint,)).fetchall()
            return [read_run(connection, row) for row in rows]

    def runs(self, experiment: Mapping[str, Any]) -> list[RunEntry]:
        """All runs of an experiment without their rounds, in the order of `find_runs`."""
        fingerprint = fingerprint_of(experiment)
        with self._database.reading() as connection:
            rows = connection.execute(_RUNS + _IN_ORDER, (fingerprint,))
            return [run_entry(row) for row in rows]

    def experiments(self) -> list[ExperimentEntry]:
        """All experiments, in the order they were first saved in."""
        with self._database.reading() as connection:
            return [
                experiment_entry(row) for row in connection.execute(f"{EXPERIMENTS} ORDER BY id")
            ]

    def save_study(
        self, name: str, configuration: Mapping[str, Any], experiment: Mapping[str, Any]
    ) -> StudyEntry:
        """Save a study, or find it by its name, configuration and experiment together.

        A study of the same name that is configured differently is another study, so that steps
        decided under other settings are never taken for its own.
        """
        if not (name.strip() and name.isprintable()):
            raise InputError(f"a study's name must be one line of text, but got {name!r}.")
        fingerprint = fingerprint_of(
            {"name": name, "configuration": dict(configuration), "experiment": dict(experiment)}
        )
        with self._database.writing() as connection:
            study = {
                "name": name,
                "fingerprint": fingerprint,
                "configuration": canonical_json(dict(configuration)),
                "experiment": save_experiment(connection, experiment),
                **made_now(),
            }
            id_ = insert_once(connection, "studies", study, "fingerprint")
            row = connection.execute(f"{STUDIES} WHERE studies.id = ?", (id_,))
            return study_entry(row.fetchone())

    def studies(self) -> list[StudyEntry]:
        """All studies, in the order they were first saved in."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{STUDIES} ORDER BY studies.id")
            return [study_entry(row) for row in rows]

    def save_step(self, study: StudyEntry, name: str, value: Any) -> None:
        """Save a decision of a study, as JSON; a later value replaces an earlier one."""
        self._insert_step(
            study, name, value, "DO UPDATE SET value = excluded.value, created = excluded.created"
        )

    def keep_step(self, study: StudyEntry, name: str, value: Any) -> Any:
        """Save a decision made once and for all, and return it, or the one that was there."""
        self._insert_step(study, name, value, "DO NOTHING")
        return self.find_step(study, name)

    def _insert_step(self, study: StudyEntry, name: str, value: Any, if_there: str) -> None:
        text = canonical_json(value)
        with self._database.writing() as connection:
            there = connection.execute(
                "SELECT id FROM studies WHERE fingerprint = ?", (study.fingerprint,)
            ).fetchone()
            if there is None:
                raise InputError(f"study {study.name} is not in this store. Save it there first.")
            connection.execute(f"{_NEW_STEP} {if_there}", (*there, name, text, now()))

    def find_step(self, study: StudyEntry, name: str) -> Any:
        """The decision, with tuples as lists; None if there is none."""
        return self.steps(study).get(name)

    def steps(self, study: Entry) -> dict[str, Any]:
        """All decisions of a study, in the order they were first made.

        An experiment has decided nothing.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT steps.name, value FROM steps JOIN studies ON studies.id = steps.study "
                "WHERE fingerprint = ? ORDER BY steps.id",
                (study.fingerprint,),
            )
            return {name: json.loads(value) for name, value in rows}


def _run_key(
    connection: sqlite3.Connection, experiment: Mapping[str, Any], course: Identified, seed: int
) -> RunKey:
    return {
        "experiment": save_experiment(connection, experiment),
        "setting": save_setting(connection, course),
        "seed": int(seed),
    }


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
    """When something was made; raises if that is not a date."""
    text = of_kind(row, name, str)
    datetime.fromisoformat(text).astimezone()
    return text
