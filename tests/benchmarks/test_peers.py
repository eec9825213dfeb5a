"""The peers' benchmark: its arithmetic and its sanity check; the engines themselves are not run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@pytest.fixture
def comparison(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    import comparison

    yield comparison
    del sys.modules["comparison"]


def report(steps_per_s: float, losses: dict[str, list[float]] | None = None) -> dict:
    modes = {
        "training": {"steps_per_s": 2 * steps_per_s},
        "evaluation": {"steps_per_s": steps_per_s},
    }
    return {"modes": modes, "losses": losses or {}, "first_losses": {"0": 2.0, "1": 2.4}}


def test_a_ratio_is_taken_turn_by_turn(comparison):
    ours, theirs = [report(100), report(50), report(90)], [report(10), report(10), report(1)]
    assert comparison.speed(ours, "training").median == 180
    spread = comparison.ratio(ours, theirs, "evaluation")
    assert (spread.low, spread.median, spread.high) == (5, 10, 90)
    lines = comparison.table({"fedplan": ours, "torch": theirs})
    assert lines[2].split() == ["fedplan", "180", "(100", "-", "200)", "90.0", "(50.0", "-", "100)"]
    assert lines[3].split()[-6:] == ["10.0", "(1.0", "-", "10.0)", "10.0", "x"]


def test_the_share_of_the_peak_counts_the_loss_once_a_round(comparison):
    work = {"step_flop": 10.0, "loss_flop": 400.0, "steps_per_round": 20, "peak": 1000.0}
    assert comparison.peak_share(50, "training", **work) == pytest.approx(0.5)
    assert comparison.peak_share(10, "evaluation", **work) == pytest.approx(0.3)


def test_engines_agree_on_the_seeds_they_share(comparison):
    ours = report(1, {"0": [1.8, 1.0], "1": [2.0, 1.4]})
    both, one = report(1, {"0": [1.9, 1.02], "1": [1.8, 1.4]}), report(1, {"0": [1.7, 0.97]})
    assert comparison.disagreements({"fedplan": ours, "torch": both, "flower": one}, 2) == []


@pytest.mark.parametrize(
    ("curve", "problem"),
    [([1.8, 1.1], "within 5%"), ([1.8], "within 5%"), ([1.8, float("nan")], "20% below the first")],
)
def test_an_engine_that_trained_something_else_is_named(comparison, curve, problem):
    ours = report(1, {"0": [1.8, 1.0], "1": [2.0, 1.4]})
    found = comparison.disagreements({"fedplan": ours, "pfl": report(1, {"0": curve})}, 2)
    assert all(line.startswith("pfl: ") for line in found)
    assert any(problem in line for line in found)


def test_agreement_without_learning_is_none(comparison):
    idle = report(1, {"0": [2.0, 2.0]})
    assert any("20% below" in line for line in comparison.disagreements({"fedplan": idle}, 2))
    assert comparison.disagreements({"torch": idle}, 2)
