"""The store's runs on the page: listed, compared, and seen while they go on."""

from __future__ import annotations

import pytest
from scripted import follow_script
from stored_runs import EXPERIMENT, make_run

from fedplan.core.records import RoundRecord
from fedplan.errors import InputError
from fedplan.participation import uniform
from fedplan.store import Store
from fedplan.web import runs


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/fedplan.db"


@pytest.fixture
def stored(url):
    with Store(url) as store:
        for seed in range(3):
            store.save_run(EXPERIMENT, make_run(seed=seed, rounds=8))
        store.save_run(EXPERIMENT, make_run(clients=4, rounds=1200))
        store.save_study("mine", {"training": {"target-loss": 0.25}}, EXPERIMENT)
    return url


def test_a_store_that_is_not_there_is_empty_and_stays_so(url, tmp_path):
    found = runs.listing(url)
    assert found["studies"] == found["experiments"] == []
    assert list(tmp_path.iterdir()) == []


def test_studies_and_runs_are_listed(stored):
    found = runs.listing(stored)
    (study,) = found["studies"]
    assert (study["name"], study["num_runs"], study["target_loss"]) == ("mine", 4, 0.25)
    listed = runs.runs_of(stored, study["experiment"])
    assert listed["total"] == 4
    assert sorted(run["key"] for run in listed["runs"]) == [
        [2, 5, 0], [2, 5, 1], [2, 5, 2], [4, 5, 0],
    ]  # fmt: skip


def test_curves_are_the_runs_that_were_stored(stored):
    (study,) = runs.listing(stored)["studies"]
    asked = {
        "experiment": study["experiment"],
        "study": study["id"],
        "runs": [[2, 5, 1], [4, 5, 0], [9, 9, 9]],
    }
    found = runs.curves(stored, asked)
    target, short, long = found["figure"]["data"]  # what is not there is left out
    run = make_run(seed=1, rounds=8)
    evaluated = [record for record in run.rounds if record.loss is not None]
    assert short["x"] == [record.round for record in evaluated]
    assert short["y"] == pytest.approx([record.loss for record in evaluated], rel=1e-4)
    assert len(long["y"]) == 400 and long["x"][-1] == 1200
    assert target["name"] == "target 0.25" and found["forecast"] is None
    for against, total in (("seconds", run.time_s), ("joules", run.energy_j)):
        figure = runs.curves(stored, asked | {"against": against})["figure"]
        unit = {"(min)": 60.0}.get(figure["layout"]["xaxis"]["title"]["text"].split()[-1], 1.0)
        assert figure["data"][1]["x"][-1] * unit == pytest.approx(total, rel=1e-4)


def test_a_run_that_goes_on_is_first_and_grows(stored):
    record = RoundRecord(round=0, loss=2.0, accuracy=None, cohort=(), seconds=0.0, joules=0.0)
    with Store(stored) as store:
        store.save_round(EXPERIMENT, uniform(3, 7), 0, record)
        (study,) = runs.listing(stored)["studies"]
        first = runs.runs_of(stored, study["experiment"])["runs"][0]
        assert (first["key"], first["status"], first["rounds"]) == ([3, 7, 0], "unfinished", 0)
        more = RoundRecord(round=1, loss=1.0, accuracy=None, cohort=(1,), seconds=5.0, joules=2.0)
        store.save_round(EXPERIMENT, uniform(3, 7), 0, more)
        asked = {"experiment": study["experiment"], "runs": [[3, 7, 0]]}
        found = runs.curves(stored, asked | {"against": "seconds"})
        (curve,) = found["figure"]["data"]
        assert curve["y"] == [2.0, 1.0] and curve["x"] == [0.0, 5.0]
        assert found["going"] == ["So far K=3, E=7, seed 0: 1 round, 5 s, 2 J."]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"experiment": "x", "runs": []},
        {"experiment": 5, "runs": []},
        {"experiment": "x", "runs": [], "against": "euros"},
        {"experiment": "x", "runs": [[1, 2]]},
        {"experiment": "x", "runs": [[True, 2, 3]]},
        {"experiment": "x", "runs": [[1, 2, 10**30]]},
        {"experiment": "x", "runs": [["1", 2, 3]]},
        {"experiment": "x", "runs": [[1, 2, 3]] * 25},
    ],
)
def test_what_is_refused(stored, asked):
    with pytest.raises(InputError):
        runs.curves(stored, asked)


def test_the_forecast_and_the_decisions_of_a_course_are_on_the_page(url, fedplan, monkeypatch):
    follow_script(monkeypatch, foretold=(40.0, (30.0, 60.0)))
    result = fedplan("run", "demo", "seeds=1", "--store", url, "--format", "json", "-q")
    assert result.code == 0, result.err
    found = runs.listing(url)
    (study,) = found["studies"]
    assert study["plan"]["course"] == "online" and study["plan"]["local_steps"] == 20
    (listed,) = runs.runs_of(url, study["experiment"])["runs"]
    assert listed["name"] == study["plan"]["label"] == "online, from 4 groups, E=20"
    asked = {"experiment": study["experiment"], "study": study["id"], "runs": [listed["key"]]}
    found = runs.curves(url, asked)
    assert found["forecast"]["interval"] == [30, 60]
    assert "40 rounds were expected (30 to 60)" in found["forecast"]["words"]
    traces = {trace["name"]: trace for trace in found["figure"]["data"]}
    assert traces["the end, as predicted"]["x"] == [30, 60]
    assert traces["re-planned"]["hovertext"] == [
        "from round 6: 4 groups, 40 local steps",
        "from round 11: 4 groups, 30 local steps",
    ]


def test_a_steered_run_and_one_that_keeps_to_its_setting_are_told_apart(url, fedplan, monkeypatch):
    follow_script(monkeypatch, steps=(20,), at=(1,))
    assert fedplan("run", "demo", "seeds=1", "--store", url, "-q").code == 0
    words = ("participation=turns", "groups=4", "local-steps=20", "seeds=1")
    assert fedplan("sweep", "demo", *words, "--store", url, "-q").code == 0
    (experiment,) = runs.listing(url)["experiments"]
    listed = runs.runs_of(url, experiment["id"])["runs"]
    assert len(listed) == 2 and listed[0]["key"] != listed[1]["key"]
