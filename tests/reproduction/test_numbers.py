"""Numbers on the pages: from the committed tables, and the tables from the documented commands."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import leaderboard
import numpy as np
import pytest
from suite.standing import read_standings
from suite.tasks import TASKS

from fedplan_reproduction.folder import draw
from fedplan_reproduction.tables import TrainedRun, read_rows
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reproduction" / "results"
PAGES = (ROOT / "reproduction" / "README.md", ROOT / "docs" / "explanation" / "paper-to-code.md")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_leaderboard_is_what_its_command_writes():
    assert (ROOT / "reproduction" / "leaderboard.md").read_text() == leaderboard.page()


def test_readme_has_the_online_courses_numbers_of_the_suites_tables():
    tasks = [name for name, task in TASKS.items() if task.half]
    online = [s for s in read_standings(RESULTS, tasks) if s.course == "online"]
    readme = (ROOT / "README.md").read_text()
    assert f"**{np.mean([s.ratio for s in online]):.2f} of the best fixed (K, E)**" in readme
    for half, words in (("development", "six tasks it was made on"), ("check", "eight other")):
        own = np.array([s.ratio for s in online if s.half == half])
        row = next(line for line in readme.splitlines() if words in line)
        numbers = [float(text) for text in re.findall(r"\| (\d\.\d\d) (?=\|)", row)]
        expected = [own.mean(), np.quantile(own, 0.9), own.max()]
        assert numbers == [float(f"{value:.2f}") for value in expected]


def test_setup_1s_seconds_on_the_pages_are_those_of_its_tables():
    plans = {one.method: one for one in read_rows(RESULTS / "setup1" / "plans.csv", Priced)}
    runs = read_rows(RESULTS / "setup1" / "runs.csv", TrainedRun)
    accuracy = np.mean([run.test_accuracy for run in runs if run.status == "target"])
    said = [f"{plans[method].time_s:.1f} s" for method in (BEST, PAPER, FEDPLAN)]
    for page in PAGES:
        text = page.read_text()
        assert all(number in text for number in said), page
    assert f"{accuracy:.1%}" in PAGES[1].read_text()


def test_setup_3s_percentages_on_the_page_are_those_of_its_table():
    plans = read_rows(RESULTS / "setup3" / "plans.csv", Priced)
    paper = [p.relative_cost - 1 for p in plans if p.method == PAPER]
    finite = [value for value in paper if np.isfinite(value)]
    ours = [1 - p.relative_cost for p in plans if p.method == FEDPLAN]
    text = PAGES[1].read_text()
    for value in (np.mean(finite), max(finite), min(ours), max(ours)):
        assert f"{value:.1%}" in text


@pytest.mark.parametrize("setup", ["setup1", "setup2", "setup3"])
def test_a_figure_is_drawn_from_the_committed_tables_alone(setup, tmp_path):
    for path in (RESULTS / setup).glob("*.csv"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert draw(tmp_path, setup).stat().st_size > 50_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("setup1", ("setup1",)),
        ("setup3", ("setup3",)),
        ("setup3-data-seed-1", ("setup3", "data-seed=1")),
    ],
)
def test_table_1_is_what_its_command_writes(fedplan, tmp_path, name, asked):
    places = ("--output", tmp_path / "made", "--store", f"sqlite:///{tmp_path}/runs.db")
    result = fedplan("reproduce", *asked, "--seeds", 2, "--table-only", "-q", *places)
    assert result.code == 0
    kept = [row for row in rows_of(RESULTS / f"table1-{name}.csv") if int(row["seed"]) < 2]
    assert rows_of(tmp_path / "made" / "pilots.csv") == kept


@pytest.mark.slow
@pytest.mark.parametrize("setup", ["setup1", "setup3"])
def test_runs_of_a_grid_are_what_the_simulator_makes(fedplan, setup):
    first = next(row for row in rows_of(RESULTS / setup / "runs.csv") if row["seed"] == "0")
    asked = (
        f"{key}={first[key.replace('-', '_')]}" for key in ("clients-per-round", "local-steps")
    )
    result = fedplan("simulate", setup, *asked, "seeds=1", "--format", "json", "-q")
    assert result.code == 0
    (run,) = result.json["runs"]
    assert (run["status"], run["rounds"]) == (first["status"], int(first["rounds"]))
    assert run["time_s"] == pytest.approx(float(first["time_s"]), rel=1e-3)
