"""Which files are opened, which are refused, and that those are left alone."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
from stored_runs import EXPERIMENT, make_run

from fedplan.errors import FedplanError, InputError
from fedplan.store import Store, schema


@pytest.mark.parametrize(
    "url",
    ["", "fedplan.db", "sqlite://fedplan.db", "sqlite:///", "sqlite:///:memory:", "postgres://a/b",
     "sqlite:///a\0b"],
)  # fmt: skip
def test_a_wrong_url_is_refused(url):
    with pytest.raises(InputError, match=r"must look like sqlite:///fedplan\.db"):
        Store(url)


def test_a_bare_path_is_answered_with_its_url():
    with pytest.raises(InputError, match=r"Write sqlite:///runs/a\.db"):
        Store("runs/a.db")


def test_a_relative_url_is_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store("sqlite:///odd name?mode=ro#%41.db") as store:
        store.save_run(EXPERIMENT, make_run())
        monkeypatch.chdir("/")
        assert store.find_runs(EXPERIMENT) == [make_run()]
    assert [file.name for file in tmp_path.iterdir()] == ["odd name?mode=ro#%41.db"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"does not exist\. Make it"):
        Store(f"sqlite:///{tmp_path}/nowhere/a.db")
    with pytest.raises(InputError, match="is a folder"):
        Store(f"sqlite:///{tmp_path}")
    with pytest.raises(InputError, match="is a folder"):
        Store(f"sqlite:///{tmp_path}", readonly=True)


def test_reading_makes_nothing(tmp_path, url):
    for missing in (url, f"sqlite:///{tmp_path}/nowhere/a.db"):
        with Store(missing, readonly=True) as store:
            assert store.studies() == [] and store.find_runs(EXPERIMENT) == []
    assert list(tmp_path.iterdir()) == []


def test_who_reads_does_not_write(store, url, path):
    store.save_run(EXPERIMENT, make_run())
    with Store(url, readonly=True) as reader:
        assert reader.find_runs(EXPERIMENT) == [make_run()]
        with pytest.raises(InputError, match="cannot be written to"):
            reader.save_run(EXPERIMENT, make_run(seed=1))
    store.close()
    before = path.read_bytes()
    with Store(url, readonly=True) as reader:
        assert reader.find_runs(EXPERIMENT) == [make_run()]
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def foreign(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE pets (name TEXT)")
        connection.execute("PRAGMA journal_mode = WAL")


def of_another_program(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 252006674")


def newer(path):
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")


def unreleased(path):
    Store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4")


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (foreign, "database of another program"),
        (of_another_program, "database of another program"),
        (newer, "written by a newer fedplan"),
        (unreleased, "never released"),
        (lambda path: path.write_text("seed,loss\n" * 100), "not a fedplan store"),
        (lambda path: path.write_bytes(b"\0" * 5000), "not a fedplan store"),
        (lambda path: path.write_bytes(b"x"), "not a fedplan store"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(path, url, make, reason, readonly):
    make(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=reason):
        Store(url, readonly=readonly)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_damaged_store_is_said_to_be_damaged(path, url):
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run(rounds=500))
    content = bytearray(path.read_bytes())
    content[4096:] = random.Random(1).randbytes(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(FedplanError, match="is damaged"), Store(url) as store:
        store.find_runs(EXPERIMENT)


@pytest.mark.parametrize("content", ["empty file", "empty database", "named, but without tables"])
def test_a_file_with_nothing_in_it_becomes_a_store(path, url, content):
    path.touch()
    if content != "empty file":
        name = 0 if content == "empty database" else schema.APPLICATION_ID
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA application_id = {name}")
            connection.execute("VACUUM")
    with Store(url, readonly=True) as store:
        assert store.experiments() == []
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_an_older_store_is_brought_up_to_date_whole_or_not_at_all(path, url, monkeypatch):
    with Store(url) as store:
        store.save_run(EXPERIMENT, make_run())
    grow = "ALTER TABLE runs ADD COLUMN note TEXT"
    now = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", now + 1)
    monkeypatch.setitem(schema.UPGRADES, now, (grow, "CREATE TABLE runs (id)"))
    with pytest.raises(FedplanError, match="already exists"):
        Store(url)
    monkeypatch.setitem(schema.UPGRADES, now, (grow,))
    before = path.read_bytes()
    with Store(url, readonly=True) as store:
        assert store.find_runs(EXPERIMENT) == [make_run()]
    assert path.read_bytes() == before
    with Store(url) as store:
        assert store.find_runs(EXPERIMENT) == [make_run()]
        store.save_run(EXPERIMENT, make_run(seed=1))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (now + 1,)
        assert connection.execute("SELECT note FROM runs").fetchall() == [(None,), (None,)]
    monkeypatch.setattr(schema, "VERSION", now)
    with pytest.raises(InputError, match="newer"):
        Store(url)
