"""Large inputs: a million devices certified, a million rows read, 100,000 clients simulated."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from planned import make_plan

from fedplan import Bound, Objective, draw_fleet, predict, write_fleet

pytestmark = pytest.mark.slow
BOUND = Bound(a0=3750.0, b0=1.0, c0=26.0)


@pytest.fixture(scope="module")
def million():
    return draw_fleet(
        1_000_000,
        step_time_s=(0.1, 0.1 / 3),
        comm_time_s=(2.0, 2.0 / 3),
        step_energy_j=(1e-3, 1e-3 / 3),
        comm_energy_j=(2e-2, 2e-2 / 3),
        seed=3,
    )


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_a_million_devices_are_certified_in_two_seconds(million, weight):
    start = time.perf_counter()
    plan = make_plan(million, BOUND, energy_weight=weight, method="exact")
    taken = time.perf_counter() - start
    assert plan.certificate.gap == 0 and taken < 2
    objective = Objective.weighted(weight)
    random = np.random.default_rng(0)
    k, e = plan.setting.pair
    nearby = {(k + dk, e + de) for dk in (-1, 0, 1) for de in (-1, 0, 1)} - {(k, e)}
    far = {(int(1 + 10 ** random.uniform(0, 5.9)), int(random.integers(1, 62))) for _ in range(20)}
    for other in nearby | far:
        if other[0] >= 1 and other[1] >= 1:
            cost = predict(million, BOUND, objective, *other).cost
            assert cost >= plan.prediction.cost * (1 - 1e-11)


def test_a_million_rows_are_planned_in_six_seconds(million, tmp_path):
    write_fleet(tmp_path / "fleet.csv", million)
    command = [sys.executable, "-m", "fedplan.cli", "plan", "--fleet", "fleet.csv"]
    command += ["--ratio", "3750", "--format", "json"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert time.perf_counter() - start < 6
    assert json.loads(done.stdout)["certificate"]["gap"] == 0


@pytest.mark.parametrize("header", ["step_time_s,comm_time_s,step_energy_j,comm_energy_j", "a,b,c"])
def test_ten_million_rows_of_the_wrong_shape_are_refused_quickly(tmp_path, header):
    path = tmp_path / "fleet.csv"
    with path.open("w") as file:
        file.write(header + "\n")
        for _ in range(100):
            file.write("0.1,2.0,0.001\n" * 100_000)
    start = time.perf_counter()
    command = [sys.executable, "-m", "fedplan.cli", "plan", "--fleet", str(path), "--ratio", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert time.perf_counter() - start < 5
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "line 1" in done.stderr or "line 2" in done.stderr


def peak_kilobytes(code):
    code = f"import resource; {code}; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_ten_thousand_clients_are_simulated_in_three_gigabytes():
    code = (
        "from fedplan.studies import read_study;"
        "from fedplan.studies.experiment import build_experiment;"
        "from fedplan.core.records import Stop; from fedplan.participation import uniform;"
        "experiment = build_experiment(read_study('setup3', ['num-clients=10000']));"
        "experiment.simulator.run(uniform(20, 40), Stop(max_rounds=2))"
    )
    assert peak_kilobytes(code) < 3e6


def test_a_hundred_thousand_clients_with_five_million_samples_are_simulated_in_four_gigabytes():
    code = (
        "import numpy as np; from fedplan import draw_fleet, uniform;"
        "from fedplan.core.records import Stop; from fedplan.models import Logistic;"
        "from fedplan.simulation import LearningRate, Simulator;"
        "from fedplan.tasks import synthetic; n = 100_000;"
        "learner = Logistic(synthetic(1, 1, num_clients=n, sizes=np.full(n, 50)));"
        "fleet = draw_fleet(n, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), seed=1);"
        "simulator = Simulator(learner, LearningRate(initial=0.03), fleet);"
        "simulator.run(uniform(1000, 20), Stop(max_rounds=5))"
    )
    assert peak_kilobytes(code) < 4e6
