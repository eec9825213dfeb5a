"""`fedplan run`: the contract of its JSON, its table, its exit codes, and that it goes on."""

from __future__ import annotations

import pytest
from scripted import follow_script

from fedplan.words import quantity, time_unit

CONTRACT = {
    "success", "status", "study", "plan", "course", "predicted", "measured", "limits", "pilots",
    "bill", "alternatives", "message", "report",
}  # fmt: skip
DECISION = {
    "round", "participation", "local_steps", "saturation", "predicted_rounds", "interval", "why",
}  # fmt: skip
PAPER = ("course=paper", "pairs=[[5,10],[10,20],[20,40]]", "upper-loss=1.5", "lower-loss=1.0")


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/runs.db"


def test_the_demo_is_the_default_and_keeps_its_contract(fedplan, store):
    result = fedplan("run", "seeds=2", "--store", store, "--format", "json", "-q")
    assert result.code == 0 and result.err == ""
    answer = result.json
    assert answer.keys() == CONTRACT and answer["success"] and answer["study"] == "demo"
    assert answer["plan"]["course"] == "online" and answer["pilots"] == []
    assert answer["plan"]["participation"]["law"] == "turns"
    runs = answer["measured"]["runs"]
    assert len(runs) == answer["measured"]["reached"] == 2
    assert answer["course"] == runs[0]["course"] and answer["course"][0]["round"] == 1
    assert all(one.keys() == DECISION for run in runs for one in run["course"])
    assert answer["course"][0]["local_steps"] == answer["plan"]["local_steps"]
    bill = answer["bill"]
    assert bill["all_in"] == bill["training"] and bill["pilots"]["cost"] == 0
    assert bill["all_in"]["time_s"] == pytest.approx(sum(run["time_s"] for run in runs) / 2)


def test_what_was_foretold_is_in_the_answer(fedplan, store, monkeypatch):
    follow_script(monkeypatch, foretold=(40.0, (30.0, 60.0)))
    answer = fedplan("run", "seeds=1", "--store", store, "--format", "json", "-q").json
    assert answer["predicted"]["rounds"] == 40
    assert answer["predicted"]["rounds_interval"] == [30, 60]
    low, high = answer["predicted"]["time_s_interval"]
    assert low == pytest.approx(answer["predicted"]["time_s"] * 0.75) and high == 2 * low
    inside = 30 <= answer["measured"]["rounds"] <= 60
    assert answer["measured"]["as_predicted"] is inside
    assert [(one["round"], one["local_steps"]) for one in answer["course"]] == [
        (1, 20), (6, 40), (11, 30),
    ]  # fmt: skip
    assert answer["course"][1]["saturation"] == 60 and answer["course"][1]["interval"] == [30, 60]
    assert answer["course"][0]["interval"] is None


def test_the_same_command_again_says_the_same(fedplan, store):
    words = ("run", "demo", "seeds=1", "--store", store, "--format", "json", "-q")
    assert fedplan(*words).json == fedplan(*words).json


def test_the_table_shows_decisions_and_the_bill_beside_others(fedplan, store, monkeypatch):
    follow_script(monkeypatch)
    result = fedplan("run", "demo", "seeds=1", "energy-weight=0.5", "--store", store, "-q")
    assert result.code == 0
    for words in ("from round", "local steps", "training, predicted", "all in", "Reached loss 0.6",
                  "expected: uniform sampling, best"):  # fmt: skip
        assert words in result.out


def test_a_forecast_without_an_end_is_said_in_words(fedplan, store, monkeypatch):
    follow_script(monkeypatch, foretold=(float("inf"), (40.0, float("inf"))))
    out = fedplan("run", "demo", "seeds=1", "--store", store, "-q").out
    assert "never (40 to never)" in out and "inf" not in out
    words = ("run", "demo", "seeds=1", "--store", store, "-q", "--format", "json")
    answer = fedplan(*words).json
    assert answer["predicted"] is None and answer["course"][1]["interval"] == [40, None]


def test_many_decisions_are_shown_by_their_ends(fedplan, store, monkeypatch):
    at = tuple(range(1, 31))
    follow_script(monkeypatch, steps=tuple(20 + n % 2 for n in at), at=at)
    out = fedplan("run", "demo", "seeds=1", "--store", store, "-q").out
    shown = [line.split()[0] for line in out.splitlines() if line.split() and "groups" not in line]
    assert "..." in shown and "2" in shown and "30" in shown and "15" not in shown


@pytest.mark.parametrize("words", [(), ("participation=turns",), PAPER])
@pytest.mark.parametrize(("weight", "unit"), [("0", "s"), ("0.5", "weighted s and J"), ("1", "J")])
def test_costs_are_in_what_counts(fedplan, store, tmp_path, weight, unit, words):
    page = tmp_path / "demo.md"
    words = ("run", "seeds=1", *words, f"energy-weight={weight}", "--store", store)
    assert f"cost ({unit})" in fedplan(*words, "--report", page, "-q").out
    assert f"cost ({unit})" in page.read_text()


def test_a_plot_is_drawn(fedplan, store, tmp_path):
    picture = tmp_path / "demo.png"
    assert fedplan("run", "seeds=1", "--store", store, "--plot", picture, "-q").code == 0
    assert picture.stat().st_size > 10_000


def test_a_report_has_every_number_that_was_asked_for(fedplan, store, tmp_path, monkeypatch):
    follow_script(monkeypatch)
    page = tmp_path / "demo.md"
    words = ("run", "seeds=1", "--store", store, "--format", "json", "-q", "--report", page)
    answer = fedplan(*words).json
    text = page.read_text()
    assert answer["report"] == str(page) and text.startswith("# demo: reached")
    bill, predicted = answer["bill"]["all_in"], answer["predicted"]
    assert quantity(bill["time_s"], time_unit(bill["time_s"])) in text
    assert answer["message"] in text
    assert f"| {predicted['rounds']:,.0f} |" in text and "| target-loss | 0.6 |" in text
    assert "| 6 | turns | 4 | 40 | 60 | 50 (" in text
    assert all(other["name"] in text for other in answer["alternatives"])


@pytest.mark.parametrize(
    ("overrides", "code", "status", "begun"),
    [
        (("participation=turns", "deadline-s=1"), 3, "infeasible", False),
        (("learning-rate=1e200",), 1, "diverged", True),
        (("target-loss=0.01", "rounds=30"), 1, "hopeless", True),
        (("max-time-s=20",), 1, "not reached", True),
        (("target-loss=9",), 1, "nothing to learn", True),
        ((*PAPER[:2], "upper-loss=1.5", "lower-loss=0.01", "rounds=9"), 1, "out of reach", False),
    ],
)
def test_what_does_not_end_well_has_a_status_an_exit_code_and_advice(
    fedplan, store, tmp_path, overrides, code, status, begun
):
    words = ("run", *overrides, "--store", store, "--format", "json", "-q")
    for page in (tmp_path / "a.md", tmp_path / "a.html"):
        result = fedplan(*words, "--plot", tmp_path / "a.png", "--report", page)
        assert result.code == code
        answer = result.json
        assert not answer["success"] and answer["status"] == status and answer["message"]
        assert (answer["measured"] is not None) == begun == (answer["bill"]["all_in"] is not None)
        assert answer["message"] in page.read_text() or page.suffix == ".html"


def test_a_hopeless_training_ends_with_1_and_says_why(fedplan, store, monkeypatch):
    follow_script(monkeypatch, gives_up=5)
    result = fedplan("run", "seeds=2", "--store", store, "-q")
    assert result.code == 1
    assert "given up after 5 rounds" in " ".join(result.out.split())
    assert "Raise target-loss." in " ".join(result.out.split())


def test_a_setting_on_the_command_line_is_said_to_be_unused(fedplan, store):
    words = ("run", "demo", "target-loss=2", "seeds=1", "clients-per-round=4", "local-steps=9")
    said = fedplan(*words, "--store", store).err
    assert "Not used: clients-per-round and local-steps, which `fedplan run` chooses" in said
    assert "Not used" not in fedplan(*words, "-q", "--store", store).err
    assert "Not used" not in fedplan(*words[:4], "--store", store).err


def test_limits_are_confirmed(fedplan, store):
    words = ("run", "seeds=2", "--store", store, "--format", "json", "-q")
    kept = fedplan(*words, "deadline-s=100000").json
    assert kept["limits"] == {"deadline_s": {"limit": 100_000, "runs_within": 2}}
    refused = fedplan(*words, "participation=turns", "deadline-s=1")
    assert refused.code == 3 and refused.json["limits"]["deadline_s"]["runs_within"] is None


def test_the_papers_course_has_its_pilots_on_the_bill(fedplan, store):
    answer = fedplan(
        "run", "seeds=2", "target-loss=0.8", *PAPER, "deadline-s=10", "--store", store,
        "--format", "json", "-q",
    ).json  # fmt: skip
    assert answer["plan"]["course"] == "paper" and len(answer["pilots"]) == 3
    bill = answer["bill"]
    for name in ("time_s", "energy_j", "cost"):
        both = bill["pilots"][name] + bill["training"][name]
        assert bill["all_in"][name] == pytest.approx(both)
    assert bill["pilots_share"] == pytest.approx(bill["pilots"]["cost"] / bill["training"]["cost"])
    assert answer["limits"] == {"deadline_s": {"limit": 10, "runs_within": 0}}
    assert answer["status"] == "reached" and "0 of 2 kept the deadline of 10 s" in answer["message"]


def test_everything_wrong_is_said_at_once(fedplan, store):
    result = fedplan(
        "run", "demo", "energy-weight=2", "price-hour=1", "course=guess", "colour=blue",
        "--plot", "demo.xyz", "--store", store,
    )  # fmt: skip
    assert result.code == 2
    for words in ("energy-weight <= 1", "course must be", "colour is no key", "demo.xyz"):
        assert words in result.err


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("pilots=designed", "Leave pilots out, or set course=paper"),
        ("pilot-budget=2", "max-time-s and max-energy-j bound what is spent"),
    ],
)
def test_what_served_designed_pilots_is_refused_with_what_to_do_instead(
    fedplan, store, tmp_path, override, words
):
    refused = fedplan("run", "demo", override, "--store", store)
    assert refused.code == 2 and words in " ".join(refused.err.split())
    file = tmp_path / "old.toml"
    name, value = override.split("=")
    quoted = value if value.isdigit() else f'"{value}"'
    file.write_text(
        "[task]\ndata = 'synthetic'\n[training]\nlearning-rate = 0.1\n"
        f"[planning]\n{name} = {quoted}\n"
    )
    refused = fedplan("run", file, "--store", store)
    assert refused.code == 2 and words in " ".join(refused.err.split())
    assert "6" in refused.err  # the line


def test_a_course_that_does_not_go_with_the_participation_is_refused(fedplan, store):
    refused = fedplan("run", "demo", "course=online", "participation=turns", "--store", store)
    assert refused.code == 2 and "or set course=fixed" in " ".join(refused.err.split())
    refused = fedplan("run", "setup1", "pilots=paper", "course=fixed", "--store", store)
    assert refused.code == 2 and "Leave one of them out" in " ".join(refused.err.split())


def test_a_weight_and_prices_together_are_refused(fedplan, store):
    result = fedplan("run", "energy-weight=0.5", "price-hour=1", "--store", store)
    assert result.code == 2 and "not both" in result.err


@pytest.mark.parametrize("word", ["pilots=paper", "course=paper"])
def test_the_papers_pilots_need_their_pairs_and_losses(fedplan, store, word):
    result = fedplan("run", "demo", word, "--store", store)
    assert result.code == 2
    for key in ("pairs", "upper-loss", "lower-loss"):
        assert f"{key} is missing" in result.err
