"""A damaged store: one message with what is left, exit code 1, and a copy of what is readable."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
from stored_runs import EXPERIMENT, make_run

from fedplan.store import Store

COMMANDS = (
    ("list",),
    ("show", "demo", "--runs"),
    ("export", "demo", "-o", "runs.csv"),
    ("export", "demo", "-o", "runs.json"),
    ("plot", "demo", "-o", "runs.png"),
    ("report", "demo", "-o", "runs.html"),
)
OTHER = {"data": "mnist"}


@pytest.fixture
def store_file(tmp_path, monkeypatch):
    """A store in the current folder: a study with a step and four runs, and another experiment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDPLAN_STORE", raising=False)
    with Store() as store:
        study = store.save_study("demo", {"rounds": 1}, EXPERIMENT)
        store.save_step(study, "plan", {"clients_per_round": 3, "local_steps": 7})
        for seed in range(4):
            store.save_run(EXPERIMENT, make_run(seed, rounds=30))
        store.save_run(OTHER, make_run(rounds=3))
    return tmp_path / "fedplan.db"


def alter(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def is_answered(result):
    assert result.code in (0, 1, 2, 3), result.err
    assert "Traceback" not in result.err and "Warning" not in result.err
    if result.code == 1:
        assert "is damaged" in result.err and "fedplan export --salvage" in result.err, result.err


ALTERATIONS = [
    ("UPDATE cohorts SET members = ? WHERE run = 2", b"not zlib"),
    ("UPDATE cohorts SET members = ? WHERE run = 2", None),
    ("UPDATE cohorts SET shares = ? WHERE run = 2", b"\x78\x9c\x03\x00\x00\x00\x00\x01"),
    ("DELETE FROM cohorts WHERE run = 2",),
    ("UPDATE experiments SET settings = ? WHERE id = 1", "{"),
    ("UPDATE experiments SET settings = ? WHERE id = 1", "[1]"),
    ("UPDATE runs SET decisions = ? WHERE id = 2", "{not json"),
    ("UPDATE runs SET decisions = ? WHERE id = 2", '[{"nonsense": 1}]'),
    ("UPDATE runs SET seed = ? WHERE id = 2", "seven"),
    ("UPDATE runs SET final_loss = ? WHERE id = 2", b"\xff"),
    ("UPDATE rounds SET loss = ? WHERE run = 2", "no number"),
    ("UPDATE rounds SET round = ? WHERE run = 2 AND round = 3", "three"),
    ("UPDATE rounds SET seconds = ? WHERE run = 2", b""),
    ("UPDATE settings SET value = ?", '{"law": "nosuch"}'),
    ("UPDATE settings SET value = ?", "null"),
    ("UPDATE studies SET configuration = ?", "12"),
    ("UPDATE studies SET configuration = ?", "[" * 100_000),
    ("UPDATE studies SET name = ?", b"\xff\xfe"),
    ("UPDATE steps SET value = ?", "{"),
    ("UPDATE steps SET value = CAST(? AS TEXT)", b"\xff\xfe\xfd"),
]


@pytest.mark.parametrize("alteration", ALTERATIONS, ids=lambda each: f"{each[0]}; {each[1:]}"[:90])
def test_altered_cells_are_answered_by_every_command(store_file, fedplan, alteration):
    if alteration[-1] is None:
        alteration = ("UPDATE cohorts SET members = x'00' WHERE run = 2",)
    with closing(sqlite3.connect(store_file)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(*alteration[:1], alteration[1:])
    codes = []
    for words in COMMANDS:
        codes.append((result := fedplan(*words)).code)
        is_answered(result)
    assert any(codes), "some command must have met it"
    saved = fedplan("export", "--salvage", "-o", "rescued.db", "--format", "json")
    assert saved.code == 0, saved.err
    assert (
        saved.json["runs"]["saved"] < saved.json["runs"]["of"]
        or min(
            saved.json[table]["saved"] - saved.json[table]["of"] for table in ("studies", "steps")
        )
        < 0
    )
    for words in COMMANDS[:1]:
        assert fedplan(*words, "--store", "sqlite:///rescued.db").code == 0


def test_the_rest_of_a_damaged_store_is_saved_bit_for_bit(store_file, fedplan):
    alter(store_file, "UPDATE cohorts SET members = x'0102' WHERE run = 2")
    shown = fedplan("export", "demo", "-o", "runs.csv")
    assert shown.code == 1 and "4 of 5 runs, 1 of 1 studies" in shown.err, shown.err
    saved = fedplan("export", "--salvage", "-o", "rescued.db")
    assert (saved.code, saved.err) == (0, "") and "4 of 5 runs" in saved.out
    with Store("sqlite:///rescued.db", readonly=True) as store:
        assert store.find_runs(EXPERIMENT) == [make_run(seed, rounds=30) for seed in (0, 2, 3)]
        assert store.find_runs(OTHER) == [make_run(rounds=3)]
        (study,) = store.studies()
        assert store.steps(study) == {"plan": {"clients_per_round": 3, "local_steps": 7}}
    again = fedplan("export", "--salvage", "-o", "rescued.db")
    assert again.code == 2 and "exists already" in again.err
    assert not [each for each in store_file.parent.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_are_answered(store_file, fedplan, seed):
    draw = random.Random(seed)
    content = bytearray(store_file.read_bytes())
    for _ in range(draw.choice((1, 4, 30))):
        content[draw.randrange(100, len(content))] = draw.randrange(256)
    store_file.write_bytes(content)
    for words in COMMANDS:
        is_answered(fedplan(*words))
    salvaged = fedplan("export", "--salvage", "-o", "rescued.db")
    assert salvaged.code in (0, 1, 2) and "Traceback" not in salvaged.err


def test_what_cannot_be_opened_is_not_tried_again_and_again(store_file, fedplan, monkeypatch):
    """What is left of it is not asked for by those who are told that nothing is."""
    content = bytearray(store_file.read_bytes())
    content[100] = 0  # the kind of the page that lists the tables
    store_file.write_bytes(content)
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: opened.append(a) or connect(*a, **k))
    result = fedplan("list")
    assert result.code == 1 and "Nothing in it can be read." in result.err
    assert len(opened) <= 2
