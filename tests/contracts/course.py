"""What every course promises on every engine: a class that a test module inherits.

The module gives two fixtures. `make(problem)` is the course for a problem whose fleet has the
samples of every client, and `engine(learner, problem)` is a runner that trains on its devices.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.models import Logistic
from fedplan.simulation import Evaluation, Job, Simulator
from fedplan.tasks import synthetic

RATE = LearningRate(initial=0.05, schedule="exponential", decay=0.98)
ROUNDS = 60


@cache
def learner_of(clients):
    return Logistic(synthetic(1, 1, num_clients=clients, seed=3))


def problem_of(learner, energy_weight=0.3, target_loss=1.0):
    """Devices that differ in every number, with the learner's samples."""
    clients = len(learner.sizes)
    fleet = Fleet(
        step_time_s=np.linspace(0.1, 0.4, clients),
        comm_time_s=np.linspace(3.0, 1.0, clients),
        step_energy_j=np.geomspace(1e-3, 4e-3, clients),
        comm_energy_j=np.geomspace(4e-2, 1e-2, clients),
        samples=learner.sizes.astype(float),
    )
    return Problem(
        fleet=fleet,
        objective=Objective.weighted(energy_weight),
        target_loss=target_loss,
        learning_rate=RATE,
    )


def simulator_of(learner, problem, **options):
    return Simulator(learner, RATE, problem.fleet, **options)


def said(setting):
    """What a decision says of a setting."""
    law = setting.participation.law
    return law, setting.groups, setting.clients_per_round, setting.local_steps


class CourseContract:
    clients, rounds = 12, ROUNDS
    regroups = False  # whether other clients in as many groups are a decision

    @pytest.fixture
    def learner(self):
        return learner_of(self.clients)

    @pytest.fixture
    def problem(self, learner):
        return problem_of(learner)

    @pytest.fixture
    def run(self, make, engine, learner, problem):
        return engine(learner, problem).run(make(problem), Stop(max_rounds=self.rounds), seed=5)

    def test_the_same_seed_gives_the_same_run(self, make, engine, learner, problem):
        stop = Stop(max_rounds=self.rounds // 2)
        once, again, other = (
            engine(learner, problem).run(make(problem), stop, seed=seed) for seed in (0, 0, 1)
        )
        assert once == again and once.losses != other.losses

    def test_every_round_is_asked_for_what_the_clients_can_do(self, run, problem):
        assert run.num_rounds == self.rounds
        clients = len(problem.fleet)
        for record in run.rounds[1:]:
            assert record.setting.problems(clients) == []
            assert 1 <= len(record.cohort) <= clients and record.setting.local_steps >= 1

    def test_it_begins_as_it_says(self, make, problem, run):
        course = make(problem)
        assert run.rounds[1].setting == course.setting == course.begin().ask()
        assert run.setting == course.setting and run.identity == course.identity

    def test_every_change_is_a_decision(self, run):
        held = {decision.round: decision for decision in run.decisions}
        assert len(held) == len(run.decisions)
        before = last = None
        for record in run.rounds[1:]:
            now = said(record.setting)
            if before is not None and record.round in held:
                assert now != before or (self.regroups and record.setting != last)
            elif before is not None:
                assert now == before
            if decision := held.get(record.round):
                numbers = decision.groups, decision.clients_per_round, decision.local_steps
                assert (decision.participation, *numbers) == now
            before, last = now, record.setting

    def test_recorded_rounds_told_again_lead_the_same_way(self, make, problem, run):
        steering = make(problem).begin()
        for record in run.rounds:
            if record.round:
                assert steering.ask() == record.setting
            steering.tell(record)
        assert tuple(steering.decisions) == run.decisions

    def test_asking_twice_changes_nothing(self, make, problem):
        steering = make(problem).begin()
        assert steering.ask() == steering.ask()

    def test_a_run_ends_at_the_target(self, make, engine, learner, problem, run):
        target = min(run.losses)
        stop = Stop(max_rounds=self.rounds, target_loss=target)
        short = engine(learner, problem).run(make(problem), stop, seed=5)
        assert short.status == "target" and short.losses[-1] <= target < min(short.losses[:-1])
        # Near a target the last model may be judged too, and arrive sooner.
        assert 0 < short.num_rounds <= run.rounds_to(target)

    def test_a_target_that_is_met_at_once_needs_no_round(self, make, engine, learner, problem):
        stop = Stop(max_rounds=self.rounds, target_loss=1e9)
        run = engine(learner, problem).run(make(problem), stop)
        assert run.status == "target" and run.num_rounds == 0

    def test_another_problem_is_another_run(self, make, problem):
        course = make(problem)
        others = (
            replace(problem, objective=Objective.weighted(0.9)),
            replace(problem, target_loss=0.5),
            replace(problem, learning_rate=LearningRate(initial=0.5)),
            problem.with_samples(problem.fleet.samples[::-1]),
        )
        if isinstance(course, Setting):
            assert course.identity == ""
            return
        identities = {make(other).identity for other in (problem, *others)}
        assert len(identities) == 1 + len(others)
        assert make(problem).identity == course.identity
        assert course.identity.partition("/")[0]

    @pytest.mark.parametrize("energy_weight", [0.0, 1.0])
    @pytest.mark.parametrize("clients", [1, 2])
    def test_few_clients_and_either_end_of_the_weights(self, make, engine, clients, energy_weight):
        learner = learner_of(clients)
        problem = problem_of(learner, energy_weight)
        stop = Stop(max_rounds=self.rounds // 2)
        run = engine(learner, problem).run(make(problem), stop, seed=1)
        assert run.num_rounds == self.rounds // 2
        for record in run.rounds[1:]:
            assert record.setting.problems(clients) == []


class SimulatedCourseContract(CourseContract):
    """What the simulator can do besides: threads, losses now and then, and clients that miss."""

    @pytest.fixture
    def engine(self):
        return simulator_of

    def test_threads_change_nothing(self, make, learner, problem):
        simulator, stop = simulator_of(learner, problem), Stop(max_rounds=25)
        jobs = [Job(course=make(problem), seed=seed) for seed in (0, 1)]
        one, two = (list(simulator.run_all(jobs, stop, threads=threads)) for threads in (1, 2))
        assert one == two == [simulator.run(make(problem), stop, seed=seed) for seed in (0, 1)]

    def test_rounds_without_a_loss_and_clients_that_are_missing(self, make, learner, problem):
        simulator = simulator_of(learner, problem, evaluation=Evaluation(every=7), dropout=0.5)
        run = simulator.run(make(problem), Stop(max_rounds=40), seed=2)
        assert run.num_rounds == 40
        assert all(record.setting.problems(len(problem.fleet)) == [] for record in run.rounds[1:])

    def test_a_run_that_diverges_between_evaluations_says_so(self, make, learner, problem):
        wild = replace(problem, learning_rate=LearningRate(initial=1e38))
        simulator = Simulator(
            learner, wild.learning_rate, wild.fleet, evaluation=Evaluation(every=30)
        )
        run = simulator.run(make(wild), Stop(max_rounds=60), seed=1)
        assert run.status == "diverged"
