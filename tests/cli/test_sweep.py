"""`fedplan sweep`: the contract of its JSON, its table, its files, its exit codes."""

from __future__ import annotations

import csv
import os
import pty
import subprocess
import sys

import pytest
from children import start

CONTRACT = {"success", "study", "target_loss", "unit", "cells", "best", "message"}
CELL = {
    "clients_per_round", "local_steps", "seeds", "reached", "rounds", "rounds_sd", "time_s",
    "energy_j", "cost", "cost_error", "participation", "groups",
}  # fmt: skip
SMALL = (
    "sweep", "demo", "num-clients=6", "target-loss=0.4", "rounds=25", "seeds=2",
    "clients-per-round=1,4", "local-steps=1,20",
)  # fmt: skip


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDPLAN_STORE", f"sqlite:///{tmp_path}/runs.db")
    return tmp_path / "runs.db"


@pytest.mark.usefixtures("store")
def test_json_table_and_files_say_the_same(fedplan, tmp_path):
    output, plot = tmp_path / "runs.csv", tmp_path / "sweep.png"
    done = fedplan(*SMALL, "--output", output, "--plot", plot, "--format", "json")
    answer = done.json
    assert done.code == 0 and answer.keys() == CONTRACT
    assert all(cell.keys() == CELL for cell in [*answer["cells"], answer["best"]])
    settings = [(cell["clients_per_round"], cell["local_steps"]) for cell in answer["cells"]]
    assert settings == [(1, 1), (1, 20), (4, 1), (4, 20)]
    slow = answer["cells"][0]
    assert slow["reached"] < slow["seeds"] == 2 and slow["cost"] is slow["cost_error"] is None
    best = answer["best"]
    assert best["local_steps"] == 20 and best["seeds"] == 1 and best["cost_error"] is None
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8 and {row["status"] for row in rows} == {"target", "rounds"}
    mean = answer["cells"][1]
    of_cell = [r for r in rows if (r["clients_per_round"], r["local_steps"]) == ("1", "20")]
    assert sum(float(r["time_s"]) for r in of_cell) / 2 == pytest.approx(mean["time_s"])
    assert plot.stat().st_size > 10_000 and f"Drawn: {plot}" in done.err

    table = fedplan(*SMALL)
    assert table.code == 0 and " ".join(answer["message"].split()) in " ".join(table.out.split())
    for words in ("K=1", "K=4", "best", f"{slow['reached']} of 2", "8"):
        assert words in table.out


@pytest.mark.usefixtures("store")
def test_a_target_that_nothing_reaches_exits_with_1_and_prints_all_the_same(fedplan, tmp_path):
    words = ("target-loss=0.01", "--plot", tmp_path / "sweep.svg")
    answer, table = fedplan(*SMALL, *words, "--format", "json"), fedplan(*SMALL, *words)
    assert answer.code == table.code == 1 and not answer.json["success"]
    assert answer.json["best"] is None and "raise target-loss" in answer.json["message"]
    assert "0 of 2" in table.out and (tmp_path / "sweep.svg").exists()


@pytest.mark.usefixtures("store")
def test_wide_grids_go_on_below(fedplan):
    wide = f"clients-per-round={','.join(map(str, range(1, 13)))}"
    words = ("sweep", "demo", wide, "local-steps=5", "rounds=1", "seeds=1")
    out = fedplan(*words).out
    assert "K=12" in out and max(map(len, out.splitlines())) <= 110


def test_every_problem_is_said_at_once(fedplan, store):
    words = ("clients-per-round=9,x", "local-steps=", "sedes=2", "target-loss=0")
    paths = ("--plot", "a.gif", "--output", "a.txt", "--format", "json")
    answer = fedplan("sweep", "demo", "num-clients=6", *words, *paths)
    assert answer.code == 2 and not store.exists()
    found = [problem["message"] for problem in answer.json["error"]["problems"]]
    assert len(found) == 7
    for part in ("'x'", "''", "clients-per-round=9, num-clients=6", "seeds?", "target-loss", ".png",
                 "must end in .csv"):  # fmt: skip
        assert any(part in message for message in found), part


def test_a_terminal_shows_runs_done_of_all_unless_told_not_to(store):
    def shown(*words, **environment):
        master, slave = pty.openpty()
        process = start(
            [sys.executable, "-m", "fedplan.cli", *SMALL, *words],
            stdout=subprocess.DEVNULL,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
        )
        os.close(slave)
        text = b""
        while True:
            try:
                text += os.read(master, 4096)
            except OSError:  # the other end is closed
                break
        os.close(master)
        assert process.wait() == 0
        return text.decode()

    assert "/8" in shown()
    store.unlink()
    assert shown("-q") == "" and "/8" not in shown(NO_COLOR="1")


@pytest.mark.usefixtures("store")
def test_turns_are_swept_over_groups(fedplan):
    words = (
        "sweep", "demo", "num-clients=6", "target-loss=0.8", "rounds=25", "seeds=2",
        "participation=turns", "groups=3,2", "local-steps=5,20",
    )  # fmt: skip
    answer = fedplan(*words, "--format", "json").json
    assert all(cell.keys() == CELL for cell in answer["cells"])
    found = [(c["groups"], c["local_steps"], c["clients_per_round"]) for c in answer["cells"]]
    assert found == [(2, 5, None), (2, 20, None), (3, 5, None), (3, 20, None)]
    out = fedplan(*words).out
    assert "2 groups" in out and "3 groups" in out
    assert "turns" in fedplan("show", "demo", "--runs").out


def test_a_grid_that_its_law_does_not_have_is_refused(fedplan):
    done = fedplan("sweep", "demo", "participation=turns", "groups=2,30", "clients-per-round=1,2")
    assert done.code == 2
    assert "groups <= num-clients" in done.err and "clients-per-round goes with" in done.err
    done = fedplan("sweep", "demo", "groups=2,x", "dropout=2")
    assert done.code == 2 and "groups must be whole numbers" in done.err
    assert "groups goes with participation" in done.err and "dropout < 1" in done.err
