"""Journal: the rounds of a live study in the store, and its models in files beside it.

A round is in the store before its model is in the file. A server killed between the two makes that
one round again, and forgets the first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fedplan.atomic import draft_of
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError, InputProblem
from fedplan.flower.averaging import Weights
from fedplan.flower.runner import State
from fedplan.simulation import Job
from fedplan.store import Store

_ROUND = "round"  # in a file of weights; the arrays have a prefix, whatever they are called
_PREFIX = "array:"


class StoreJournal:
    """Keeps runs of one experiment, each in the store and with one file of weights."""

    def __init__(self, store: Store, experiment: Mapping[str, Any], folder: Path) -> None:
        self._store, self._experiment, self._folder = store, experiment, folder

    def recall(self, job: Job) -> State | None:
        """Where a run stands: what is both in the store and in the file."""
        path = self._path(job)
        run = self._store.find_run(self._experiment, job.course, job.seed)
        if run is None or not path.exists():
            return None
        round_, weights = load_weights(path)
        rounds = tuple(record for record in run.rounds if record.round <= round_)
        if not rounds or rounds[-1].round != round_:
            raise InputError(
                InputProblem(
                    source=str(path),
                    message=f"is the model after round {round_}, which the store does not have. "
                    "Give the store that belongs to it, or remove the file to begin again.",
                )
            )
        return State(rounds=rounds, weights=weights)

    def keep(self, job: Job, record: RoundRecord, weights: Weights) -> None:
        """Keep one more round, and the model after it."""
        self._store.save_round(self._experiment, job.course, job.seed, record)
        save_weights(self._path(job), record.round, weights)

    def finish(self, run: RunRecord) -> None:
        """Keep how a run has ended."""
        self._store.save_run(self._experiment, run)

    def move(self, run: RunRecord, weights: Weights) -> None:
        """Let a run that went on with another (K, E) go on from these rounds and weights."""
        self._store.save_run(self._experiment, run)
        save_weights(self._path(run), run.num_rounds, weights)

    def _path(self, job: Job | RunRecord) -> Path:
        clients, steps = job.setting.pair
        return self._folder / f"K{clients}-E{steps}-seed{job.seed}.npz"


def save_weights(path: Path, round_: int, weights: Weights) -> None:
    """Write a model; the file is whole, on the disk, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    named: dict[str, Any] = {f"{_PREFIX}{name}": value for name, value in weights.items()}
    named[_ROUND] = np.array(round_)
    with draft_of(path) as draft, draft.open("xb") as file:
        np.savez(file, **named)
        file.flush()
        os.fsync(file.fileno())


def load_weights(path: Path) -> tuple[int, Weights]:
    """The round and the model that were saved."""
    try:
        # Opened here: numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
            weights = {
                name.removeprefix(_PREFIX): saved[name]
                for name in saved.files
                if name.startswith(_PREFIX)
            }
            return int(saved[_ROUND]), weights
    except (BadZipFile, EOFError, KeyError, OSError, ValueError) as error:
        message = f"cannot be read as a model ({error}). Restore it, or remove it to begin again."
        raise InputError(InputProblem(source=str(path), message=message)) from error
