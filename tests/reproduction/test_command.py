"""`fedplan reproduce`: its folder, its JSON, that it goes on after a kill, and what it refuses."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

import pytest
from children import start

from fedplan.tables import read_pilots

TINY = ("target-loss=1.9", "pairs=[[10, 10], [20, 20]]", "--quick", "--seeds", "1", "-q")
CONTRACT = {
    "setup", "quick", "seeds", "target_loss", "took_s", "output", "table1", "quickest", "plans",
    "checks", "cautions", "summary",
}  # fmt: skip


@pytest.fixture
def words(tmp_path):
    return ("--store", f"sqlite:///{tmp_path}/runs.db", "--output", tmp_path / "made")


def test_setup3_makes_its_folder_and_keeps_its_contract(fedplan, words, tmp_path):
    result = fedplan("reproduce", "setup3", *TINY, *words, "--format", "json")
    assert result.code == 0 and result.err == ""
    (answer,) = result.json["setups"]
    assert answer.keys() == CONTRACT and answer["seeds"] == 1 and answer["quick"]
    first = answer["table1"][0]
    assert (first["upper"]["published_rounds"], first["lower"]["published_rounds"]) == (52, 106)
    assert {plan["method"] for plan in answer["plans"]} == {"fedplan", "paper", "best measured"}
    assert len(answer["checks"]) == 8
    folder = tmp_path / "made"
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "table1.csv", "pilots.csv", "heading.csv", "runs.csv", "plans.csv",
        "checks.csv", "figure5.png",
    }  # fmt: skip
    page = (folder / "README.md").read_text()
    assert "fedplan reproduce setup3" in page and "`target-loss=1.9`" in page
    assert all(line in page for line in answer["summary"])
    assert all(one["numbers"] in page for one in answer["checks"])
    pictures = [(folder / "figure5.png").read_bytes()]
    (folder / "figure5.png").unlink()
    again = fedplan("reproduce", "setup3", "--redraw", "--output", folder)
    assert again.code == 0 and "figure5.png" in again.out
    assert [(folder / "figure5.png").read_bytes()] == pictures
    other = fedplan("reproduce", "setup1", "--redraw", "--output", folder)
    assert other.code == 2 and "is not of setup1" in other.err
    pilots = read_pilots(folder / "pilots.csv")
    assert [pilot.rounds_to_lower for pilot in pilots] == [
        row["lower"]["rounds"] for row in answer["table1"]
    ]


def test_setup1_has_no_energy_to_speak_of(fedplan, words, tmp_path):
    tiny = ("target-loss=1.6", "pairs=[[10, 50], [20, 100]]", "upper-loss=1.8", "lower-loss=1.6")
    result = fedplan("reproduce", "setup1", *tiny, "--quick", "--seeds", "1", "-q", *words)
    assert result.code == 0
    assert "no pair that the paper has" in result.out  # the losses are others than the paper's
    page = (tmp_path / "made" / "README.md").read_text()
    assert "the devices' energy is not known" in page
    curves = (tmp_path / "made" / "curves.csv").read_text()
    assert all(f"\n{panel}," in curves for panel in "abde") and "fedplan" in curves
    assert (tmp_path / "made" / "figure3.png").exists()


def test_table_1_alone_says_never_where_a_seed_does_not_arrive(fedplan, words, tmp_path):
    result = fedplan(
        "reproduce", "setup3", "pairs=[[10, 10]]", "rounds=3", "--seeds", 2, "--table-only", "-q",
        *words,
    )  # fmt: skip
    assert result.code == 0 and "never" in result.out
    with (tmp_path / "made" / "table1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rounds"] for row in rows] == ["never", "never"]
    assert [row["within_10_percent_or_3_rounds"] for row in rows] == ["no", "no"]
    assert not list((tmp_path / "made").glob("*.png"))


def stored_runs(path):
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as database:
        try:
            return database.execute("SELECT count(*) FROM runs").fetchone()[0]
        except sqlite3.OperationalError:  # the tables are being made
            return 0


@pytest.mark.e2e
def test_a_killed_command_goes_on_and_comes_to_the_same_table(fedplan, tmp_path):
    # The runs of the second pair are long enough to be killed in.
    pairs = "pairs=[[10, 10], [80, 80]]"
    asked = ("reproduce", "setup3", pairs, "--table-only", "--seeds", "4", "-q")

    def places(name):
        return (*asked, "--store", f"sqlite:///{tmp_path}/{name}.db", "--output", tmp_path / name)

    process = start([sys.executable, "-m", "fedplan.cli", *map(str, places("killed"))])
    deadline = time.monotonic() + 120
    while stored_runs(tmp_path / "killed.db") < 3 and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = stored_runs(tmp_path / "killed.db")
    assert 3 <= kept < 8 and not (tmp_path / "killed" / "table1.csv").exists()
    assert fedplan(*places("killed")).code == fedplan(*places("whole")).code == 0
    tables = [(tmp_path / name / "table1.csv").read_bytes() for name in ("killed", "whole")]
    assert tables[0] == tables[1] and stored_runs(tmp_path / "killed.db") == 8


def test_mnist_that_is_missing_is_said_before_anything_is_trained(
    fedplan, words, tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDPLAN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for setup in ("setup2", "all"):
        result = fedplan("reproduce", setup, "--seeds", 1, *words)
        assert result.code == 2 and "--download" in result.err and "mnist-mini" in result.err
    assert not (tmp_path / "runs.db").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("setup4",), "setup1"),
        (("setup3", "--seeds", "0"), "seeds >= 1"),
        (("setup3", "seeds=4"), "--seeds"),
        (("setup3", "colour=blue"), "colour"),
        (("setup3", "target-loss=0"), "target-loss"),
        (("setup3", "--table-only", "--figure-only"), "Give one of them"),
        (("setup3", "--output", "no/such/folder"), "no folder"),
        (("setup3", "--output", os.devnull), "must be a folder"),
    ],
)
def test_what_is_wrong_is_refused_with_a_remedy(fedplan, tmp_path, monkeypatch, asked, said):
    monkeypatch.chdir(tmp_path)
    result = fedplan("reproduce", *asked)
    assert result.code == 2 and said in result.err
    assert not list(tmp_path.iterdir())
