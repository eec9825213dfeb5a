"""The tables of a store, and their migration; docs/reference/store.md explains them.

A file's `user_version` is the version of its tables; an empty file has version 0. To change the
tables, raise the version and add the upgrade from the one before.
"""

APPLICATION_ID = 0x46504C4E  # "FPLN": tells a store from other programs' databases
VERSION = 6

# Measured numbers have columns without a type: a REAL column turns -0.0 into 0.0.
_VERSIONS = "fedplan TEXT NOT NULL, python TEXT NOT NULL, numpy TEXT NOT NULL, numba TEXT NOT NULL"
_EXPERIMENTS = """
    CREATE TABLE experiments (
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE,
        settings TEXT NOT NULL,
        created TEXT NOT NULL
    )
"""
# A setting, or a course with the setting that it begins with.
_SETTINGS = "CREATE TABLE settings (id INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE)"
# The decisions are those of the course; a run that kept to its setting has none.
_RUNS = f"""
    CREATE TABLE runs (
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
        decisions TEXT NOT NULL DEFAULT '[]',
        UNIQUE (experiment, setting, seed)
    )
"""
# A round that is saved by itself has its cohort and shares: a run's would have to be packed again
# every round. The signal is what real devices told the course, which resumes with it.
_ROUNDS = """
    CREATE TABLE rounds (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        round INTEGER NOT NULL,
        loss,
        accuracy,
        seconds NOT NULL,
        joules NOT NULL,
        cohort BLOB,
        setting INTEGER REFERENCES settings,
        model_loss,
        shares BLOB,
        signal BLOB,
        test_accuracy,
        PRIMARY KEY (run, round)
    ) WITHOUT ROWID
"""
_COHORTS = """
    CREATE TABLE cohorts (
        run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
        members BLOB NOT NULL,
        shares BLOB
    )
"""
# What real clients did.
_OBSERVATIONS = """
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
        examples,
        PRIMARY KEY (run, round, place)
    ) WITHOUT ROWID
"""
_STUDIES = f"""
    CREATE TABLE studies (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        fingerprint TEXT NOT NULL UNIQUE,
        configuration TEXT NOT NULL,
        experiment INTEGER NOT NULL REFERENCES experiments,
        created TEXT NOT NULL,
        {_VERSIONS}
    )
"""
_STEPS = """
    CREATE TABLE steps (
        id INTEGER PRIMARY KEY,
        study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        created TEXT NOT NULL,
        UNIQUE (study, name)
    )
"""
# For version 3, where a setting was only K and E. A table's UNIQUE cannot be changed, so the runs
# move into a new one, with the ids they had.
_OLD_SETTING = """
    '{"clients_per_round":' || clients_per_round
    || ',"law":"uniform","local_steps":' || local_steps || '}'
"""
_COPIED = (
    "clients_per_round, local_steps, seed, status, message, num_rounds, final_loss, time_s, "
    "energy_j, created, fedplan, python, numpy, numba"
)
# By the version of a file, the statements that upgrade it.
UPGRADES: dict[int, tuple[str, ...]] = {
    0: (
        *(_EXPERIMENTS, _SETTINGS, _RUNS, _ROUNDS, _COHORTS, _OBSERVATIONS, _STUDIES, _STEPS),
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    3: (
        _SETTINGS,
        f"INSERT INTO settings (value) SELECT DISTINCT {_OLD_SETTING} FROM runs",  # noqa: S608
        _RUNS.replace("TABLE runs", "TABLE new_runs"),
        f"INSERT INTO new_runs (id, experiment, setting, {_COPIED}) "  # noqa: S608
        f"SELECT runs.id, experiment, settings.id, {_COPIED} "
        f"FROM runs JOIN settings ON value = {_OLD_SETTING}",
        "DROP TABLE runs",
        "ALTER TABLE new_runs RENAME TO runs",
        "ALTER TABLE rounds ADD COLUMN setting INTEGER REFERENCES settings",
        *(f"ALTER TABLE rounds ADD COLUMN {name}" for name in ("model_loss", "test_accuracy")),
        *(f"ALTER TABLE rounds ADD COLUMN {name} BLOB" for name in ("shares", "signal")),
        "ALTER TABLE cohorts ADD COLUMN shares BLOB",
        "ALTER TABLE observations ADD COLUMN examples",
    ),
}
