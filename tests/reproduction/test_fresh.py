"""Fresh tasks: their studies can be read, a cell is trained once, and the page has their rows."""

from __future__ import annotations

import importlib
import sys

import pytest
from docs.pages import ROOT

from fedplan.studies import read_study

RESULTS = ROOT / "reproduction" / "results"


@pytest.fixture
def fresh(monkeypatch):
    """The program, which is not a package."""
    monkeypatch.syspath_prepend(ROOT / "reproduction")
    return importlib.import_module("fresh")


def test_every_study_can_be_read_and_those_seen_are_among_them(fresh):
    for path in fresh.STUDIES.values():
        if "shared/data" not in path.read_text():  # which only some machines have
            assert read_study(str(path)).training.target_loss > 0
    assert set(fresh.STUDIES) > fresh.SEEN


def test_a_cell_is_trained_once_and_put_into_tables(fresh, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(fresh, "FLEETS", {"normal": ("rounds=40", "num-clients=10")})
    monkeypatch.setattr(fresh, "WEIGHTS", ("0",))
    monkeypatch.setenv("FEDPLAN_STORE", f"sqlite:///{tmp_path}/runs.db")
    words = ["fresh.py", "--tasks", "digits-iid-constant", "--seeds", "1", "--results"]
    monkeypatch.setattr(sys, "argv", [*words, str(tmp_path)])
    fresh.main()
    made = (tmp_path / "fresh.csv").read_text()
    (row,) = fresh.read_rows(tmp_path / "fresh.csv")
    assert (row["task"], row["reached"]) == ("digits-iid-constant", "1")
    shown = capsys.readouterr().out
    assert f"{float(row['cost']) / float(row['best_cost']):.2f} ({row['best']})" in shown
    fresh.main()
    assert (tmp_path / "fresh.csv").read_text() == made


def test_the_page_has_what_the_rows_say(fresh):
    rows = fresh.read_rows(RESULTS / "fresh.csv")
    text = fresh.tables(rows)
    assert text in (ROOT / "reproduction" / "fresh.md").read_text()
    cells = next(line for line in text.splitlines() if line.startswith("| fresh tasks")).split("|")
    mean, most, worst = (cell.strip() for cell in cells[3:6])
    row = f"| the same, ten tasks that had no part in its making | {mean} | {most} | {worst} |"
    assert row in (ROOT / "README.md").read_text()
