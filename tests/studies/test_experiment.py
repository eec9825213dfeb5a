"""What a study describes is what is built."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fedplan import Fleet, InputError, write_fleet
from fedplan.planning.example import example_fleet
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment, build_fleet, build_jobs, build_stop
from fedplan.studies.task import build_data
from fedplan.tasks import synthetic


def test_setup_1_is_the_papers():
    study = read_study("setup1")
    data = build_data(study.task)
    assert data.num_clients == 20 and set(data.sizes.tolist()) == {300}
    for client in range(20):
        assert len(set(data.y[data.client_rows(client)].tolist())) == 2
    assert data.image_shape == (28, 28) and data.test_x is not None
    training = study.training
    rate = (training.learning_rate, training.schedule, training.decay, training.batch_size)
    assert rate == (0.01, "exponential", 0.996, 64)
    fleet = build_fleet(study.fleet, 20)
    assert fleet.mean("step_time_s") == pytest.approx(3.1e-3, rel=0.05)
    assert fleet.mean("comm_time_s") == pytest.approx(0.34, rel=0.01)
    assert fleet.mean("comm_energy_j") == 0


def test_setup_2_is_the_papers_but_for_the_rate():
    study = read_study("setup2")
    assert (study.task.data, study.task.model, study.task.num_clients) == ("mnist", "lenet5", 100)
    assert (study.task.partition, study.task.data_seed) == ("two-labels-shards", 6)
    assert study.training.schedule == "exponential"
    assert read_study("setup2", ["schedule=harmonic"]).training.schedule == "harmonic"
    mini = build_data(read_study("setup2", ["data=mnist-mini"]).task)
    labels = [len(set(mini.y[mini.client_rows(k)].tolist())) for k in range(100)]
    assert mini.num_samples == 6000 and Counter(labels) == {2: 100}


def test_setup_3_has_the_papers_data_and_the_planners_example_fleet():
    study = read_study("setup3")
    data = build_data(study.task)
    assert (data.num_samples, round(float(data.sizes.std()))) == (24_573, 356)
    ours, example = build_fleet(study.fleet, 100), example_fleet()
    for name in ("step_time_s", "comm_time_s", "step_energy_j", "comm_energy_j"):
        assert getattr(ours, name).tolist() == getattr(example, name).tolist()


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("partition=iid", {300}),
        ("partition=dirichlet concentration=0.3", None),
        ("partition=power-law exponent=1.1 min-size=20", None),
        ("partition=two-labels-shards shards-per-label=4", None),
        ("samples-per-client=40", {40}),
    ],
)
def test_every_partition_can_be_asked_for(words, sizes):
    data = build_data(read_study("setup1", words.split()).task)
    assert data.num_clients == 20
    if sizes is not None:
        assert set(data.sizes.tolist()) == sizes
    else:
        assert len(set(data.sizes.tolist())) > 3


def test_the_seed_of_the_data_counts():
    one, other = (build_data(read_study("demo", [f"data-seed={s}"]).task) for s in (0, 1))
    assert np.array_equal(one.x, synthetic(1, 1, num_clients=20).x)
    assert not np.array_equal(one.sizes, other.sizes)


def test_jobs_are_one_a_seed():
    experiment = build_experiment(read_study("demo", ["seeds=3", "first-seed=5"]))
    jobs = build_jobs(experiment)
    assert [(*job.setting.pair, job.seed) for job in jobs] == [(5, 20, 5), (5, 20, 6), (5, 20, 7)]


def test_a_target_of_zero_never_stops_a_run():
    assert build_stop(read_study("demo", ["target-loss=0"]).training).target_loss is None
    stop = build_stop(read_study("demo", ["patience=3", "max-time-s=9"]).training)
    assert (stop.target_loss, stop.patience, stop.max_time_s) == (0.6, 3, 9)


def test_ones_own_data_and_devices_are_read(tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 3))
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(12) % 2, client=np.arange(12) // 3)
    write_fleet(tmp_path / "fleet.csv", Fleet(step_time_s=0.1, comm_time_s=1.0, count=4))
    (tmp_path / "own.toml").write_text(
        "[task]\ndata = 'own.npz'\n[training]\nlearning-rate = 0.1\n[fleet]\nfile = 'fleet.csv'\n"
    )
    experiment = build_experiment(read_study(str(tmp_path / "own.toml")))
    assert experiment.simulator.num_clients == len(experiment.fleet) == 4
    assert experiment.simulator.num_clients == 4


def test_what_only_the_files_show_is_said_at_once(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.ones((4, 3)), y=[0, 1, 0, 1], client=[0, 0, 1, 1])
    write_fleet(tmp_path / "fleet.csv", Fleet(step_time_s=0.1, comm_time_s=1.0, count=3))
    words = [f"data={tmp_path}/own.npz", f"file={tmp_path}/fleet.csv", "clients-per-round=3"]
    with pytest.raises(InputError) as error:
        build_experiment(read_study("demo", words))
    assert "data of 2 clients" in str(error.value) and "3 devices for 2 clients" in str(error.value)
    (tmp_path / "fleet.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "own.npz", x=np.ones((4, 3)), y=[0, 1, 0, 1])
    with pytest.raises(InputError) as error:
        build_experiment(read_study("demo", words))
    text = str(error.value)
    assert "own.npz, column client: is missing" in text and "fleet.csv" in text


def test_lenet_refuses_what_is_no_image(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.ones((4, 3)), y=[0, 1, 0, 1], client=[0, 0, 1, 1])
    with pytest.raises(InputError, match="28") as error:
        build_experiment(read_study("demo", [f"data={tmp_path}/own.npz", "model=lenet5"]))
    assert "data of 2 clients" in str(error.value)
