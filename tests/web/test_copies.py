"""What is copied from the page gives exactly the plan that the page shows."""

from __future__ import annotations

import shlex

import pytest
from conftest import PILOTS, SETUP3

from fedplan import write_fleet
from fedplan.csvfile import Upload
from fedplan.web.answers import answer
from fedplan.web.state import read_state

STATES = [
    {"energy_weight": 0.3},
    {"energy_weight": 0.0, "method": "paper"},
    {
        "objective": "prices",
        "price_hour": 2,
        "price_kwh": 0.3,
        "price_mb": 1e-4,
        "mb_per_client_round": 5,
    },
    {"objective": "prices", "co2_per_kwh": 300},
    {"energy_weight": 0.7, "deadline_s": 1500, "max_local_steps": 20, "max_rounds": 400},
    {"energy_weight": 0.7, "deadline_s": 15},
    {"energy_weight": 0.2, "bound": "own", "a0": 2000.0, "b0": 0.5, "c0": 1 / 3, "target_gap": 0.5},
    {"fleet": "drawn", "num_clients": 30, "straggler_share": 0.2, "law": "lognormal"},
    {"fleet": "drawn", "num_clients": 2, "spread": 0.0, "energy_weight": 1.0},
    {"fleet": "uploaded", "energy_weight": 0.4},
    {"fleet": "uploaded", "pilots": "uploaded", "energy_weight": 0.4},
    {"fleet": "uploaded", "pilots": "uploaded", "energy_weight": 0.4, "method": "paper"},
    {"pilots": "uploaded", "energy_weight": 0.4, "method": "exact"},
    {"participation": "turns", "energy_weight": 0.5, "max_clients_per_round": 10},
    {"participation": "turns", "deadline_s": 15},
    {"participation": "turns", "pilots": "uploaded", "method": "paper"},
    {"participation": "shuffled", "fleet": "drawn", "num_clients": 30, "energy_weight": 0.1},
    {"participation": "weighted", "fleet": "uploaded", "objective": "prices", "price_hour": 3},
    {"bound": "none", "energy_weight": 0.2},
    {"bound": "none", "fleet": "drawn", "num_clients": 40, "rounds": 300, "saturation_low": 20},
    {"bound": "none", "participation": "uniform", "saturation_high": 80, "method": "paper"},
]


@pytest.fixture
def asked(shelf, tmp_path, monkeypatch):
    """Answers a state, with the files that a user has where the command is typed."""
    monkeypatch.chdir(tmp_path)
    name = "it's my fleet.csv"
    files = {
        "fleet": shelf.add_fleet(Upload(name, SETUP3.encode()))[0],
        "pilots": shelf.add_pilots(Upload("pilots.csv", PILOTS.encode()))[0],
    }
    (tmp_path / name).write_text(SETUP3)
    (tmp_path / "pilots.csv").write_text(PILOTS)

    def ask(state):
        ids = {key: files[key] for key in files if state.get(key) == "uploaded"}
        question = read_state({**state, **ids}, shelf)
        shown = answer(question)
        if shown["fleet_file"] is not None:  # the page offers it beside the command
            write_fleet(shown["fleet_file"], question.fleet)
        return shown

    return ask


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_command_prints_the_same_plan(asked, fedplan, state):
    shown = asked(state)
    words = shlex.split(shown["command"])
    assert words[:2] == ["fedplan", "plan"]
    printed = fedplan(*words[1:], "--format", "json")
    assert printed.code == (0 if shown["success"] else 3), printed.err
    assert printed.json["method"] == shown["method"]
    if shown["success"]:
        assert printed.json["participation"]["law"] == shown["participation"]["law"]
        row = shown["rows"][0]
        for name in ("clients_per_round", "local_steps", "rounds", "time_s", "energy_j", "cost"):
            assert printed.json[name] == row[name], name


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_python_makes_the_same_plan(asked, capsys, state):
    shown = asked(state)
    names: dict[str, object] = {}
    exec(compile(shown["python"], "copied", "exec"), names)  # noqa: S102
    plan = names["plan"]
    assert shown["message"].startswith(plan.message)
    assert capsys.readouterr().out == plan.message + "\n"
    assert plan.success == shown["success"]
    if plan.success:
        row = shown["rows"][0]
        assert plan.prediction.cost == row["cost"] and plan.prediction.time_s == row["time_s"]
