"""`fedplan plot` and `fedplan run --plot`: the same figure, with and without training."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedplan.core.records import RoundRecord, RunRecord
from fedplan.participation import uniform
from fedplan.simulation import Simulator
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
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
    again = fedplan("plot", "demo", "--store", url, "-o", tmp_path / "plot.svg")
    assert again.code == 0 and again.out == "" and "Drawn" in again.err
    assert (tmp_path / "plot.svg").read_bytes() == (tmp_path / "run.svg").read_bytes()
    assert store.read_bytes() == before


def test_json_says_what_was_drawn(fedplan, url, tmp_path):
    path = tmp_path / "plot.html"
    answer = fedplan("plot", "demo", "--store", url, "-o", path, "--format", "json")
    assert answer.json == {"success": True, "output": str(path), "status": "reached"}
    assert b"plotly" in path.read_bytes()


def test_the_newest_of_a_name_is_drawn_or_the_one_of_an_id(fedplan, url, tmp_path):
    with Store(url, readonly=True) as store:
        (first,) = [one for one in store.studies() if one.configuration["training"]["seeds"] == 2]
    assert fedplan("run", "demo", "seeds=1", "--store", url, "-q").code == 0
    for name, path in (("demo", "newest.svg"), (first.fingerprint[:8], "first.svg")):
        assert fedplan("plot", name, "--store", url, "-o", tmp_path / path).code == 0
    newest, older = ((tmp_path / path).read_text() for path in ("newest.svg", "first.svg"))
    assert "Reached loss" in newest and "2 of 2 runs" in older


def test_a_sweep_is_drawn_as_the_sweep_drew_it(fedplan, tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    grid = ("clients-per-round=2,5", "local-steps=20,40", "seeds=1", "target-loss=1")
    drawn = fedplan("sweep", "demo", *grid, "--store", url, "-q", "--plot", tmp_path / "sweep.svg")
    assert drawn.code == 0
    assert fedplan("plot", "demo", "--store", url, "-o", tmp_path / "plot.svg").code == 0
    assert (tmp_path / "plot.svg").read_bytes() == (tmp_path / "sweep.svg").read_bytes()


def test_runs_without_a_study_are_drawn_by_their_losses(fedplan, tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as store:
        store.save_run({"data": "elsewhere"}, run_of([2.0, 1.0, 0.5]))
        name = store.experiments()[0].fingerprint[:8]
        empty = store.save_study("empty", {}, {"data": "nothing"})
    assert fedplan("plot", name, "--store", url, "-o", tmp_path / "runs.svg").code == 0
    assert "K=2, E=5" in (tmp_path / "runs.svg").read_text()
    nothing = fedplan("plot", empty.name, "--store", url, "-o", tmp_path / "none.svg")
    assert nothing.code == 2 and "nothing to draw" in nothing.err


def run_of(losses):
    rounds = [
        RoundRecord(round=r, loss=loss, accuracy=None, cohort=(), seconds=1.0, joules=0.0)
        for r, loss in enumerate(losses)
    ]
    return RunRecord(setting=uniform(2, 5), seed=0, status="rounds", rounds=tuple(rounds))


def test_a_store_that_is_not_there_is_not_made(fedplan, tmp_path):
    store = tmp_path / "none.db"
    answer = fedplan("plot", "demo", "--store", f"sqlite:///{store}", "-o", tmp_path / "p.png")
    assert answer.code == 2 and not store.exists()


def test_wrong_words_are_all_reported_before_any_work(fedplan, tmp_path):
    store = f"sqlite:///{tmp_path}/none.db"
    answer = fedplan("plot", "nothing", "-o", tmp_path / "plot.gif", "--store", store)
    assert answer.code == 2 and ".png" in answer.err and "is not there" in answer.err


def test_a_study_that_failed_is_drawn_as_far_as_it_got(fedplan, url, tmp_path):
    path = tmp_path / "failed.png"
    words = ("demo", "target-loss=0.001", "rounds=20")
    answer = fedplan("run", *words, "--store", url, "-q", "--plot", path)
    assert answer.code == 1 and path.stat().st_size > 0


@pytest.mark.parametrize("command", ["plan", "frontier"])
def test_a_plot_of_nothing_is_said_not_to_be_there(fedplan, tmp_path, command):
    path = tmp_path / "nothing.png"
    answer = fedplan(command, "--example", "--deadline-s", "1", "--plot", path)
    assert answer.code == 3 and not path.exists()
    assert f"Not drawn: {path}" in answer.err
