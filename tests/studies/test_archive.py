"""Runs are made once, saved as they end, and priced on the devices at hand."""

from __future__ import annotations

import pytest

from fedplan import Fleet
from fedplan.core.records import Stop
from fedplan.models import Logistic
from fedplan.participation import uniform
from fedplan.simulation import Clock, Job, LearningRate, Simulator
from fedplan.store import Store
from fedplan.studies.archive import Archive
from fedplan.tasks import synthetic

SETTINGS = {"data": "small"}

JOBS = [Job(course=uniform(k, 3), seed=seed) for k in (1, 2) for seed in (0, 1)]
FLEET = Fleet(step_time_s=[0.1, 0.2, 0.3, 0.4], comm_time_s=1.0, step_energy_j=2.0)


class Engine:
    """The simulator, counting what it is asked to train; one that fails after some runs."""

    def __init__(self, simulator, fail_after=None):
        self.num_clients = simulator.num_clients
        self.asked, self._simulator, self._fail_after = [], simulator, fail_after

    def run_all(self, jobs, stop, *, progress=None, finished=None):
        for job in jobs:
            if self._fail_after is not None and len(self.asked) >= self._fail_after:
                raise KeyboardInterrupt
            self.asked.append(job)
            yield from self._simulator.run_all([job], stop, progress=progress, finished=finished)


def simulator_on(fleet):
    return Simulator(Logistic(synthetic(1, 1, num_clients=4)), LearningRate(initial=0.05), fleet)


@pytest.fixture(scope="module")
def simulator():
    return simulator_on(FLEET)


@pytest.fixture
def store(tmp_path):
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        yield store


def archive_of(engine, store, fleet=FLEET):
    return Archive(engine, store, lambda _: SETTINGS, Clock(fleet, 4))


def test_what_is_stored_is_not_trained_again(simulator, store):
    first, second = Engine(simulator), Engine(simulator)
    stop = Stop(max_rounds=4)
    runs = archive_of(first, store).run_all(JOBS, stop)
    assert runs == list(simulator.run_all(JOBS, stop)) and first.asked == JOBS
    assert archive_of(second, store).run_all(JOBS[::-1], stop) == runs[::-1]
    assert second.asked == []


def test_a_shorter_run_is_cut_from_a_longer_and_a_longer_is_made(simulator, store):
    archive_of(Engine(simulator), store).run_all(JOBS, Stop(max_rounds=4))
    engine = Engine(simulator)
    shorter = archive_of(engine, store).run_all(JOBS, Stop(max_rounds=2))
    assert engine.asked == [] and {run.num_rounds for run in shorter} == {2}
    longer = archive_of(engine, store).run_all(JOBS, Stop(max_rounds=5))
    assert engine.asked == JOBS and {run.num_rounds for run in longer} == {5}


def test_what_ended_before_an_interruption_is_kept(simulator, store):
    with pytest.raises(KeyboardInterrupt):
        archive_of(Engine(simulator, fail_after=3), store).run_all(JOBS, Stop(max_rounds=4))
    engine = Engine(simulator)
    runs = archive_of(engine, store).run_all(JOBS, Stop(max_rounds=4))
    assert engine.asked == JOBS[3:] and runs == list(simulator.run_all(JOBS, Stop(max_rounds=4)))


def test_other_devices_are_priced_without_training(simulator, store):
    stop = Stop(max_rounds=4)
    archive_of(Engine(simulator), store).run_all(JOBS, stop)
    engine = Engine(simulator)
    slow = Fleet(step_time_s=[1.0, 2.0, 3.0, 4.0], comm_time_s=10.0, step_energy_j=20.0)
    runs = archive_of(engine, store, slow).run_all(JOBS, stop)
    here = archive_of(engine, store).run_all(JOBS, stop)
    assert engine.asked == []
    assert [run.time_s for run in runs] == pytest.approx([10 * run.time_s for run in here])
    assert [run.energy_j for run in runs] == pytest.approx([10 * run.energy_j for run in here])


def test_a_time_budget_is_of_the_devices_at_hand(simulator, store):
    stop = Stop(max_rounds=10, max_time_s=4.0)
    runs = archive_of(Engine(simulator), store).run_all(JOBS, stop)
    assert {run.status for run in runs} == {"time"}
    fast = Fleet(step_time_s=[0.01] * 4, comm_time_s=0.1)
    engine = Engine(simulator_on(fast))
    longer = archive_of(engine, store, fast).run_all(JOBS, stop)
    assert engine.asked == JOBS and {run.status for run in longer} == {"rounds"}


def test_what_another_process_has_made_meanwhile_is_not_trained(simulator, store):
    class Overtaken(Engine):
        """Another archive makes all the other runs while the first one is under way."""

        def run_all(self, jobs, stop, *, progress=None, finished=None):
            for place, job in enumerate(jobs):
                self.asked.append(job)
                if place == 0:
                    archive_of(Engine(simulator), store).run_all(JOBS[1:], stop)
                yield from simulator.run_all([job], stop, progress=progress, finished=finished)

    stop, engine, counts = Stop(max_rounds=4), Overtaken(simulator), []
    runs = archive_of(engine, store).map_all(
        JOBS, stop, lambda run: run, count=lambda *pair: counts.append(pair)
    )
    assert engine.asked == JOBS[:1] and runs == list(simulator.run_all(JOBS, stop))
    assert counts == [(done, len(JOBS)) for done in range(len(JOBS) + 1)]


def test_what_is_found_trained_and_stored_is_logged(simulator, store, caplog):
    caplog.set_level("INFO", logger="fedplan")
    archive_of(Engine(simulator), store).run_all(JOBS[:1], Stop(max_rounds=4))
    archive_of(Engine(simulator), store).run_all(JOBS[:1], Stop(max_rounds=4, target_loss=0.01))
    run = "K=1, E=3, seed 0, to"
    assert caplog.messages == [
        f"training: {run} round 4",
        f"stored: {run} round 4 (4 rounds)",
        f"found: {run} loss 0.01 or round 4",
    ]
