"""What people add touches two files at most: the changes of a page apply, and add what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from docs.pages import BLOCKS, CHANGES, ROOT

DIFFS = [block.text for block in BLOCKS if block.page == CHANGES]
USES = {
    "participation/neighbours.py": """
import numpy as np
from fedplan.participation import LAWS
from fedplan.studies import read_study
assert read_study("demo", ["participation=neighbours"]).training.participation == "neighbours"
cohort = LAWS["neighbours"](clients_per_round=3).cohort(np.ones(20), 1, 1)
assert len(cohort.clients) == 3
""",
    "models/least_squares.py": """
import numpy as np
from fedplan.studies import read_study
from fedplan.studies.task import build_data, build_learner
study = read_study("demo", ["model=least-squares"])
learner = build_learner(study.task, study.training, build_data(study.task))
weights, samples = learner.initial(0), learner.samples()
before = learner.evaluate(weights, samples)[0]
learner.train_round(weights, np.arange(20), np.full(20, 0.05), 5, 0.001, 0, 1)
assert learner.evaluate(weights, samples)[0] < before
""",
    "course/halving.py": """
from fedplan.core.fleet import Fleet
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord
from fedplan.course import COURSES
from fedplan.studies.courses import COURSE_NAMES
problem = Problem(fleet=Fleet(step_time_s=0.1, comm_time_s=2.0, count=50))
steering = COURSES["halving"](problem=problem).begin()
for number in range(11):
    steering.tell(RoundRecord(round=number, loss=1.0))
assert steering.ask().pair == (5, 10) and "halving" in COURSE_NAMES
""",
    "figures/plots.py": """
import fedplan
from fedplan.figures import plot_times
from fedplan.core.records import RoundRecord, RunRecord
end = RoundRecord(round=1, loss=2.0, seconds=9.0)
run = RunRecord(setting=fedplan.uniform(2, 5), seed=0, status="rounds", rounds=(end,))
assert plot_times([run]).layout.title.text == "<b>Time of each run</b>"
assert plot_times([run], backend="matplotlib").axes
""",
    "core/objective.py": """
from fedplan import Prices
from fedplan.studies import read_study
assert Prices(grid_per_kwh=3.6).objective().per_joule == 1e-6
study = read_study("demo", ["price-grid-kwh=3.6"])
assert study.objective.price_grid_kwh == 3.6
""",
}  # fmt: skip


@pytest.mark.parametrize(("file", "use"), USES.items())
def test_a_change_touches_two_files_and_adds_what_it_says(tmp_path, file, use):
    (diff,) = (text for text in DIFFS if f"+++ src/fedplan/{file}\n" in text)
    touched = re.findall(r"^\+\+\+ (\S+)$", diff, re.MULTILINE)
    assert len(touched) == 2
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    subprocess.run(
        ["git", "apply", "-p0", "--unidiff-zero", "-"], cwd=tmp_path, input=diff, text=True,
        check=True,
    )  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_change_of_the_page_is_tried():
    assert len(DIFFS) == len(USES)
