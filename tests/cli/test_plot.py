"""`fedplan plot` and `fedplan run --plot`: the same figure, with and without training."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedplan.simulation import Simulator
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.studies.workflow import run_study

STUDY = ("demo", "seeds=2")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A store with one finished study."""
    url = f"sqlite:///{tmp_path_factory.mktemp('plot')}/runs.db"
    with Store(url) as store:
        run_study(build_experiment(read_study(STUDY[0], STUDY[1:])), store)
    return url


def test_the_store_alone_gives_the_figure_of_the_run(fedplan, url, tmp_path, monkeypatch):
    drawn = fedplan("run", *STUDY, "--store", url, "-q", "--plot", tmp_path / "run.svg")
    assert drawn.code == 0 and "Drawn" in drawn.err

    def train(*_args, **_options):
        raise AssertionError("nothing may be trained")

    monkeypatch.setattr(Simulator, "run_all", train)
    store = Path(url.removeprefix("sqlite:///"))
    before = store.read_bytes()
    again = fedplan("plot", *STUDY, "--store", url, "-o", tmp_path / "plot.svg")
    assert again.code == 0 and again.out == "" and "Drawn" in again.err
    assert (tmp_path / "plot.svg").read_bytes() == (tmp_path / "run.svg").read_bytes()
    assert store.read_bytes() == before


def test_json_says_what_was_drawn(fedplan, url, tmp_path):
    path = tmp_path / "plot.html"
    answer = fedplan("plot", *STUDY, "--store", url, "-o", path, "--format", "json")
    assert answer.json == {"success": True, "output": str(path), "status": "reached"}
    assert b"plotly" in path.read_bytes()


@pytest.mark.parametrize("change", ["seeds=3", "learning-rate=0.02"])
def test_a_study_that_is_not_all_there_is_refused(fedplan, url, tmp_path, change):
    path = tmp_path / "plot.png"
    answer = fedplan("plot", "demo", change, "--store", url, "-o", path)
    assert answer.code == 2 and "is not in the store" in answer.err
    assert "fedplan run" in answer.err and not path.exists()


def test_a_store_that_is_not_there_is_not_made(fedplan, tmp_path):
    store = tmp_path / "none.db"
    answer = fedplan("plot", "demo", "--store", f"sqlite:///{store}", "-o", tmp_path / "p.png")
    assert answer.code == 2 and not store.exists()


def test_wrong_words_are_all_reported_before_any_work(fedplan, tmp_path):
    answer = fedplan("plot", "nothing", "-o", tmp_path / "plot.gif")
    assert answer.code == 2 and ".png" in answer.err and "nothing" in answer.err


def test_a_study_that_failed_is_drawn_as_far_as_it_got(fedplan, url, tmp_path):
    path = tmp_path / "failed.png"
    words = ("demo", "target-loss=0.001", "rounds=20")
    answer = fedplan("run", *words, "--store", url, "-q", "--plot", path)
    assert answer.code == 1 and path.stat().st_size > 0
