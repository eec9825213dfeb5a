"""The example app on real processes: a SuperLink and two SuperNodes, to the target."""

from __future__ import annotations

import pytest
from flower.deployment import EXAMPLE, Deployment, deployed, needs_proc, stored_runs, wait_until

from fedplan import read_fleet

pytestmark = [pytest.mark.e2e, needs_proc]

TARGET = 0.5
NODES = 2


def test_a_deployment_trains_to_its_target_by_the_online_course(tmp_path):
    with deployed(tmp_path, NODES) as deployment:
        deployment.run(EXAMPLE, seconds=300, target_loss=TARGET)
        said = deployment.said("run")
    assert "Training has ended (target)" in said, said
    (run,) = stored_runs(tmp_path, "digits")
    assert run.status == "target" and run.course == "online"
    assert run.losses[-1] <= TARGET < min(run.losses[:-1])
    for record in run.rounds[1:]:
        assert record.cohort and record.signal is not None
        assert sorted(one.client for one in record.observations) == list(record.cohort)
        for one in record.observations:
            assert one.local_steps == record.setting.local_steps and not one.problem
            assert 0 < one.train_seconds < one.round_trip_seconds <= record.seconds
    fleet = read_fleet(tmp_path / "digits-flower" / "fleet.csv")
    assert fleet.device == tuple(f"partition-{node}" for node in range(NODES))
    # A process is started for every message, which takes far longer than a step of this model.
    assert max(fleet.step_time_s) < 0.1 < min(fleet.comm_time_s)


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
