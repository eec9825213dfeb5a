"""The tables of a store of version 3, as fedplan wrote them then."""

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

STATEMENTS = (*_FIRST, *_SECOND, *_THIRD, "PRAGMA user_version = 3")
