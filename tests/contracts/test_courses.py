"""Every course keeps the courses' contract with the simulator, and two of them with Ray."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
from contracts.course import CourseContract

from fedplan.course import COURSES

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
class TestCourses(CourseContract):
    @pytest.fixture
    def make(self, name):
        return lambda problem: COURSES[name](problem=problem)


@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: fedplan[ray]")
def test_courses_on_a_cluster_steer_as_here():
    done = subprocess.run([sys.executable, "-c", ON_RAY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"same": True, "decided": True}
