"""The example app under NVIDIA FLARE's Flower integration, where both are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from fedplan.store import Store

# First, for Flower may not be there either.
pytest.importorskip("nvflare", reason="NOT TESTED: nvflare is not installed.")
APP = Path(__file__).parents[1] / "examples" / "flower_app"
# FLARE 2.9.0 starts the SuperLink with options that Flower 1.35 and later refuse.
pytest.importorskip("flwr")
TOO_NEW = tuple(map(int, version("flwr").split(".")[:2])) >= (1, 35)
CODE = """
import sys
from nvflare.app_opt.flower.recipe import FlowerRecipe
from nvflare.recipe import SimEnv
config = {"target-loss": 0.6, "store": f"{sys.argv[2]}/fedplan.db", "num-server-rounds": 20}
recipe = FlowerRecipe(name="digits", flower_content=sys.argv[1], min_clients=2, run_config=config)
recipe.execute(SimEnv(num_clients=2, num_threads=2, workspace_root=f"{sys.argv[2]}/flare"))
"""


@pytest.mark.skipif(TOO_NEW, reason="NOT TESTED: nvflare 2.9.0 needs Flower 1.34 or older.")
def test_the_example_app_reaches_its_target_under_flare(tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(APP), str(tmp_path)],
        env={**os.environ, "PATH": path, "FLWR_TELEMETRY_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    with Store(f"sqlite:///{tmp_path}/fedplan.db", readonly=True) as store:
        (study,) = store.studies()
        (run,) = store.find_runs(study.experiment.settings)
    assert run.status == "target" and run.final_loss <= 0.6
    assert run.rounds[1].cohort == (0, 1)  # FLARE gives its sites partition-ids
