"""Every course keeps the contract on every engine: the simulator, Ray, and Flower."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import pytest
from contracts.course import RATE, CourseContract, SimulatedCourseContract

from fedplan.core.course import wants_reports
from fedplan.course import COURSES
from fedplan.course.live import Live, alike

# A process of its own: ray starts others, and warns of what is to come.
ON_RAY = """
import json
from fedplan.core.problem import Problem
from fedplan.course import COURSES
from fedplan.simulation import Job
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
from fedplan.studies.ray_engine import RayEngine
experiment = build_experiment(read_study("demo", ["rounds=12", "num-clients=6"]))
simulator = experiment.simulator
samples = simulator.learner.sizes.astype(float)
rate = experiment.rate
problem = Problem(fleet=experiment.fleet, learning_rate=rate).with_samples(samples)
jobs = [Job(course=COURSES[name](problem=problem), seed=4) for name in ("fedtune", "oort")]
there = list(RayEngine(experiment).run_all(jobs, experiment.stop))
here = list(simulator.run_all(jobs, experiment.stop))
print(json.dumps({"same": there == here, "decided": len(there[0].decisions) > 1}))
"""


@pytest.mark.parametrize("name", COURSES)
class TestCourses(SimulatedCourseContract):
    @pytest.fixture
    def make(self, name):
        return lambda problem: COURSES[name](problem=problem)


@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: fedplan[ray]")
@pytest.mark.e2e
def test_courses_on_a_cluster_steer_as_here():
    done = subprocess.run([sys.executable, "-c", ON_RAY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"same": True, "decided": True}


SERVED = [name for name, make in COURSES.items() if not wants_reports(make)]


class LiveContract(CourseContract):
    """On a federation in this process, whose devices cost what the problem says."""

    clients, rounds = 6, 16
    regroups = True

    @pytest.fixture
    def engine(self):
        return runner_of


@pytest.mark.skipif(find_spec("flwr") is None, reason="flwr is not installed: fedplan[flower]")
@pytest.mark.parametrize("name", SERVED)
class TestOnKnownDevices(LiveContract):
    @pytest.fixture
    def make(self, name):
        def make(problem):
            if name == "online":
                return Live.online(problem, guessed=False)
            return COURSES[name](problem=problem)

        return make


@pytest.mark.skipif(find_spec("flwr") is None, reason="flwr is not installed: fedplan[flower]")
@pytest.mark.parametrize("name", SERVED)
class TestOnUnknownDevices(LiveContract):
    @pytest.fixture
    def make(self, name):
        def make(problem):
            unknown = replace(problem, fleet=alike(len(problem.fleet)))
            return Live(
                name=name,
                make=lambda known: COURSES[name](problem=known),
                problem=unknown.with_samples(problem.fleet.samples),
                guessed=True,
            )

        return make


def runner_of(learner, problem):
    """A runner on nodes that take as long as the devices of the problem."""
    from flower.federation import federation_of

    fleet = problem.fleet
    federation = federation_of(learner, fleet.step_time_s, fleet.comm_time_s, RATE)
    return federation.runner(samples=fleet.samples.tolist())
