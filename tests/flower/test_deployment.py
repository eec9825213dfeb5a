"""The example app on real processes: a SuperLink and three SuperNodes, from profile to target."""

from __future__ import annotations

import pytest
from flower.deployment import EXAMPLE, Deployment, deployed, needs_proc, stored_runs, wait_until

from fedplan import read_fleet
from fedplan.store import Store

pytestmark = needs_proc

TARGET = 0.5
NODES = 3


def test_profile_pilots_plan_and_training_to_a_target(tmp_path):
    with deployed(tmp_path, NODES) as deployment:
        deployment.run(EXAMPLE, seconds=600, target_loss=TARGET, learning_rate=0.01)
        said = deployment.said("run")
    assert "Training has ended (target)" in said, said
    for run in stored_runs(tmp_path, "digits", "pilots"):
        assert_is_as_planned(run)
    (training,) = stored_runs(tmp_path, "digits", "training")
    assert_is_as_planned(training)
    assert training.status == "target"
    assert training.losses[-1] <= TARGET < min(training.losses[:-1])

    with Store(f"sqlite:///{tmp_path}/fedplan.db", readonly=True) as store:
        (study,) = store.studies()
        plans = store.find_step(study, "plans")
        profile = store.find_step(study, "profile")
    assert plans == [[0, training.clients_per_round, training.local_steps]]
    assert profile["clients"] == [f"partition-{node}" for node in range(NODES)]
    fleet = read_fleet(tmp_path / "digits-flower" / "fleet.csv")
    assert fleet.device == tuple(profile["clients"])
    # A process is started for every message, which takes far longer than a step of this model.
    assert max(fleet.step_time_s) < 0.1 < min(fleet.comm_time_s)


def assert_is_as_planned(run):
    """K clients each round, which all did E steps, with the times of each."""
    for record in run.rounds[1:]:
        assert len(set(record.cohort)) == run.clients_per_round
        assert sorted(one.client for one in record.observations) == list(record.cohort)
        for one in record.observations:
            assert one.local_steps == run.local_steps and not one.problem
            assert 0 < one.train_seconds < one.round_trip_seconds <= record.seconds


class Broken(Exception):  # noqa: N818
    """What a test that fails raises."""


def test_nothing_is_left_of_a_federation_whose_test_fails(tmp_path):
    started = []

    def fail_while_clients_are_at_work():
        with deployed(tmp_path, 1) as deployment:
            deployment.begin(EXAMPLE, clients_per_round=1, local_steps=10, min_clients=1)
            wait_until(lambda: deployment.pids("flwr-clientapp"), 120, "a client is at work")
            started.extend(deployment.pids())
            raise Broken

    with pytest.raises(Broken):
        fail_while_clients_are_at_work()
    # The SuperLink, the SuperNode, what each starts its apps with, the apps, and the command.
    assert len(started) >= 7
    assert Deployment(tmp_path, 1).pids() == []
