"""`fedplan list`, `show` and `export`: what they print, write and refuse."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stored_runs import EXPERIMENT, make_run

from fedplan.participation import Turns, uniform
from fedplan.store import Store

CONFIGURATION = {"training": {"rounds": 200, "max_time_s": math.inf}, "note": "[bold]as it is"}
PLAN = {"clients_per_round": 3, "local_steps": 7}
RUNS = [make_run(seed, rounds=2 + seed, clients=k) for k in (2, 3) for seed in (0, 1)]


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDPLAN_STORE", raising=False)
    return tmp_path / "fedplan.db"


@pytest.fixture
def study(path):
    """A store in the default place with two studies of one experiment, and another experiment."""
    with Store() as store:
        store.save_study("demo", {"rounds": 1}, EXPERIMENT)
        study = store.save_study("demo", CONFIGURATION, EXPERIMENT)
        store.save_step(study, "plan", PLAN)
        store.save_step(study, "verification", None)
        for run in RUNS:
            store.save_run(EXPERIMENT, run)
        store.save_run({"data": "mnist"}, make_run(status="diverged", rounds=0))
        return store.studies()[1]


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("show", "demo"),
        ("export", "demo", "-o", "a.csv"),
        ("plot", "demo", "-o", "a.png"),
        ("report", "demo", "-o", "a.html"),
        ("profile", "--fleet-from", "sqlite:///fedplan.db"),
    ],
)
def test_a_store_that_is_not_there_is_refused_and_not_made(fedplan, path, command):
    answer = fedplan(*command, "--format", "json")
    assert answer.code == 2 and not path.exists()
    (problem,) = answer.json["error"]["problems"]
    assert problem["source"] == "store fedplan.db" and "`fedplan run`" in problem["message"]


def test_an_empty_store_lists_nothing(fedplan, path):
    with Store():
        pass
    assert fedplan("list").out == "Nothing is stored in sqlite:///fedplan.db yet.\n"
    expected = {"success": True, "store": "sqlite:///fedplan.db", "studies": [], "experiments": []}
    assert fedplan("list", "--format", "json").json == expected


PAPER = ("course=paper", "pairs=[[5,10],[10,20],[15,60]]", "upper-loss=1.8", "lower-loss=0.9")


@pytest.fixture
def three_studies(fedplan, path):
    """The demo online, the same by the paper's procedure, and a sweep of it: one experiment."""
    assert fedplan("run", "seeds=2", "-q").code == 0
    assert fedplan("run", "seeds=2", *PAPER, "-q").code == 0
    words = ("sweep", "demo", "seeds=2", "clients-per-round=5,20", "local-steps=40", "-q")
    assert fedplan(*words).code == 0


def test_studies_of_one_name_are_told_apart_and_count_their_own_runs(fedplan, three_studies):
    plain, paper, swept = fedplan("list", "--format", "json").json["studies"]
    assert {plain["name"], paper["name"], swept["name"]} == {"demo"}
    assert "course" not in plain["differs"] and paper["differs"]["course"] == "paper"
    assert swept["differs"]["clients-per-round"] == "[5, 20]"
    assert (plain["num_runs"], paper["num_runs"], swept["num_runs"]) == (2, 3 + 2, 4)
    assert "course=paper" in fedplan("list").out
    shown = fedplan("show", paper["fingerprint"][:12], "--runs", "--format", "json").json
    assert shown["configuration"]["planning"]["course"] == "paper"
    assert len(shown["runs"]) == shown["num_runs"] == 5
    assert [run["made_for"] for run in shown["runs"]].count("pilot") == 3
    online = fedplan("show", plain["fingerprint"], "--runs", "--format", "json").json["runs"]
    assert {(run["course"], run["made_for"]) for run in online} == {("online", "training")}


def test_show_says_in_words_what_was_decided_and_what_runs_were_for(fedplan, three_studies):
    plain, paper, swept = fedplan("list", "--format", "json").json["studies"]
    text = fedplan("show", plain["fingerprint"], "--runs").out
    assert "2 (its experiment has 11)" in text and "online: begins with" in text
    assert "2 of 2 runs reached the target" in text and "{" not in text
    runs = fedplan("show", paper["fingerprint"], "--runs", "--format", "json").json["runs"]
    text = fedplan("show", paper["fingerprint"], "--runs").out
    assert "K=5, E=10, seed 1000000: " in text
    table = [line.split() for line in text.splitlines()]
    for run in runs:
        key = [str(run[name]) for name in ("clients_per_round", "local_steps", "seed")]
        (line,) = (words for words in table if words[:3] == key)
        if run["made_for"] == "pilot":
            assert line[-4:] == ["pilot", "its", "own", "loss"]
        else:
            assert line[-2:] == [run["made_for"], run["status"]]
    assert "cost least" in fedplan("show", swept["fingerprint"]).out
    whole = fedplan("show", plain["experiment"], "--runs", "--format", "json").json["runs"]
    assert [run["made_for"] for run in whole].count("sweep") == 4 and len(whole) == 11


def test_exported_runs_have_their_course_and_its_decisions(fedplan, path):
    assert fedplan("run", "seeds=1", "-q").code == 0
    assert fedplan("export", "demo", "-o", "runs.json").code == 0
    (run,) = json.loads(Path("runs.json").read_text())["runs"]
    assert not {"signal", "reports"} & run["rounds"][1].keys()  # which are not stored
    assert run["course"] == "online" and run["decisions"][0]["round"] == 1


@pytest.mark.parametrize("words", [(), PAPER], ids=["online", "paper"])
def test_runs_whose_end_belongs_to_the_experiment_are_found(fedplan, path, words):
    assert fedplan("run", "seeds=2", "evaluate-every=2", *words, "-q").code == 0
    answer = fedplan("show", "demo", "--runs", "--format", "json").json
    roles = [run["made_for"] for run in answer["runs"]]
    assert roles.count("training") == 2 and roles.count("pilot") == (3 if words else 0)


def test_list_counts_the_runs_of_studies_and_experiments(fedplan, study):
    answer = fedplan("list", "--format", "json").json
    assert [(one["name"], one["num_runs"], one["steps"]) for one in answer["studies"]] == [
        ("demo", 4, []),
        ("demo", 4, ["plan", "verification"]),
    ]
    assert answer["studies"][1]["fingerprint"] == study.fingerprint
    first, second = answer["experiments"]
    assert (
        first["fingerprint"] == study.experiment.fingerprint == answer["studies"][1]["experiment"]
    )
    assert first["settings"] == EXPERIMENT and (first["num_runs"], second["num_runs"]) == (4, 1)
    table = fedplan("list").out
    for words in ("demo", "plan, verification", first["fingerprint"][:12], "runs"):
        assert words in table


def test_show_has_settings_decisions_and_runs(fedplan, study):
    answer = fedplan("show", "demo", "--runs", "--format", "json").json
    assert answer["success"] and answer["fingerprint"] == study.fingerprint  # the newer of the two
    assert answer["configuration"]["training"] == {"rounds": 200, "max_time_s": None}
    assert answer["experiment"]["settings"] == EXPERIMENT
    assert answer["steps"] == {"plan": PLAN, "verification": None}
    assert answer["versions"].keys() == {"fedplan", "python", "numpy", "numba"}
    for shown, run in zip(answer["runs"], RUNS, strict=True):
        for name in ("clients_per_round", "local_steps", "seed", "status", "num_rounds",
                     "final_loss", "time_s", "energy_j"):  # fmt: skip
            assert shown[name] == getattr(run, name)
    assert fedplan("show", "demo", "--format", "json").json["runs"] is None
    table = fedplan("show", "demo", "--runs").out
    for words in ("demo", "training.rounds", "[bold]as it is", "K=3, E=7", "final loss"):
        assert words in table
    assert "final loss" not in fedplan("show", "demo").out


def test_show_takes_the_beginning_of_an_id(fedplan, study):
    experiment = study.experiment.fingerprint
    answer = fedplan("show", experiment[:8].upper(), "--format", "json").json
    assert answer["settings"] == EXPERIMENT and answer["num_runs"] == 4 and "steps" not in answer
    assert experiment[:12] in fedplan("show", experiment[:8]).out
    found = fedplan("show", study.fingerprint, "--format", "json").json
    assert found["name"] == "demo"


@pytest.mark.parametrize("command", ["show", "export"])
def test_what_is_not_there_or_not_clear_is_refused(fedplan, study, command):
    more = ["--output", "runs.csv"] if command == "export" else []
    unknown = fedplan(command, "dem", *more)
    assert unknown.code == 2 and "Did you mean demo? `fedplan list` shows" in unknown.err
    assert fedplan(command, "", *more).code == 2
    with Store() as store:
        for number in range(20):  # of 20 and more ids, two begin alike
            store.save_run({"number": number}, make_run())
        ids = [one.fingerprint[0] for one in (*store.studies(), *store.experiments())]
    twice = next(digit for digit in ids if ids.count(digit) > 1)
    unclear = fedplan(command, twice, *more, "--format", "json")
    assert unclear.code == 2 and "Give more of it" in unclear.json["error"]["message"]


def test_the_store_is_an_option_or_a_variable_of_the_environment(fedplan, study, path, monkeypatch):
    moved = path.rename(path.with_name("moved.db"))
    assert fedplan("show", "demo").code == 2
    assert fedplan("show", "demo", "--store", f"sqlite:///{moved}").code == 0
    monkeypatch.setenv("FEDPLAN_STORE", "sqlite:///moved.db")
    assert fedplan("show", "demo").code == 0
    assert fedplan("show", "demo", "--store", "sqlite:///fedplan.db").code == 2
    assert not path.exists()


@pytest.mark.parametrize(
    "command", [("list",), ("show", "demo"), ("export", "demo", "-o", "a.csv")]
)
def test_a_wrong_store_is_refused(fedplan, path, command):
    path.write_text("some notes\n")
    notes = fedplan(*command)
    assert notes.code == 2 and "is not a fedplan store" in notes.err
    assert path.read_text() == "some notes\n"
    bare = fedplan(*command, "--store", "fedplan.db", "--format", "json")
    assert bare.code == 2 and "Write sqlite:///fedplan.db." in bare.json["error"]["message"]


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_every_number_of_every_round(fedplan, study, tmp_path):
    answer = fedplan("export", "demo", "--output", "runs.csv")
    assert answer.code == 0 and answer.out == "Exported: 4 runs to runs.csv\n"
    rows = iter(read_csv(tmp_path / "runs.csv"))
    for run in RUNS:
        for record in run.rounds:
            row = next(rows)
            for name in ("clients_per_round", "local_steps", "seed", "status"):
                assert row[name] == str(getattr(run, name))
            for name in ("round", "seconds", "joules"):
                assert float(row[name]) == getattr(record, name)
            for name in ("loss", "accuracy", "test_accuracy"):
                assert (float(row[name]) if row[name] else None) == getattr(record, name)
            assert tuple(map(int, row["cohort"].split())) == record.cohort
            assert tuple(map(float, row["shares"].split())) == record.shares
            assert (row["participation"], row["model_loss"]) == ("uniform", "")
    assert next(rows, None) is None
    assert {file.name for file in tmp_path.iterdir()} == {"fedplan.db", "runs.csv"}


def test_runs_that_end_each_in_their_own_way_are_all_exported(fedplan, study, tmp_path):
    with Store() as store:
        for rounds in (3, 5):
            run = make_run(7, rounds=rounds, clients=2)
            store.save_run({**EXPERIMENT, "stop": {"max_rounds": rounds}}, run)
    assert fedplan("export", "demo", "-o", "runs.csv").out == "Exported: 6 runs to runs.csv\n"
    rows = read_csv(tmp_path / "runs.csv")
    assert [row["round"] for row in rows if row["seed"] == "7"] == list("0123012345")


def test_a_json_has_the_study_too(fedplan, study, tmp_path):
    answer = fedplan("export", "demo", "-o", "runs.json", "--format", "json")
    assert answer.json == {"success": True, "output": "runs.json", "num_runs": 4}
    document = json.loads((tmp_path / "runs.json").read_text())
    assert document["name"] == "demo" and document["steps"]["plan"] == PLAN
    assert document["experiment"]["settings"] == EXPERIMENT
    for written, run in zip(document["runs"], RUNS, strict=True):
        assert written["seed"] == run.seed
        assert [one["loss"] for one in written["rounds"]] == list(run.losses)
        assert [tuple(one["cohort"]) for one in written["rounds"]] == [
            one.cohort for one in run.rounds
        ]


def test_a_json_has_a_setting_once_and_where_it_changes(fedplan, study, tmp_path):
    turns = replace(uniform(2, 5), participation=Turns(groups=((0, 1), (2,)), visits=(2, 1)))
    run = make_run(seed=9)
    later = [replace(record, setting=turns, model_loss=0.5) for record in run.rounds[2:]]
    with Store() as store:
        store.save_run(EXPERIMENT, replace(run, rounds=(*run.rounds[:2], *later)))
    fedplan("export", "demo", "-o", "runs.json")
    *_, written = (
        one for one in json.loads((tmp_path / "runs.json").read_text())["runs"] if one["seed"] == 9
    )
    assert written["setting"] == uniform(2, 5).to_dict() and written["participation"] == "uniform"
    assert [one.get("setting") for one in written["rounds"]] == [
        None, None, turns.to_dict(), turns.to_dict(),
    ]  # fmt: skip
    assert [one["model_loss"] for one in written["rounds"]] == [None, None, 0.5, 0.5]


def test_a_parquet_has_every_number_of_every_round(fedplan, study, tmp_path):
    polars = pytest.importorskip("polars", reason="needs fedplan[frames]")
    assert fedplan("export", "demo", "-o", "runs.parquet").code == 0
    frame = polars.read_parquet(tmp_path / "runs.parquet")
    records = [record for run in RUNS for record in run.rounds]
    for name in ("round", "loss", "accuracy", "test_accuracy", "seconds", "joules"):
        assert frame[name].to_list() == [getattr(record, name) for record in records]
    assert frame["cohort"].to_list() == [list(record.cohort) for record in records]
    assert frame["shares"].to_list() == [list(record.shares) for record in records]
    assert set(frame["participation"]) == {"uniform"}
    assert frame["clients_per_round"].to_list() == [k for k in (2, 3) for _ in range(7)]
    with Store() as store:
        store.save_study("new", {}, {"data": "none yet"})
    assert fedplan("export", "new", "-o", "none.parquet").code == 0
    assert polars.read_parquet(tmp_path / "none.parquet").schema == frame.schema


def test_parquet_without_polars_says_what_to_type(fedplan, study, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "polars", None)
    answer = fedplan("export", "demo", "-o", "runs.parquet")
    assert answer.code == 1 and "pip install 'fedplan[frames]'" in answer.err
    assert "package polars" in answer.err and not (tmp_path / "runs.parquet").exists()


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("runs.xlsx", "must end in .csv, .json or .parquet"),
        ("runs", "must end in .csv"),
        ("nowhere/runs.csv", "folder that does not exist"),
        ("folder.csv", "is a folder"),
        ("a" * 300 + ".csv", "folder you can write to"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(fedplan, study, tmp_path, output, reason):
    (tmp_path / "folder.csv").mkdir()
    answer = fedplan("export", "demo", "-o", output)
    assert answer.code == 2 and reason in answer.err and "Traceback" not in answer.err


def test_every_problem_is_said_at_once(fedplan, study):
    answer = fedplan("export", "dmeo", "-o", "runs.xlsx", "--format", "json")
    assert len(answer.json["error"]["problems"]) == 2


def test_an_export_that_fails_leaves_the_old_file(fedplan, study, tmp_path, monkeypatch):
    (tmp_path / "runs.csv").write_text("old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedplan.store.export._write_csv", fail)
    answer = fedplan("export", "demo", "-o", "runs.csv")
    assert answer.code == 2 and "No space left on device" in answer.err
    assert (tmp_path / "runs.csv").read_text() == "old"
    assert {file.name for file in tmp_path.iterdir()} == {"fedplan.db", "runs.csv"}


def test_an_experiment_without_rounds_exports_its_heading_alone(fedplan, study, path, tmp_path):
    with Store() as store:
        store.save_study("new", {}, {"data": "none yet"})
    assert fedplan("export", "new", "-o", "none.csv").code == 0
    assert read_csv(tmp_path / "none.csv") == []
    assert fedplan("export", "new", "-o", "none.json").code == 0
    assert json.loads((tmp_path / "none.json").read_text())["runs"] == []
    assert fedplan("show", "new", "--runs").code == 0


def test_listing_loads_neither_numpy_nor_kernels(study, tmp_path):
    code = (
        "import sys; sys.argv = ['fedplan', 'list', '--format', 'json']\n"
        "from fedplan.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: code = stop.code\n"
        "print(code, sorted({'numpy', 'numba', 'polars', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("0 []\n")
