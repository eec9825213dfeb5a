"""Numbers on the pages: from the committed tables, and the tables from the documented commands."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import leaderboard
import numpy as np
import pytest
import seconds
from participation.report import print_summary
from suite.constants import constants_table
from suite.forecasts import forecasts_table
from suite.hopeless import hopeless_table
from suite.standing import read_standings, setup_tables, tables
from suite.tasks import SETUPS, TASKS

from fedplan_reproduction.folder import draw
from fedplan_reproduction.overhead import Overhead
from fedplan_reproduction.published import published_pilots
from fedplan_reproduction.tables import TrainedRun, read_rows
from fedplan_reproduction.weights import BEST, FEDPLAN, PAPER, Priced

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reproduction" / "results"
PAGES = (ROOT / "reproduction" / "README.md", ROOT / "docs" / "explanation" / "paper-to-code.md")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def pilots_of(table):
    folder = RESULTS / table / "pilots.csv"
    return folder if table in ("setup1", "setup3") else RESULTS / f"table1-{table}.csv"


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
    said = [f"{plans[method].time_s:,.1f} s" for method in (BEST, PAPER, FEDPLAN)]
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


def marked(page, mark):
    """What a command has written between the two marks of a page."""
    after = page.read_text().partition(f"<!-- {mark} -->")[2]
    return after.partition(f"<!-- end of {mark} -->")[0].strip()


def test_the_suites_tables_are_what_its_report_writes():
    page = ROOT / "reproduction" / "suite.md"
    suite = [name for name, task in TASKS.items() if task.half]
    assert marked(page, "courses") == tables(read_standings(RESULTS, suite))
    assert marked(page, "setups") == setup_tables(read_standings(RESULTS, SETUPS))
    assert marked(page, "constants") == constants_table(RESULTS / "suite-constants.csv")
    assert marked(page, "hopeless") == hopeless_table(RESULTS / "suite-hopeless.csv")
    forecasts = forecasts_table(RESULTS / "suite-forecasts.csv")
    assert marked(page, "forecasts") == forecasts
    first_cycle = forecasts.splitlines()[2].split(" | ")
    assert f"| {first_cycle[3]} on tasks left out" in (ROOT / "README.md").read_text()


def test_the_cells_of_turns_on_the_pages_are_those_of_its_table(capsys):
    print_summary(RESULTS)
    printed, page = (
        capsys.readouterr().out,
        (ROOT / "reproduction" / "participation.md").read_text(),
    )
    rows = printed.partition("fits:")[0].partition("|---")[2].splitlines()[1:]
    rows = [line for line in rows if line.startswith("|")]
    assert len(rows) > 20 and all(row in page for row in rows)
    mean, most, worst = rows[0].split(" | ")[2:5]
    readme = (ROOT / "README.md").read_text()
    assert f"| turns with the best fixed E, 11 tasks | {mean} | {most} | {worst} |" in readme


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("setup1", "{k}, {e} | {paper[0]} | {a} ± {sa} | {paper[1]} | {b} ± {sb}"),
        ("setup2", "{k}, {e} | {paper[0]} | {a} ± {sa} | {paper[1]} | {b} ± {sb}"),
        ("setup3", "{k}, {e} | {paper[0]} | {a} ± {sa} |"),
        ("setup3-data-seed-1", "| {a} ± {sa} |"),
        ("setup3-data-seed-2", "| {a} ± {sa} |"),
    ],
)
def test_table_1_on_the_page_is_of_its_runs(table, row):
    page = PAGES[0].read_text().partition(f"## Setup {table[5]}")[2].partition("\n## ")[0]
    found = {}
    for run in rows_of(pilots_of(table)):
        key = int(run["clients_per_round"]), int(run["local_steps"])
        found.setdefault(key, []).append((int(run["rounds_to_upper"]), int(run["rounds_to_lower"])))
    published = {
        (pilot.clients_per_round, pilot.local_steps): pilot for pilot in published_pilots(table[:6])
    }
    assert found.keys() == published.keys()
    for (k, e), rounds in found.items():
        means, spreads = np.mean(rounds, axis=0), np.std(rounds, axis=0, ddof=1)
        (a, b), (sa, sb) = ([f"{value:.1f}" for value in each] for each in (means, spreads))
        paper = published[k, e].rounds_to_upper, published[k, e].rounds_to_lower
        paper = [f"{value:g}" for value in paper]
        line = next(line for line in page.splitlines() if line.startswith(f"| {k}, {e} |"))
        assert row.format(k=k, e=e, a=a, sa=sa, b=b, sb=sb, paper=paper) in line
        assert f"{b} ± {sb} |" in line


def test_the_seconds_of_setup_1_on_the_page_are_those_of_its_table():
    page = PAGES[0].read_text()
    for row in rows_of(RESULTS / "setup1-seconds.csv"):
        end = f"| {row['rounds']} | {row['seconds']} |"
        assert any(line.startswith(f"| {row['changed']} |") and line.endswith(end)
                   for line in page.splitlines()), row  # fmt: skip


def test_what_setups_1_and_2_cost_on_the_page_is_of_their_tables():
    page = PAGES[0].read_text()
    (overhead,) = read_rows(RESULTS / "setup1" / "overhead.csv", Overhead)
    assert f"{overhead.measured:.2f} times" in page and f"{overhead.predicted:.2f} by the" in page
    plans = {one.method: one for one in read_rows(RESULTS / "setup2" / "plans.csv", Priced)}
    for text in (page, PAGES[1].read_text()):
        assert all(f"{plans[method].time_s:,.1f} s" in text for method in (BEST, PAPER, FEDPLAN))


def test_readme_compares_speeds_with_the_fastest_of_the_peers():
    readme, page = (ROOT / "README.md").read_text(), (ROOT / "benchmarks" / "README.md").read_text()
    table = page.partition("| engine | logistic-60 |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    ours = [float(text.replace(",", "")) for text in rows[0][1:]]
    ratios = {
        row[0]: [float(text.split(": ")[1].rstrip("x ")) for text in row[1:]] for row in rows[1:]
    }
    for column, (name, digits) in enumerate(
        (("60 features", 0), ("784 features", 1), ("LeNet-5", 1))
    ):
        line = next(line for line in readme.splitlines() if line.startswith("|") and name in line)
        least = min(row[column] for row in ratios.values())
        assert (
            f"{round(ours[column], -3 if column == 0 else -2 if column == 1 else 0):,.0f} " in line
        )
        assert f"{least:.{digits}f} x the fastest peer" in line
        if "Flower" in line:
            flower = min(ratios[engine][column] for engine in ratios if engine.startswith("flower"))
            assert f"{flower:.0f} x the fastest Flower setup" in line


def test_what_the_page_says_of_theorems_is_what_was_checked():
    page = PAGES[0].read_text()
    checks = {one["source"]: one for one in rows_of(RESULTS / "setup3" / "checks.csv")}
    broken = {source for source, one in checks.items() if one["verdict"] == "does not hold"}
    assert broken == {"Theorem 2", "Theorem 3"}
    remark = dict(re.findall(r"K=(\d+): (0\.\d\d) times", checks["Remark on Theorem 2"]["numbers"]))
    assert f"K = 20: {remark['20']} of the time of all 100, K = 50: {remark['50']}" in page
    least = re.search(r"of all: K=2, E=30 \(([\d.]+) J\)", checks["Theorem 3"]["numbers"])
    assert f"(E = 30, {float(least[1]):.1f} J)" in page


def test_the_mutants_on_the_page_are_those_of_their_table():
    rows = rows_of(RESULTS / "mutants.csv")
    counted = [row for row in rows if not row["why"].startswith("equivalent")]
    killed = [row for row in counted if row["outcome"].startswith("killed by")]
    page = PAGES[0].read_text().partition("## Mutants")[2]
    assert f"{len(killed)} of {len(counted)}" in page
    assert f"{len(rows) - len(counted)} more" in page
    assert all(row["why"] for row in rows if not row["outcome"].startswith("killed by"))


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
    kept = [row for row in rows_of(pilots_of(name)) if int(row["seed"]) < 2]
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


@pytest.mark.slow
def test_the_seconds_of_setup_1_are_what_is_trained():
    first = rows_of(RESULTS / "setup1-seconds.csv")[0]
    assert [str(found) for found in seconds.train(())] == [first["rounds"], first["seconds"]]
