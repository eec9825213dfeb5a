"""The suite's command: a small grid is trained once, kept, and priced."""

from __future__ import annotations

import ast
import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPRODUCTION = Path(__file__).parents[2] / "reproduction"
CHECK = {
    "short", "iid-cosine", "two-labels", "synthetic-exponential", "power-law-step", "long",
    "torch-mlp", "lenet5",
}  # fmt: skip


def suite(command: str, results: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [command, "--tasks", "short", "--quick", "--results", str(results), *more]
    return subprocess.run(
        [sys.executable, str(REPRODUCTION / "suite.py"), *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tasks():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPRODUCTION))
        from suite.tasks import TASKS

        yield TASKS


def test_a_grid_is_trained_once_and_the_best_setting_is_named(tmp_path):
    first = suite("grid", tmp_path)
    assert "runs in" in first.stderr and "short: done" in first.stderr
    kept = (tmp_path / "suite-runs-short.csv").read_text()
    rows = list(csv.DictReader(kept.splitlines()))
    assert {int(row["law"]) for row in rows} == {1, 8, 40}
    assert all(int(row["rounds"]) > 0 for row in rows)
    again = suite("best", tmp_path)
    assert "runs in" not in again.stderr
    assert (tmp_path / "suite-runs-short.csv").read_text() == kept
    assert "all clients' loss after 15 rounds" in again.stdout
    assert "| lognormal | " in again.stdout


def test_courses_are_trained_once_and_put_into_tables(tmp_path):
    courses = ("--courses", "online", "oort", "paper", "K=10, E=20", "--seeds", "1")
    suite("compare", tmp_path, *courses)
    kept = (tmp_path / "suite-courses-short.csv").read_text()
    rows = list(csv.DictReader(kept.splitlines()))
    assert {(row["fleet"], row["course"], row["seed"]) for row in rows} == {
        (fleet, course, "101") for fleet in ("normal", "lognormal") for course in courses[1:5]
    }
    assert all(row["status"] == "target" and float(row["ratio"]) > 0 for row in rows)
    assert "trainings" not in suite("compare", tmp_path, *courses).stderr
    assert (tmp_path / "suite-courses-short.csv").read_text() == kept
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- courses -->\nold\n<!-- end of courses -->\nafter\n")
    for _ in range(2):
        told = suite("report", tmp_path, "--page", str(page)).stdout
    assert page.read_text() == (
        f"before\n<!-- courses -->\n\n{told}\n<!-- end of courses -->\nafter\n"
    )
    assert "| K=10, E=20 | 2 | " in told and "The dearest cells of the online course" in told
    assert (tmp_path / "suite.png").stat().st_size > 5_000


def test_a_course_that_looks_at_less_of_a_cell_trains_alike_on_the_rest(tasks):
    from suite.courses import LOOKS_AT, make_course

    from fedplan.core.fleet import Fleet
    from fedplan.core.objective import Objective
    from fedplan.core.problem import Problem
    from fedplan.core.records import Stop
    from fedplan.simulation import Simulator

    task = tasks["short"]
    learner = task.make(REPRODUCTION)
    fleets = [
        Fleet(step_time_s=times, comm_time_s=1.0, step_energy_j=0.1, samples=learner.sizes)
        for times in (range(1, 41), range(40, 0, -1))
    ]
    for course, looks in LOOKS_AT.items():
        own = fleets[:1] if "fleet" in looks else fleets
        losses = {
            Simulator(learner, task.rate).run(
                make_course(
                    course,
                    Problem(
                        fleet=fleet, objective=Objective.weighted(weight), target_loss=task.target,
                        learning_rate=task.rate,
                    ),
                ),
                Stop(max_rounds=12), seed=101,
            ).losses
            for fleet in own
            for weight in (0.0, 0.9)
        }  # fmt: skip
        assert len(losses) == 1


def test_runs_that_never_arrive_are_counted_and_not_averaged(tmp_path, tasks):
    from suite.courses import COLUMNS
    from suite.standing import read_standings, tables

    rows = [
        ("short", "check", "normal", "0", "online", 101, "target", 10, 5, 0.5),
        ("short", "check", "normal", "0", "online", 102, "rounds", 600, 90, 9.0),
        ("short", "check", "normal", "1", "online", 101, "target", 10, 5, 1.5),
        ("short", "check", "normal", "1", "oort", 101, "diverged", 3, 5, 1.5),
    ]
    with (tmp_path / "suite-courses-short.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    told = tables(read_standings(tmp_path, ["short"]))
    assert "| online | 2 | 1.00 | 1.40 | 1.50 | 1 of 3 |" in told
    assert "| oort | 1 |  |  |  | 1 of 1 |" in told
    assert "| 0 | 0.50 (1 n) |  |" in told and "| 1 | 1.50 | (1 n) |" in told
    assert "| short | normal | 0 | 0.50 | 10 | 1 of 2 |" in told


def test_both_halves_have_their_tasks(tasks):
    halves = {
        half: {name for name, task in tasks.items() if task.half == half}
        for half in ("development", "check")
    }
    assert len(halves["development"]) == 6
    assert halves["check"] == CHECK
    assert all(tasks[name].reason for name in CHECK)


def test_grids_go_from_one_client_to_all(tasks):
    for task in tasks.values():
        assert task.clients[0] == 1 and list(task.clients) == sorted(set(task.clients))
        assert list(task.steps) == sorted(set(task.steps))
        assert len(task.steps) >= 4 and len(task.clients) >= 5


def test_every_kept_run_of_a_task_is_of_its_grid_or_by_turns(tasks):
    for name, task in tasks.items():
        path = REPRODUCTION / "results" / f"suite-runs-{name}.csv"
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                assert int(row["local_steps"]) in task.steps
                assert row["law"].startswith("turns-") or int(row["law"]) in task.clients


def test_the_page_names_every_constant_of_the_planning_folders():
    source, page = REPRODUCTION.parent / "src" / "fedplan", REPRODUCTION / "suite.md"
    text = page.read_text(encoding="utf-8")
    named = {
        (name, place)
        for names, place in re.findall(r"^\| ([A-Z_, ]+) \| `(\w+/\w+)` \|", text, re.MULTILINE)
        for name in names.split(", ")
        if not place.startswith("participation/")
    }
    found = set()
    for folder in ("course", "convergence", "planning"):
        for path in (source / folder).glob("*.py"):
            names = _numeric_constants(ast.parse(path.read_text(encoding="utf-8")))
            found |= {(name, f"{folder}/{path.stem}") for name in names}
    assert found - named == set(), "add to the tables of reproduction/suite.md"
    assert named - found == set(), "take out of the tables of reproduction/suite.md"


def _numeric_constants(module):
    """Names in capitals that a module gives a number, or what is made of numbers."""
    for line in module.body:
        if not isinstance(line, ast.Assign | ast.AnnAssign) or line.value is None:
            continue
        within = list(ast.walk(line.value))
        values = [one.value for one in within if isinstance(one, ast.Constant)]
        is_text = isinstance(line.value, ast.Tuple) and isinstance(values[0], str)
        if is_text or not any(type(value) in (int, float) for value in values):
            continue
        for target in getattr(line, "targets", None) or [line.target]:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and name.id.strip("_").isupper():
                    yield name.id
