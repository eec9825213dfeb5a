"""`fedplan estimate` and `fedplan frontier`."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE_1 = ROOT / "reproduction" / "fedplan_reproduction" / "published"


def test_estimate_json_holds_the_contract(fedplan, pilots_csv):
    answer = fedplan("estimate", "--pilots", pilots_csv, "--num-clients", 100, "--format", "json")
    assert answer.code == 0
    keys = "success status ratio ratio_interval a0 b0 c0 pairs_used pairs_rejected message"
    assert answer.json.keys() >= set(keys.split())
    assert answer.json["status"] == "ok"
    low, high = answer.json["ratio_interval"]
    assert low <= answer.json["ratio"] <= (high or float("inf"))
    assert answer.json["ratio"] == pytest.approx(answer.json["a0"] / answer.json["b0"])


@pytest.mark.parametrize(
    ("setup", "clients", "method", "ratio", "status", "rejected"),
    [
        (1, 20, "pairwise", 63_489, "ok", 0),
        (2, 100, "pairwise", 14_056, "ill-conditioned", 3),
        (3, 100, "pairwise", 3_529, "ok", 0),
        (1, 20, "joint", 58_240, "ok", 0),
        (2, 100, "joint", 9_455, "ill-conditioned", 3),
        (3, 100, "joint", 3_216, "ill-conditioned", 0),
    ],
)
def test_table_1_gives_the_numbers_the_documentation_states(
    fedplan, setup, clients, method, ratio, status, rejected
):
    pilots = TABLE_1 / f"setup{setup}.csv"
    command = ["estimate", "--pilots", pilots, "--num-clients", clients, "--method", method]
    answer = fedplan(*command, "--format", "json").json
    assert answer["ratio"] == pytest.approx(ratio, abs=0.6)
    assert answer["status"] == status and answer["pairs_rejected"] == rejected
    page = ROOT / "docs" / "explanation" / "paper-to-code.md"
    row = next(line for line in page.read_text().splitlines() if line.startswith(f"| {setup} |"))
    assert f"{ratio:,}" in row


def test_pilots_that_fix_nothing_fail_with_advice(fedplan, tmp_path):
    pilots = tmp_path / "pilots.csv"
    row = "10,20,1.5,1.3,80,150"
    header = "clients_per_round,local_steps,upper_loss,lower_loss,rounds_to_upper,rounds_to_lower"
    pilots.write_text(f"{header},seed\n{row},1\n{row},2\n")
    answer = fedplan("estimate", "--pilots", pilots, "--num-clients", 50, "--format", "json")
    assert answer.code == 1
    assert answer.json["status"] == "unidentified" and answer.json["a0"] is None
    assert answer.json["suggested_pilot"]["clients_per_round"] >= 1


@pytest.mark.parametrize("method", ["joint", "pairwise"])
def test_estimates_are_printed_and_drawn(fedplan, pilots_csv, tmp_path, method):
    picture = tmp_path / "fit.png"
    command = ["estimate", "--pilots", pilots_csv, "--num-clients", 100, "--method", method]
    answer = fedplan(*command, "--plot", picture)
    assert answer.code == 0 and "a0 / b0" in answer.out and picture.stat().st_size > 10_000


def test_wrong_pilots_are_refused(fedplan, tmp_path, pilots_csv):
    bad = tmp_path / "bad.csv"
    bad.write_text(pilots_csv.read_text() + "5,5,1.5,1.3,20,20\n5,5,1.3,1.5,10,20\n")
    answer = fedplan("estimate", "--pilots", bad, "--num-clients", 100)
    assert answer.code == 2
    assert "line 8" in answer.err and "line 9" in answer.err
    few = fedplan("estimate", "--pilots", pilots_csv, "--num-clients", 10)
    assert few.code == 2 and "num_clients=10" in few.err
    none = fedplan("estimate", "--pilots", pilots_csv, "--num-clients", 0)
    assert none.code == 2 and "--num-clients must be" in none.err


def test_everything_wrong_with_pilots_is_said_at_once(fedplan, tmp_path, pilots_csv, fleet_csv):
    rows = pilots_csv.read_text().splitlines()
    wrong = ["200,5,1.5,1.3,20,x", "7,9,1.6,1.3,20,30", '5,5,"1,5",1.3,10,20', rows[1]]
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join([*rows, *wrong]))
    expected = {
        (8, "clients_per_round"): "clients_per_round=200, num_clients=100",
        (8, "rounds_to_lower"): "but got 'x'",
        (10, "upper_loss"): "Write decimals with a point",
        (11, None): "repeats line 2",
        (None, None): "1.5 -> 1.3 (lines 2, 3, 4, 5, 6, ...), 1.6 -> 1.3 (line 9)",
    }
    for command in (
        ("estimate", "--num-clients", 100, "--pilots", bad),
        ("plan", "--fleet", fleet_csv, "--pilots", bad),
    ):
        problems = fedplan(*command, "--format", "json").json["error"]["problems"]
        assert {(one["line"], one["column"]) for one in problems} == expected.keys()
        for one in problems:
            assert expected[one["line"], one["column"]] in one["message"]
    both = fedplan("estimate", "--num-clients", 0, "--pilots", bad).err
    assert "--num-clients must be" in both and "repeats line 2" in both


def test_frontier_lists_points_whose_weights_tile_the_range(fedplan, fleet_csv, tmp_path):
    picture = tmp_path / "frontier.svg"
    command = ["frontier", "--fleet", fleet_csv, "--ratio", "3750", "--format", "json"]
    answer = fedplan(*command, "--plot", picture).json
    points = answer["points"]
    keys = (
        "clients_per_round local_steps time_s energy_j energy_weight_from energy_weight_to groups"
    )
    assert all(point.keys() == set(keys.split()) for point in points)
    times = [point["time_s"] for point in points]
    energies = [point["energy_j"] for point in points]
    assert times == sorted(times) and energies == sorted(energies, reverse=True)
    selected = [point for point in points if point["energy_weight_from"] is not None]
    assert selected[0]["energy_weight_from"] == 0 and selected[-1]["energy_weight_to"] == 1
    assert picture.read_text().startswith("<?xml")


def test_a_frontier_nothing_reaches_exits_with_3(fedplan, fleet_csv):
    command = ["frontier", "--fleet", fleet_csv, "--ratio", "3750", "--deadline-s", "1"]
    answer = fedplan(*command, "--format", "json")
    assert answer.code == 3 and answer.json["points"] == [] and not answer.json["success"]
