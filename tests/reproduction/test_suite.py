"""The suite's command: a small grid is trained once, kept, and priced."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

REPRODUCTION = Path(__file__).parents[2] / "reproduction"
CHECK = {
    "short", "iid-cosine", "two-labels", "synthetic-exponential", "power-law-step", "long",
    "torch-mlp", "lenet5",
}  # fmt: skip


def suite(command: str, results: Path) -> subprocess.CompletedProcess[str]:
    words = [command, "--tasks", "short", "--quick", "--results", str(results)]
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
