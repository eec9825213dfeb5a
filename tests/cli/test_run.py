"""`fedplan run`: the contract of its JSON, its table, its exit codes, and that it goes on."""

from __future__ import annotations

import re

import pytest

CONTRACT = {
    "success", "status", "study", "plan", "predicted", "measured", "limits", "pilots", "bill",
    "message", "report",
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/runs.db"


def test_the_demo_is_the_default_and_keeps_its_contract(fedplan, store):
    result = fedplan("run", "seeds=2", "--store", store, "--format", "json", "-q")
    assert result.code == 0 and result.err == ""
    answer = result.json
    assert answer.keys() == CONTRACT and answer["success"] and answer["study"] == "demo"
    low, high = answer["predicted"]["rounds_interval"]
    assert low <= answer["predicted"]["rounds"] <= high
    assert answer["measured"]["as_predicted"] == (low <= answer["measured"]["rounds"] <= high)
    assert len(answer["measured"]["runs"]) == answer["measured"]["reached"] == 2
    assert len(answer["pilots"]) in (3, 4)
    bill = answer["bill"]
    assert bill["pilots_share"] == pytest.approx(bill["pilots"]["cost"] / bill["training"]["cost"])


def test_the_same_command_again_says_the_same(fedplan, store):
    words = ("run", "demo", "seeds=1", "--store", store, "--format", "json", "-q")
    assert fedplan(*words).json == fedplan(*words).json


def test_the_table_shows_pilots_prediction_and_measurement(fedplan, store):
    result = fedplan("run", "demo", "seeds=1", "energy-weight=0.5", "--store", store, "-q")
    assert result.code == 0
    for words in ("pilot: 2 clients", "all pilots", "training, predicted", "training, measured"):
        assert words in result.out


@pytest.mark.parametrize(("weight", "unit"), [("0", "s"), ("0.5", "weighted s and J"), ("1", "J")])
def test_costs_are_in_what_counts(fedplan, store, tmp_path, weight, unit):
    page = tmp_path / "demo.md"
    words = ("run", "seeds=1", f"energy-weight={weight}", "--store", store, "--report", page, "-q")
    assert f"cost ({unit})" in fedplan(*words).out and f"cost ({unit})" in page.read_text()


def test_a_plot_is_drawn(fedplan, store, tmp_path):
    picture = tmp_path / "demo.png"
    assert fedplan("run", "seeds=1", "--store", store, "--plot", picture, "-q").code == 0
    assert picture.stat().st_size > 10_000


def test_a_report_has_every_number_that_was_asked_for(fedplan, store, tmp_path):
    page = tmp_path / "demo.md"
    words = ("run", "seeds=1", "--store", store, "--format", "json", "-q", "--report", page)
    answer = fedplan(*words).json
    text = page.read_text()
    assert answer["report"] == str(page) and text.startswith("# demo: reached")
    assert f"{answer['measured']['time_s']:,.4g}" in text and answer["message"] in text
    assert f"{answer['predicted']['rounds']:,.4g}" in text and "| target-loss | 0.6 |" in text


@pytest.mark.parametrize(
    ("overrides", "code", "status"),
    [
        (("deadline-s=1",), 3, "infeasible"),
        (("learning-rate=1e200",), 1, "diverged"),
        (("target-loss=0.01", "rounds=30"), 1, "out of reach"),
    ],
)
def test_what_does_not_end_well_has_a_status_an_exit_code_and_advice(
    fedplan, store, overrides, code, status
):
    result = fedplan("run", *overrides, "--store", store, "--format", "json", "-q")
    assert result.code == code
    answer = result.json
    assert not answer["success"] and answer["status"] == status and answer["measured"] is None
    assert answer["pilots"] and answer["message"]


def test_limits_are_confirmed_or_one_that_can_be_kept_is_named(fedplan, store):
    words = ("run", "seeds=2", "--store", store, "--format", "json", "-q")
    refused = fedplan(*words, "deadline-s=1")
    assert refused.code == 3 and refused.json["limits"]["deadline_s"]["runs_within"] is None
    least = re.search(
        r"shortest deadline that can be counted on is ([\d,]+) s", refused.json["message"]
    )[1]
    kept = fedplan(*words, f"deadline-s={2 * float(least.replace(',', ''))}").json
    assert kept["limits"] == {"deadline_s": {"limit": 2 * float(least), "runs_within": 2}}
    assert "It keeps the deadline of" in kept["message"] and "Each kept the" in kept["message"]


def test_a_limit_that_training_does_not_keep_is_said(fedplan, store):
    """The paper's procedure knows no deadline."""
    answer = fedplan(
        "run", "seeds=2", "target-loss=0.8", "pilots=paper", "pairs=[[5,10],[10,20],[20,40]]",
        "upper-loss=1.5", "lower-loss=1.0", "deadline-s=10", "--store", store, "--format", "json",
        "-q",
    ).json  # fmt: skip
    assert answer["limits"] == {"deadline_s": {"limit": 10, "runs_within": 0}}
    assert answer["status"] == "reached" and "0 of 2 kept the deadline of 10 s" in answer["message"]


def test_everything_wrong_is_said_at_once(fedplan, store):
    result = fedplan(
        "run", "demo", "energy-weight=2", "price-hour=1", "pilots=guess", "colour=blue",
        "--plot", "demo.xyz", "--store", store,
    )  # fmt: skip
    assert result.code == 2
    for words in ("energy-weight <= 1", "pilots must be", "colour is no key", "demo.xyz"):
        assert words in result.err


def test_a_weight_and_prices_together_are_refused(fedplan, store):
    result = fedplan("run", "energy-weight=0.5", "price-hour=1", "--store", store)
    assert result.code == 2 and "not both" in result.err


def test_the_papers_pilots_need_their_pairs_and_losses(fedplan, store):
    result = fedplan("run", "demo", "pilots=paper", "--store", store)
    assert result.code == 2
    for key in ("pairs", "upper-loss", "lower-loss"):
        assert f"{key} is missing" in result.err
