"""Stores with any cell or byte changed: every command answers, and what is salvaged is sound."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import chdir, closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from invariant import folder, run, tries
from stored_runs import EXPERIMENT, make_run

from fedplan.store import Store

COMMANDS = (("list",), ("show", "demo", "--runs"), ("export", "demo", "-o", "runs.json"))
CELLS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=20),
    st.binary(max_size=40), st.sampled_from(["{", "[]", "null", '{"law": "turns"}', "[" * 5000]),
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "fedplan.db"
    with Store(f"sqlite:///{path}") as store:
        study = store.save_study("demo", {"rounds": 1}, EXPERIMENT)
        store.save_step(study, "plan", {"clients_per_round": 3, "local_steps": 7})
        for seed in range(3):
            store.save_run(EXPERIMENT, make_run(seed, rounds=4))
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        columns = [
            (table, column[1])
            for table in tables
            for column in connection.execute(f"PRAGMA table_info({table})")
        ]
    return path, columns


def every_command_answers(command):
    code, said = run(*COMMANDS[command])
    assert code != 1 or ("damaged" in said and "--salvage" in said), said
    if code == 1 and run("export", "--salvage", "-o", "rescued.db")[0] == 0:
        with closing(sqlite3.connect("rescued.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert run("list", "--store", "sqlite:///rescued.db")[0] == 0


@tries
@given(which=st.integers(0, 200), value=CELLS, command=st.integers(0, len(COMMANDS) - 1))
@example(which=0, value=b"", command=0)
@example(which=24, value=0, command=0)  # when a study was made
@example(which=56, value=-1, command=1)  # the seconds of runs
def test_cells(sound, which, value, command):
    path, columns = sound
    table, column = columns[which % len(columns)]
    with folder() as where, chdir(where):
        shutil.copy(path, "fedplan.db")
        with closing(sqlite3.connect("fedplan.db")) as connection, connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            try:
                connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                return
        every_command_answers(command)


@tries
@given(
    flips=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=20),
    command=st.integers(0, len(COMMANDS) - 1),
)
@example(flips=[(100, 255)], command=0)  # the page of the schema
@example(flips=[(18, 9), (19, 9)], command=1)  # a version of the file format that there is not
@example(flips=[(16, 0), (17, 0)], command=2)  # pages of no size
def test_bytes(sound, flips, command):
    content = bytearray(sound[0].read_bytes())
    for place, value in flips:
        content[place % len(content)] = value
    with folder() as where, chdir(where):
        Path("fedplan.db").write_bytes(content)
        every_command_answers(command)
