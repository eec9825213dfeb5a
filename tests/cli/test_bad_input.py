"""Wrong input about who trains: exit code 2 and every problem at once, by command and by Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedplan import Constraints, Fleet, InputError, Problem, make_plan
from fedplan.convergence.saturation import Saturation
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.models import Logistic
from fedplan.participation import Shuffled, Turns, Uniform, Weighted
from fedplan.planning.predict import price_setting
from fedplan.simulation import LearningRate, Simulator
from fedplan.tasks import synthetic

HEADER = "step_time_s,comm_time_s,step_energy_j,comm_energy_j,samples\n"
FLEET = Fleet(step_time_s=[1.0, 2.0, 3.0], comm_time_s=1.0, samples=[1, 2, 3])
PROBLEM = Problem(fleet=FLEET)
NEVER = (0.5, 0.5, 0.0)  # chances by which the third client is never drawn
LAW = "participation must be"


def refused(result, reasons):
    assert result.code == 2 and not result.out, result.err
    lines = result.err.splitlines()
    assert len(lines) == (1 if len(reasons) == 1 else len(reasons) + 1), result.err
    for reason in reasons:
        assert reason in result.err


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ("run", f"{LONG}.toml"),
        ("plan", "--example", "--plot", f"{LONG}.png"),
        ("plan", "--fleet", f"{LONG}.csv"),
        ("list", "--store", f"sqlite:///{LONG}"),
    ],
    ids=lambda words: words[0],
)
def test_what_the_system_says_is_told_without_its_number(fedplan, words):
    said = fedplan(*words)
    assert said.code == 2 and "File name too long" in said.err and "Errno" not in said.err


@pytest.fixture
def fleet_of(tmp_path):
    def write(*samples):
        path = tmp_path / "fleet.csv"
        path.write_text(HEADER + "".join(f"0.1,2,1,1,{each}\n" for each in samples))
        return path

    return write


@pytest.mark.parametrize(
    ("samples", "reasons"),
    [
        (["-1", 5], ["line 2, column samples: must be a finite number >= 0, but got '-1'"]),
        (["nan", "inf"], ["but got 'nan'", "line 3, column samples: must be a finite number"]),
        ([0, 0], ["column samples: must be > 0 on at least one device"]),
    ],
)
@pytest.mark.parametrize("command", ["plan", "run", "simulate"])
def test_samples_are_checked_with_everything_else(fedplan, fleet_of, command, samples, reasons):
    path = fleet_of(*samples)
    if command == "plan":
        words = ["--fleet", path, "--participation", "nosuch", "--max-clients-per-round", 0]
        reasons = [*reasons, f"{LAW} one of", "`max_clients_per_round >= 1`"]
    else:
        words = ["demo", f"file={path}", "participation=nosuch", "max-clients-per-round=0"]
        reasons = [*reasons, f"{LAW} uniform", "`max-clients-per-round >= 1`"]
    refused(fedplan(command, *words), reasons)


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (
            ["participation=turns", "groups=21", "clients-per-round=2", "dropout=1"],
            ["groups <= num-clients", "clients-per-round goes with", "dropout < 1"],
        ),
        (["participation=shuffled", "groups=2", "dropout=-0.1"], ["groups goes with", ">= 0"]),
        (["clients-per-round=0", "dropout=nan"], ["clients-per-round >= 1", "a finite number"]),
        (["participation=wieghted", "dropout=inf"], ["Did you mean weighted?", "a finite number"]),
    ],
)
@pytest.mark.parametrize("command", ["run", "simulate", "sweep"])
def test_a_study_says_everything_at_once(fedplan, command, words, reasons):
    if command == "sweep":  # whose lists of whole numbers are read first
        reasons = [each.replace("clients-per-round >= 1", "from 1 on") for each in reasons]
    refused(fedplan(command, "demo", *words), reasons)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (Uniform(clients_per_round=0), "1 <= clients_per_round <= num_clients"),
        (Uniform(clients_per_round=4), "1 <= clients_per_round <= num_clients"),
        (Shuffled(clients_per_round=0, num_clients=3), "1 <= clients_per_round <= num_clients"),
        (Shuffled(clients_per_round=1, num_clients=9), "9 clients are to be shuffled"),
        (Turns(groups=((0, 7),), visits=(1,)), "client 7 is in a group"),
        (Weighted(clients_per_round=0, chances=(0.2, 0.4, 0.4)), "got clients_per_round=0"),
        (Weighted(clients_per_round=1, chances=(0.5, 0.5)), "2 chances for 3 clients"),
        (Weighted(clients_per_round=1, chances=NEVER), "client 2 has 0"),
    ],
)
def test_a_law_that_cannot_be_is_neither_priced_nor_trained(law, words):
    setting = Setting(participation=law, local_steps=1)
    with pytest.raises(InputError, match=words):
        price_setting(PROBLEM, Saturation(), setting)
    simulator = Simulator(Logistic(synthetic(1, 1, num_clients=3)), LearningRate(initial=0.1))
    with pytest.raises(InputError, match=words):
        simulator.run(setting, Stop(max_rounds=1))


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (lambda: PROBLEM.with_samples([-1, math.nan, math.inf]), ["3 such entries"]),
        (lambda: PROBLEM.with_samples(np.zeros(3)), ["> 0 on at least one device"]),
        (lambda: Turns.of(PROBLEM, 1, 4), ["groups=4, num_clients=3"]),
        (lambda: Turns(groups=((-1, 0), (0,)), visits=(1, 0)), ["from 0 on", "two", "visits"]),
        (
            lambda: Constraints(max_clients_per_round=0, min_local_steps=3, max_local_steps=2),
            ["`max_clients_per_round >= 1`", "`min_local_steps <= max_local_steps`"],
        ),
        (
            lambda: make_plan(PROBLEM, participation="nosuch", method="paper", target_gap=-1),
            ["uniform, shuffled, turns, weighted", "method 'paper'", "target_gap > 0"],
        ),
    ],
)
def test_python_says_everything_at_once(make, reasons):
    with pytest.raises(InputError) as error:
        make()
    assert len(error.value.problems) == len(reasons)
    for reason in reasons:
        assert reason in str(error.value)


WIDE = ["--fleet", "two.csv"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["plan", "--example", "--min-local-steps", "9" * 20], "`min_local_steps <= 1000000000`"),
        (["plan", *WIDE, "--bound", "a0=1,b0=1", "--target-gap", "5e-324"], "target_gap=5e-324"),
        (["frontier", *WIDE, "--bound", "a0=1e-300,b0=1e50", "--target-gap", "1"], "b0=1e+50"),
        (
            ["frontier", *WIDE, "--bound", "a0=1,b0=1", "--target-gap", "1e-272"],
            "target_gap=1e-272",
        ),
        (["plan", "--example", "--co2-per-kwh", "5e305"], "co2_g_per_kwh=5e+305"),
        (["plan", "--example", "--price-hour", "1e300"], "per_hour=1e+300"),
        (["plan", *WIDE, "--saturation", "1", "1e300"], "saturation"),
        (["plan", *WIDE, "--rounds", "1e300"], "rounds=1e+300"),
        (["plan", *WIDE, "--deadline-s", "1e-300"], "deadline_s=1e-300"),
        (["plan", "--fleet", "endless.csv"], "column count: must be a positive integer"),
    ],
)
def test_numbers_that_no_result_can_be_made_of(fedplan, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    columns = HEADER.replace("samples", "count")
    (tmp_path / "two.csv").write_text(f"{columns}1,2,3,4,1\n2,1,2,5,1\n")
    (tmp_path / "endless.csv").write_text(f"{columns}1,2,3,4,inf\n")
    result = fedplan(*words)
    assert result.code == 2 and not result.out, result.err
    assert reason in result.err


def test_a_frontier_far_out_is_short(fedplan, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text(HEADER + "1,2,3,4,1\n2,1,2,5,1\n")
    result = fedplan("frontier", "--fleet", path, "--ratio", "1e13", "--format", "json")
    assert result.code == 0
    assert 2 <= len(result.json["points"]) < 1000 and not result.json["complete"]
