"""`fedplan plan`: the contract of its JSON, its table, its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from planned import make_plan

from fedplan import Bound, Constraints, read_fleet

CONTRACT = {
    "success", "status", "method", "clients_per_round", "local_steps", "expected_rounds", "rounds",
    "time_s", "energy_j", "cost", "certificate", "alternatives", "message",
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "ratio", "weight", "expected"),
    [
        ("0.0031,0.34,0,0,20", 73560, 0, (20, 143)),
        ("0.1,2,0,0,100", 3140, 0, (100, 29)),
        ("0.1,2,0.001,0.02,100", 3750, 0, (100, 30)),
        ("0.1,2,0.001,0.02,100", 3750, 0.45, (5, 29)),
        ("0.1,2,0.001,0.02,100", 3750, 0.9, (1, 24)),
    ],
)
def test_the_papers_method_gives_the_optima_of_p3(fedplan, tmp_path, row, ratio, weight, expected):
    fleet = tmp_path / "fleet.csv"
    fleet.write_text(f"step_time_s,comm_time_s,step_energy_j,comm_energy_j,count\n{row}\n")
    command = ["plan", "--fleet", fleet, "--ratio", ratio, "--energy-weight", weight]
    answer = fedplan(*command, "--method", "paper", "--format", "json").json
    assert (answer["clients_per_round"], answer["local_steps"]) == expected
    assert "relative units" in answer["message"]


def test_json_holds_the_contract_and_the_librarys_numbers(fedplan, fleet_csv):
    result = fedplan(
        "plan", "--fleet", fleet_csv, "--bound", "a0=3750,b0=1,c0=26", "--target-gap", "0.5",
        "--energy-weight", "0.3", "--max-clients-per-round", "50", "--format", "json",
    )  # fmt: skip
    assert result.code == 0
    assert result.json.keys() >= CONTRACT
    plan = make_plan(
        read_fleet(fleet_csv),
        Bound(a0=3750, b0=1, c0=26),
        target_gap=0.5,
        energy_weight=0.3,
        constraints=Constraints(max_clients_per_round=50),
    )
    assert (result.json["clients_per_round"], result.json["local_steps"]) == plan.setting.pair
    assert result.json["cost"] == plan.prediction.cost
    assert result.json["rounds"] == plan.prediction.rounds >= result.json["expected_rounds"]
    assert result.json["certificate"] == {
        "objective": "cost", "lower_bound": plan.certificate.lower_bound, "gap": 0.0,
    }  # fmt: skip
    assert result.json["status"] == "optimal" and result.json["relative_to"] is None


def test_pilots_are_planned_for_the_smallest_regret(fedplan, fleet_csv, pilots_csv):
    result = fedplan("plan", "--fleet", fleet_csv, "--pilots", pilots_csv, "--format", "json")
    assert result.json["method"] == "robust"
    assert result.json["certificate"]["objective"] == "regret"
    assert 0 <= result.json["certificate"]["lower_bound"] <= result.json["regret"]
    assert result.json["local_steps"] <= 140 and result.json["clients_per_round"] >= 2  # the reach
    assert "Pilots:" in result.json["message"]


def test_an_unattainable_deadline_says_what_is_attainable(fedplan, fleet_csv):
    command = ["plan", "--fleet", fleet_csv, "--ratio", "3750", "--deadline-s", "10"]
    table, document = fedplan(*command), fedplan(*command, "--format", "json")
    assert table.code == document.code == 3
    fastest = document.json["best_attainable"]["deadline_s"]["time_s"]
    assert fastest > 10 and document.json["clients_per_round"] is None
    assert not document.json["success"] and document.json["status"] == "infeasible"
    assert f"{fastest:,.4g} s" in " ".join(table.out.split())


def test_prices_replace_the_weight(fedplan, fleet_csv):
    command = ["plan", "--fleet", fleet_csv, "--ratio", "3750", "--format", "json"]
    priced = fedplan(*command, "--price-hour", "3.6", "--price-kwh", "0.36").json
    hours, kwh = priced["time_s"] / 3600, priced["energy_j"] / 3.6e6
    assert priced["cost"] == pytest.approx(3.6 * hours + 0.36 * kwh)
    assert priced["cost_unit"] == "money" and priced["co2_g"] is None
    green = fedplan(*command, "--co2-per-kwh", "400").json
    assert green["cost"] == pytest.approx(green["energy_j"] / 3.6e6 * 400)
    assert green["cost_unit"] == "g CO2" and green["co2_g"] == pytest.approx(green["cost"])


def test_the_table_tells_the_plan_the_alternatives_and_the_doubts(fedplan):
    out = " ".join(fedplan("plan", "--example", "--energy-weight", "0.3").out.split())
    for words in (
        "clients per round",
        "the paper's method",
        "If the truth were otherwise",
        "gap 0",
    ):
        assert words in out


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_plots_are_written(fedplan, tmp_path, suffix):
    path = tmp_path / f"plan.{suffix}"
    assert fedplan("plan", "--example", "--plot", path).code == 0
    assert path.stat().st_size > 10_000


def test_every_problem_of_a_request_is_said_at_once(fedplan, tmp_path):
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("step_time_s,comm_time_s,step_energy_j,comm_energy_j\n0,nan,1,-1\n1,1,x,1\n")
    result = fedplan(
        "plan", "--fleet", fleet, "--ratio", "-1", "--energy-weight", "1.5", "--deadline-s", "nan",
        "--min-clients-per-round", "5", "--max-clients-per-round", "4", "--format", "json",
    )  # fmt: skip
    assert result.code == 2
    problems = result.json["error"]["problems"]
    places = {(p["line"], p["column"]) for p in problems if p["line"]}
    expected = {(2, "step_time_s"), (2, "comm_time_s"), (2, "comm_energy_j"), (3, "step_energy_j")}
    assert places == expected
    for words in ("energy_weight=1.5", "deadline_s=nan", "max_clients_per_round=4", "ratio=-1"):
        assert any(words in p["message"] for p in problems)
        assert words in result.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--ratio 5", "--fleet is missing"),
        ("--fleet FLEET --participation magic", "must be one of uniform, shuffled"),
        ("--fleet FLEET --method exact", "is for uniform sampling and a bound"),
        ("--fleet FLEET --saturation 9 3", "low <= high"),
        ("--fleet FLEET --rounds -1", "rounds > 0"),
        ("--fleet FLEET --ratio 9 --rounds 20", "without a bound"),
        ("--fleet FLEET --max-clients-per-round 0", "max_clients_per_round=0"),
        ("--fleet FLEET --ratio 5 --bound a0=1,b0=1", "exactly one of"),
        ("--fleet FLEET --ratio 5 --target-gap 1", "goes with --bound"),
        ("--fleet FLEET --bound a0=1", "needs both a0 and b0"),
        ("--fleet FLEET --bound a0:1", "must look like"),
        ("--fleet FLEET --bound a0=1,b0=1 --target-gap 0", "target_gap > 0"),
        ("--fleet FLEET --bound a0=9,b0=0 --target-gap 1", "max_local_steps"),
        ("--fleet FLEET --ratio inf", "ratio=inf"),
        ("--fleet FLEET --ratio nan", "ratio=nan"),
        ("--fleet FLEET --ratio 5 --method robust", "needs plausible bounds"),
        ("--fleet FLEET --ratio 5 --method best", "Invalid value"),
        ("--fleet FLEET --ratio 5 --method paper --deadline-s 9", "knows only ranges"),
        ("--fleet FLEET --ratio 5 --deadline-s -1", "deadline_s > 0"),
        ("--fleet FLEET --ratio 5 --min-clients-per-round 101", "num_clients=100"),
        ("--fleet FLEET --ratio 5 --energy-weight nan", "energy_weight=nan"),
        ("--fleet FLEET --ratio 5 --price-mb 1", "mb_per_client_round"),
        ("--fleet FLEET --ratio 5 --energy-weight 0 --price-kwh 1", "not both"),
        ("--fleet FLEET --ratio 5 --plot plan.gif", ".png"),
        ("--fleet FLEET --ratio 5 --plot nowhere/plan.png", "does not exist"),
        ("--fleet FLEET --ratio 5 --regret-quantile 0", "regret_quantile"),
        ("--fleet FLEET --pilots FLEET", "Missing"),
        ("--fleet nowhere.csv --ratio 5", "no such file"),
        ("--fleet . --ratio 5", "is a folder"),
        ("--fleeet FLEET", "No such option"),
    ],
)
def test_wrong_requests_exit_with_2_and_say_why(fedplan, fleet_csv, words, reason):
    result = fedplan("plan", *(fleet_csv if word == "FLEET" else word for word in words.split()))
    assert result.code == 2 and reason in result.err
    assert "Traceback" not in result.err and not result.out


def test_one_pilot_is_not_enough(fedplan, fleet_csv, tmp_path):
    pilots = tmp_path / "pilots.csv"
    pilots.write_text(
        "clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower\n"
        "10,20,1.5,1.3,80,150\n"
    )
    result = fedplan("plan", "--fleet", fleet_csv, "--pilots", pilots)
    assert result.code == 2 and "number of pilots >= 2" in result.err


def test_a_deadline_the_plausible_bounds_forbid_says_one_they_allow(fedplan, fleet_csv, pilots_csv):
    command = ["plan", "--fleet", fleet_csv, "--pilots", pilots_csv, "--format", "json"]
    refused = fedplan(*command, "--deadline-s", 1)
    assert refused.code == 3 and "plausible bounds" in refused.json["message"]
    assert "relative units" in refused.json["message"]
    least = refused.json["best_attainable"]["deadline_s"]["time_s"]
    assert fedplan(*command, "--deadline-s", least * 0.999).code == 3
    allowed = fedplan(*command, "--deadline-s", least * 1.001).json
    assert allowed["success"] and "deadline_s" in allowed["binding"]
    assert allowed["sensitivity"] == []


def test_a_plot_that_cannot_be_saved_leaves_one_document(fedplan, tmp_path, monkeypatch):
    def refuse(self, *_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    result = fedplan("plan", "--example", "--format", "json", "--plot", tmp_path / "plan.png")
    assert result.code == 2 and not result.json["success"]


def test_no_command_shows_the_help(fedplan):
    result = fedplan()
    assert result.code == 2 and "several problems" not in result.err
    assert "fedplan plan --example" in result.err


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_reader_that_stops_early_is_no_error(form):
    command = f"{sys.executable} -m fedplan.cli frontier --example --format {form} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_full_disk_is_said_plainly():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "fedplan.cli", "plan", "--example"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "cannot write the result" in done.stderr
    assert "Traceback" not in done.stderr


def test_totals_that_are_not_to_a_target_are_named_for_what_they_are(
    fedplan, fleet_csv, pilots_csv
):
    fleet = ("--fleet", fleet_csv)
    for words, of_what in (
        (("--pilots", pilots_csv), " (pilots' descent)"),
        (("--ratio", 3750), " (relative)"),
        (("--bound", "a0=3750,b0=1", "--target-gap", 0.5), ""),
    ):
        plan = fedplan("plan", *fleet, *words).out.splitlines()
        for what in ("rounds", "time", "energy", "cost"):
            assert any(line.startswith(f"{what}{of_what}   ") for line in plan)
        heading = " ".join(fedplan("frontier", *fleet, *words).out.splitlines()[0].split())
        assert heading == f"K E time{of_what} energy{of_what} energy weight"
