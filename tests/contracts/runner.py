"""What every runner promises. A test module inherits this and gives the fixture `runner`."""

from __future__ import annotations

import math
from typing import Protocol

import pytest

from fedplan import InputError
from fedplan.core.course import Course
from fedplan.core.records import RunRecord, Stop
from fedplan.participation import uniform


class Runner(Protocol):
    """Anything that trains: the one seam between planning and engines."""

    num_clients: int

    def run(self, course: Course, stop: Stop, *, seed: int = 0) -> RunRecord:
        """Train from the start, as the course steers, until `stop` says so; a setting is one."""
        ...


class RunnerContract:
    """The module defines a fixture `runner` with at least four clients and no diverging rate."""

    def test_rounds_are_numbered_from_the_evaluation_before_training(self, runner):
        run = runner.run(uniform(2, 3), Stop(max_rounds=4), seed=1)
        assert run.status == "rounds" and run.num_rounds == 4
        assert [record.round for record in run.rounds] == [0, 1, 2, 3, 4]
        assert run.rounds[0].cohort == () and run.rounds[0].seconds == run.rounds[0].joules == 0
        assert len(run.losses) == 5 and all(map(math.isfinite, run.losses))
        assert all(0 <= record.accuracy <= 1 for record in run.rounds)

    def test_every_round_has_exactly_k_different_clients(self, runner):
        for clients in (1, 3, runner.num_clients):
            run = runner.run(uniform(clients, 1), Stop(max_rounds=3), seed=2)
            for record in run.rounds[1:]:
                assert len(record.cohort) == len(set(record.cohort)) == clients
                assert all(0 <= client < runner.num_clients for client in record.cohort)

    def test_a_run_says_what_it_was_asked(self, runner):
        run = runner.run(uniform(2, 3), Stop(max_rounds=1), seed=5)
        assert (run.clients_per_round, run.local_steps, run.seed) == (2, 3, 5)

    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self, runner):
        stop = Stop(max_rounds=3)
        once, again, other = (runner.run(uniform(2, 3), stop, seed=seed) for seed in (7, 7, 8))
        assert once == again and once.losses != other.losses

    def test_a_longer_run_begins_with_the_shorter_one(self, runner):
        short = runner.run(uniform(2, 3), Stop(max_rounds=2), seed=3)
        long = runner.run(uniform(2, 3), Stop(max_rounds=5), seed=3)
        assert long.rounds[:3] == short.rounds

    def test_a_longer_run_contains_every_shorter_one(self, runner):
        long = runner.run(uniform(2, 3), Stop(max_rounds=6), seed=3)
        middle = sorted(long.losses)[3]
        for stop in (
            Stop(max_rounds=4),
            Stop(max_rounds=6, target_loss=middle),
            Stop(max_rounds=6, target_loss=max(long.losses), patience=3),
            Stop(max_rounds=6, max_time_s=long.time_s / 2),
            Stop(max_rounds=6, max_energy_j=long.energy_j / 2),
        ):
            assert long.until(stop) == runner.run(uniform(2, 3), stop, seed=3)
        assert long.until(Stop(max_rounds=7)) is None
        assert long.until(Stop(max_rounds=7, target_loss=-1.0)) is None

    def test_a_run_ends_at_the_first_loss_on_target(self, runner):
        free = runner.run(uniform(3, 4), Stop(max_rounds=8), seed=4)
        target = min(free.losses[1:5])
        run = runner.run(uniform(3, 4), Stop(max_rounds=8, target_loss=target), seed=4)
        assert run.status == "target" and run.num_rounds == free.rounds_to(target)
        assert run.losses[-1] <= target < min(run.losses[:-1])

    def test_patience_waits_for_the_loss_to_stay(self, runner):
        free = runner.run(uniform(3, 4), Stop(max_rounds=8), seed=4)
        stop = Stop(max_rounds=8, target_loss=max(free.losses), patience=3)
        run = runner.run(uniform(3, 4), stop, seed=4)
        assert run.status == "target" and run.num_rounds == 2  # rounds 0, 1 and 2 are on target

    def test_a_target_out_of_reach_does_not_end_a_run(self, runner):
        run = runner.run(uniform(2, 3), Stop(max_rounds=3, target_loss=-1.0))
        assert run.status == "rounds" and run.num_rounds == 3

    @pytest.mark.parametrize(("clients", "steps", "rounds"), [(0, 1, 1), (2, 0, 1), (2, 1, 0)])
    def test_wrong_requests_are_refused(self, runner, clients, steps, rounds):
        with pytest.raises(InputError, match="must hold"):
            runner.run(uniform(clients, steps), Stop(max_rounds=rounds))
        with pytest.raises(InputError, match="num_clients"):
            runner.run(uniform(runner.num_clients + 1, 1), Stop(max_rounds=1))
