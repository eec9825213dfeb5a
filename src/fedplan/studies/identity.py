"""Identity: what makes runs of a study comparable, as the store keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from fedplan.core.records import Stop
from fedplan.studies.keys import DATA_SETS
from fedplan.studies.study import Study
from fedplan.tasks import FederatedData

# Raise it when the same settings begin to give other numbers: runs stored before no longer count.
SIMULATION = 1

_OF_A_RUN = (
    "batch_size",
    "learning_rate",
    "schedule",
    "decay",
    "evaluate_every",
    "evaluate_subset",
)
_LATER = ("decay_every", "decay_rounds", "rates", "dropout")  # where unset, stored without them


def experiment_settings(study: Study, data: FederatedData) -> dict[str, Any]:
    """Whatever changes a loss of a run, other than its setting, seed and when it ends.

    Not the devices: seconds and joules follow from the cohorts, for any fleet.
    """
    task, training = study.task, study.training
    settings: dict[str, Any] = {
        "simulation": SIMULATION,
        "task": task.model_dump(),
        "training": {name: getattr(training, name) for name in _OF_A_RUN},
    }
    settings["training"] |= {name: value for name in _LATER if (value := getattr(training, name))}
    if task.data not in DATA_SETS:
        settings["task"]["data"] = f"sha256:{_content(data)}"
    return settings


def live_settings(settings: Mapping[str, Any], federation: str) -> dict[str, Any]:
    """The settings of the same study on a live federation, whose rounds are all evaluated.

    Not comparable with simulated runs: their seconds are made up, and nobody in them ever fails.
    """
    training = {**settings["training"], "evaluate_every": 1, "evaluate_subset": None}
    return {**settings, "training": training, "engine": "flower", "federation": federation}


def run_settings(settings: Mapping[str, Any], stop: Stop) -> Mapping[str, Any]:
    """These settings, and when a run ends where that changes its losses.

    A run that ended later contains the one that ended earlier, unless the target decides which
    rounds are evaluated, and on what.
    """
    training = settings["training"]
    if training["evaluate_every"] == 1 and training["evaluate_subset"] is None:
        return settings
    return {**settings, "stop": asdict(stop)}


def _content(data: FederatedData) -> str:
    digest = hashlib.sha256()
    for array in (data.x, data.y, data.starts):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
