"""Journal: the rounds of a live study in the store, and its models in files beside it.

A model's file also has the strategy's state after it, so that both are of the same round.

A round is in the store before its model is in a file. A server killed between the two makes that
one round again, and forgets the first.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from fedplan.atomic import draft_of
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.errors import InputError, InputProblem
from fedplan.flower.models import Weights, kept_after
from fedplan.flower.strategy_state import StrategyState
from fedplan.simulation import Job
from fedplan.store import Store
from fedplan.store.rows import key_text

_ROUND = "round"  # in a file of weights; the arrays have a prefix, whatever they are called
_PREFIX, _STATE = "array:", "strategy"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands: its rounds, and the models after the last of them, newest last.

    strategy : what the strategy remembers after the last round; None if that is not kept.
    """

    rounds: tuple[RoundRecord, ...]
    models: tuple[Weights, ...]
    strategy: StrategyState | None = None


class Saved(NamedTuple):
    """What a file of weights has."""

    round: int
    weights: Weights
    strategy: StrategyState | None


class Journal:
    """Keeps runs of one experiment, each in the store and with a file for each of its last models.

    Models that are averaged into the one that is judged are kept for as long as they are.
    """

    def __init__(self, store: Store, experiment: Mapping[str, Any], folder: Path) -> None:
        self._store, self._experiment, self._folder = store, experiment, folder

    def recall(self, job: Job) -> State | None:
        """Where a run stands: what is both in the store and in the files."""
        files = _files(self._folder_of(job))
        run = self._store.find_run(self._experiment, job.course, job.seed)
        if run is None or not files:
            return None
        last = max(files)
        rounds = tuple(record for record in run.rounds if record.round <= last)
        if not rounds or rounds[-1].round != last:
            raise InputError(
                InputProblem(
                    source=str(files[last]),
                    message=f"is the model after round {last}, which the store does not have. "
                    "Give the store that belongs to it, or remove the file to begin again.",
                )
            )
        needed = range(last + 1 - max(kept_after(rounds), 1), last + 1)
        if missing := [round_ for round_ in needed if round_ not in files]:
            message = (
                f"lacks the models after rounds {', '.join(map(str, missing))}. Restore them, or "
                "remove the folder to begin again."
            )
            raise InputError(InputProblem(source=str(self._folder_of(job)), message=message))
        saved = [load_weights(files[round_]) for round_ in needed]
        models = tuple(one.weights for one in saved)
        return State(rounds=rounds, models=models, strategy=saved[-1].strategy)

    def keep(
        self, job: Job, record: RoundRecord, weights: Weights, strategy: StrategyState, models: int
    ) -> None:
        """Keep a round, and the model and strategy after it; only the last `models` models stay."""
        self._store.save_round(self._experiment, job.course, job.seed, record)
        folder = self._folder_of(job)
        save_weights(folder / f"{record.round}.npz", record.round, weights, strategy)
        for round_, path in _files(folder).items():
            if round_ <= record.round - models:
                path.unlink(missing_ok=True)

    def finish(self, run: RunRecord) -> None:
        """Keep how a run has ended."""
        self._store.save_run(self._experiment, run)

    def _folder_of(self, job: Job) -> Path:
        course = job.course
        name = course.identity.partition("/")[0] or job.setting.participation.law
        digest = hashlib.sha256(key_text(course).encode()).hexdigest()[:8]
        return self._folder / f"{name}-{digest}-seed{job.seed}"


def _files(folder: Path) -> dict[int, Path]:
    """The models in a folder, by their rounds."""
    return {int(path.stem): path for path in folder.glob("*.npz") if path.stem.isdigit()}


def save_weights(
    path: Path, round_: int, weights: Weights, strategy: StrategyState | None = None
) -> None:
    """Write a model; if that fails, the file stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    named: dict[str, Any] = {f"{_PREFIX}{name}": value for name, value in weights.items()}
    named[_ROUND] = np.array(round_)
    if strategy is not None:
        named[_STATE] = np.array(strategy.text)
        named |= {f"{_STATE}:{place}": value for place, value in enumerate(strategy.arrays)}
    with draft_of(path) as draft, draft.open("xb") as file:
        np.savez(file, **named)
        file.flush()
        os.fsync(file.fileno())


def load_weights(path: Path) -> Saved:
    """What was saved."""
    try:
        # Opened here: numpy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as saved:
            weights = {
                name.removeprefix(_PREFIX): saved[name]
                for name in saved.files
                if name.startswith(_PREFIX)
            }
            strategy = None
            if _STATE in saved.files:
                number = sum(name.startswith(f"{_STATE}:") for name in saved.files)
                arrays = tuple(saved[f"{_STATE}:{place}"] for place in range(number))
                strategy = StrategyState(str(saved[_STATE]), arrays)
            return Saved(int(saved[_ROUND]), weights, strategy)
    except (BadZipFile, EOFError, KeyError, OSError, ValueError) as error:
        message = f"cannot be read as a model ({error}). Restore it, or remove it to begin again."
        raise InputError(InputProblem(source=str(path), message=message)) from error
