"""`fedplan learn`: what it tells of runs, of wrong files, and that a study takes it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[2] / "examples" / "runs.csv"
FLEET = RUNS.parent / "fleet.csv"


def write_runs(path, runs, **columns):
    """Losses that fall evenly on the way of each run: (clients, local steps, rounds)."""
    names = ("run", "round", "clients", "local_steps", "loss", *columns)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        for place, (clients, steps, rounds) in enumerate(runs):
            for one in range(1, rounds + 1):
                more = [column[place] for column in columns.values()]
                rows.writerow([place, one, clients, steps, 2 - one / rounds, *more])
    return str(path)


def test_the_contract_of_its_json(fedplan):
    result = fedplan("learn", str(RUNS), "--fleet", str(FLEET), "--format", "json")
    assert result.code == 0 and result.err == ""
    answer = result.json
    assert answer.keys() == {
        "success", "saturation", "interval", "study_key", "runs", "compared", "loss", "rounds",
        "plan", "message",
    }  # fmt: skip
    low, high = answer["interval"]
    assert low < answer["saturation"] < high and answer["runs"] == answer["compared"] == 4
    falling = [row["rounds"] for row in answer["rounds"]]
    assert falling == sorted(falling, reverse=True)
    assert answer["plan"]["local_steps"] > 1 and answer["study_key"] in answer["message"]


def test_the_saturation_of_runs_that_follow_the_law(fedplan, tmp_path):
    runs = [(10, 5, 900), (10, 20, 300), (10, 80, 150), (10, 320, 112)]  # 100 (1 + 40 / E)
    path = write_runs(tmp_path / "runs.csv", runs)
    answer = fedplan("learn", path, "--format", "json").json
    assert answer["saturation"] == pytest.approx(40.0, rel=0.15)
    assert {row["local_steps"]: row["rounds"] for row in answer["rounds"]}[20] == pytest.approx(
        300, rel=0.1
    )


def test_few_clients_are_not_taken_for_saturation(fedplan, tmp_path):
    runs = [(k, e, round(100 * (1 + 40 / e + 4 / k))) for k in (2, 5, 20) for e in (10, 40, 160)]
    path = write_runs(tmp_path / "runs.csv", runs)
    answer = fedplan("learn", path, "--format", "json").json
    assert answer["saturation"] == pytest.approx(40.0, rel=0.4)


def test_half_the_rate_is_half_the_steps(fedplan, tmp_path):
    runs = [(10, 20, 300), (10, 40, 300), (10, 80, 150), (10, 160, 150)]
    path = write_runs(tmp_path / "runs.csv", runs, learning_rate=[0.2, 0.1, 0.2, 0.1])
    learnt = fedplan("learn", path, "--format", "json").json["saturation"]
    assert learnt == pytest.approx(40.0 * 0.2 / 0.15, rel=0.35)  # at the mean rate


def test_a_single_run_leaves_the_usual_range(fedplan, tmp_path):
    path = write_runs(tmp_path / "runs.csv", [(10, 20, 50)])
    result = fedplan("learn", path)
    assert result.code == 0 and "(7.992 to 256.3)" in result.out and "usual range" in result.out


def test_every_problem_is_said_at_once(fedplan, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text('round,clients,local_steps,loss\n1,0,5,2\n1,3,x,"1,5"\n')
    other = tmp_path / "other.csv"
    other.write_text("round,clients,loss\n1,2,3\n")
    result = fedplan("learn", str(bad), str(other), "--num-clients", "0", "--price-hour", "1")
    assert result.code == 2
    for words in (
        "--num-clients", "--fleet", "line 2, column clients", "line 3, column local_steps",
        "line 3, column loss", "rounds of a run must rise", "other.csv, line 1", "local_steps",
    ):  # fmt: skip
        assert words in result.err
    assert fedplan("learn", str(tmp_path / "none.csv")).code == 2


def test_it_is_drawn(fedplan, tmp_path):
    picture = tmp_path / "learnt.svg"
    assert fedplan("learn", str(RUNS), "--plot", str(picture)).code == 0
    assert "saturation" in picture.read_text()


def test_a_study_takes_what_was_learnt(fedplan, tmp_path):
    low, high = fedplan("learn", str(RUNS), "--format", "json").json["interval"]
    words = [f"saturation=[{low:.3g},{high:.3g}]", "seeds=1", "target-loss=1.0"]
    store = f"sqlite:///{tmp_path}/runs.db"
    answer = fedplan("run", "demo", *words, "--store", store, "--format", "json", "-q").json
    first = answer["course"][0]
    assert first["saturation"] == pytest.approx((low * high) ** 0.5, rel=0.01)
    assert "saturation given" in first["why"]
