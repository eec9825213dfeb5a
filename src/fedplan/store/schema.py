"""The tables of a store, and how an older file gets them; docs/reference/store.md explains them.

A file's `user_version` counts the migrations it has been through; a new file has been through none.
To change the tables, add a migration: those that have been released never change.
"""

from __future__ import annotations

APPLICATION_ID = 0x46504C4E  # "FPLN": tells a store from other programs' databases

# Measured numbers have columns without a type: a REAL column turns -0.0 into 0.0.
_VERSIONS = "fedplan TEXT NOT NULL, python TEXT NOT NULL, numpy TEXT NOT NULL, numba TEXT NOT NULL"
_FIRST = (
    """
    CREATE TABLE experiments (
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE,
        settings TEXT NOT NULL,
        created TEXT NOT NULL
    )
    """,
    f"""
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        experiment INTEGER NOT NULL REFERENCES experiments,
        clients_per_round INTEGER NOT NULL,
        local_steps INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        status TEXT NOT NULL,
        num_rounds INTEGER NOT NULL,
        final_loss,
        time_s NOT NULL,
        energy_j NOT NULL,
        created TEXT NOT NULL,
        {_VERSIONS},
        UNIQUE (experiment, clients_per_round, local_steps, seed)
    )
    """,
    """
    CREATE TABLE rounds (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        round INTEGER NOT NULL,
        loss,
        accuracy,
        seconds NOT NULL,
        joules NOT NULL,
        PRIMARY KEY (run, round)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE cohorts (
        run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
        members BLOB NOT NULL
    )
    """,
    f"""
    CREATE TABLE studies (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        fingerprint TEXT NOT NULL UNIQUE,
        configuration TEXT NOT NULL,
        experiment INTEGER NOT NULL REFERENCES experiments,
        created TEXT NOT NULL,
        {_VERSIONS}
    )
    """,
    """
    CREATE TABLE steps (
        id INTEGER PRIMARY KEY,
        study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        created TEXT NOT NULL,
        UNIQUE (study, name)
    )
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
)

# What real clients did, and runs that are saved round by round.
_SECOND = (
    "ALTER TABLE runs ADD COLUMN message TEXT NOT NULL DEFAULT ''",
    """
    CREATE TABLE observations (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        round INTEGER NOT NULL,
        place INTEGER NOT NULL,
        client INTEGER NOT NULL,
        local_steps INTEGER NOT NULL,
        train_seconds,
        round_trip_seconds,
        joules,
        problem TEXT NOT NULL,
        PRIMARY KEY (run, round, place)
    ) WITHOUT ROWID
    """,
)

# Who took part in a round that is saved by itself: a run's blob would be packed anew every round.
_THIRD = ("ALTER TABLE rounds ADD COLUMN cohort BLOB",)

# Who trains when: a run is told from others by its setting, of which K and E were all before. A
# table's UNIQUE cannot be changed, so the runs move into a new one, with the ids they had.
_FOURTH = (
    "CREATE TABLE settings (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE)",
    """
    INSERT INTO settings (value)
    SELECT DISTINCT '{"clients_per_round":' || clients_per_round
        || ',"law":"uniform","local_steps":' || local_steps || '}' FROM runs
    """,
    f"""
    CREATE TABLE runs_by_setting (
        id INTEGER PRIMARY KEY,
        experiment INTEGER NOT NULL REFERENCES experiments,
        setting INTEGER NOT NULL REFERENCES settings,
        clients_per_round INTEGER,
        local_steps INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        status TEXT NOT NULL,
        message TEXT NOT NULL,
        num_rounds INTEGER NOT NULL,
        final_loss,
        time_s NOT NULL,
        energy_j NOT NULL,
        created TEXT NOT NULL,
        {_VERSIONS},
        UNIQUE (experiment, setting, seed)
    )
    """,
    """
    INSERT INTO runs_by_setting
    SELECT runs.id, experiment, settings.id, clients_per_round, local_steps, seed, status, message,
        num_rounds, final_loss, time_s, energy_j, created, fedplan, python, numpy, numba
    FROM runs JOIN settings ON value = '{"clients_per_round":' || clients_per_round
        || ',"law":"uniform","local_steps":' || local_steps || '}'
    """,
    "DROP TABLE runs",
    "ALTER TABLE runs_by_setting RENAME TO runs",
    "ALTER TABLE rounds ADD COLUMN setting INTEGER REFERENCES settings",
    "ALTER TABLE rounds ADD COLUMN model_loss",
    "ALTER TABLE rounds ADD COLUMN shares BLOB",
    "ALTER TABLE cohorts ADD COLUMN shares BLOB",
)

# What the course of a run settled on as it went, and what it is told by rounds on real devices, so
# that a run that was cut off goes on as it would have; of a run that kept to its setting, nothing.
_FIFTH = (
    "ALTER TABLE runs ADD COLUMN decisions TEXT NOT NULL DEFAULT '[]'",
    "ALTER TABLE rounds ADD COLUMN signal BLOB",
    "ALTER TABLE observations ADD COLUMN examples",
)

# Accuracy on samples no client trains on.
_SIXTH = ("ALTER TABLE rounds ADD COLUMN test_accuracy",)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH)
