"""`fedplan compare`: bills as of single runs, what is trained once, and what is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from children import start

CONTRACT = {"success", "study", "target_loss", "unit", "against", "courses"}
COURSE = {
    "course", "reached", "seeds", "rounds", "time_s", "energy_j", "cost", "cost_error", "ratio",
    "message",
}  # fmt: skip
STUDY = ("demo", "num-clients=6", "target-loss=0.9", "rounds=60", "seeds=1")
PAPER = ("pairs=[[2, 5], [4, 20]]", "upper-loss=1.5", "lower-loss=1.0")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDPLAN_STORE", f"sqlite:///{tmp_path}/runs.db")
    return tmp_path / "runs.db"


def compare(fedplan, *words):
    return fedplan("compare", *STUDY, *words, "--format", "json", "-q")


def test_bills_are_those_of_each_course_run_alone(fedplan, tmp_path):
    picture = tmp_path / "bills.png"
    courses = ("--course", "online", "--course", "paper", "--course", "K=3,E=10")
    done = compare(fedplan, *PAPER, *courses, "--seeds", 2, "--plot", picture)
    answer = done.json
    assert done.code == 0 and answer.keys() == CONTRACT and answer["against"] == "K=3, E=10"
    assert all(row.keys() == COURSE and row["seeds"] == 2 for row in answer["courses"])
    online, paper, pair = answer["courses"]
    for row in (online, paper):
        words = (f"course={row['course']}", "seeds=2", "--store", f"sqlite:///{tmp_path}/alone.db")
        alone = fedplan("run", *STUDY, *PAPER, *words, "--format", "json", "-q").json
        for name in ("time_s", "energy_j", "cost"):
            assert row[name] == pytest.approx(alone["bill"]["all_in"][name])
    fixed = fedplan("simulate", *STUDY, "clients-per-round=3", "local-steps=10", "seeds=2",
                    "--format", "json", "-q").json  # fmt: skip
    assert pair["time_s"] == pytest.approx(sum(run["time_s"] for run in fixed["runs"]) / 2)
    assert pair["ratio"] == 1.0
    assert online["ratio"] == pytest.approx(online["cost"] / pair["cost"])
    assert picture.stat().st_size > 10_000 and f"Drawn: {picture}" in done.err
    table = fedplan("compare", *STUDY, *PAPER, *courses, "--seeds", 2).out
    assert "against K=3, E=10" in table and "2 of 2" in table


def test_more_seeds_and_courses_train_only_what_is_new(fedplan):
    first = fedplan("compare", *STUDY, "--course", "online", "-v").err
    assert first.count("training:") == 1
    more = ("--course", "online", "--course", "K=3,E=10", "--seeds", 2)
    second = fedplan("compare", *STUDY, *more, "-v").err
    assert second.count("training:") == 3 and second.count("found:") == 1
    assert "training:" not in fedplan("compare", *STUDY, *more, "-v").err


def test_without_courses_all_that_the_study_allows_are_compared(fedplan):
    answer = compare(fedplan).json
    names = [row["course"] for row in answer["courses"]]
    assert names[0] == answer["against"] == "online" and {"oort", "fedtune"} < set(names)
    assert "paper" not in names
    assert all(row["ratio"] is None for row in answer["courses"] if row["reached"] < row["seeds"])


def test_the_best_fixed_pair_is_the_cheapest_of_the_sweeps_grid(fedplan):
    answer = compare(fedplan, "--course", "online", "--course", "best-fixed", "--seeds", 2).json
    swept = fedplan("sweep", *STUDY, "seeds=2", "--format", "json", "-v")
    assert "training:" not in swept.err
    costs = [cell["cost"] for cell in swept.json["cells"] if cell["cost"] is not None]
    assert answer["courses"][1]["cost"] == pytest.approx(min(costs))
    assert answer["against"] == answer["courses"][1]["course"]


def test_a_target_that_nothing_reaches_exits_with_1(fedplan):
    result = compare(fedplan, "target-loss=0.01", "rounds=3", "--course", "K=3,E=10")
    assert result.code == 1 and not result.json["success"]
    assert result.json["courses"][0]["ratio"] is None


def stored_runs(path):
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as database:
        try:
            return database.execute("SELECT count(*) FROM runs").fetchone()[0]
        except sqlite3.OperationalError:  # the tables are being made
            return 0


@pytest.mark.e2e
def test_a_killed_command_goes_on_and_comes_to_the_same_bills(fedplan, tmp_path, store):
    asked = ("demo", "target-loss=0.45", "rounds=400", "--course", "K=2,E=20", "--course",
             "fedtune", "--course", "online", "--seeds", "3", "--format", "json", "-q")  # fmt: skip
    process = start(
        [sys.executable, "-m", "fedplan.cli", "compare", *asked], stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while stored_runs(store) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 2 <= stored_runs(store) < 9
    resumed = fedplan("compare", *asked)
    whole = fedplan("compare", *asked, "--store", f"sqlite:///{tmp_path}/whole.db")
    assert resumed.json == whole.json and stored_runs(store) == 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--course", "onlin", "--course", "K=0,E=5"), ("onlin", "K=0,E=5", "best-fixed")),
        (("--course", "K=7,E=5"), ("clients-per-round <= num-clients", "7")),
        (("--course", "paper"), ("pairs", "upper-loss")),
        (("participation=turns", "--course", "online"), ("decides itself",)),
        (("--seeds", "0"), ("seeds >= 1",)),
        (("colour=blue", "--plot", "no.gif"), ("colour", ".png")),
    ],
)
def test_what_is_wrong_is_refused_with_everything_at_once(fedplan, store, words, said):
    result = fedplan("compare", *STUDY, *words)
    assert result.code == 2 and all(text in result.err for text in said), result.err
    assert not store.exists()
