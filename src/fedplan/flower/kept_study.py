"""The study of an app, as it is kept: its clients, how it began, its rounds and its models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord

from fedplan.core.fleet import Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord
from fedplan.errors import InputError, InputProblem
from fedplan.flower.beginning import Beginning, Begun, Pair
from fedplan.flower.journal import Journal, load_weights, save_weights
from fedplan.flower.models import Weights, to_record
from fedplan.flower.replies import Layout
from fedplan.store import Store
from fedplan.studies.devices import find_names, observed_devices, save_names
from fedplan.tables import read_fleet, write_fleet


class KeptStudy:
    """What is in a store, and in a folder beside it; one that was begun before is found again."""

    def __init__(
        self, store: Store, name: str, folder: Path, arrays: ArrayRecord, rate: LearningRate
    ) -> None:
        settings = {
            "engine": "flower",
            "study": name,
            "arrays": _shapes(arrays),
            "learning_rate": asdict(rate),
        }
        self._store, self._folder = store, folder
        self._entry = store.save_study(name, {}, settings)
        self.names = find_names(store, self._entry)
        self.journal = Journal(store, self._entry.experiment.settings, folder / "training")

    def save_names(self, names: tuple[str, ...]) -> None:
        """Keep what the clients call themselves, where more of them are known than before."""
        if names != self.names:
            self.names = names
            save_names(self._store, self._entry, names)

    def first_arrays(self, arrays: ArrayRecord) -> ArrayRecord:
        """The arrays of the first start: a run that was not begun yet begins where others did."""
        path = self._folder / "initial.npz"
        given = Layout(arrays).arrays
        if not path.exists():
            save_weights(path, 0, given)
        first = to_record(load_weights(path)[1])
        if _shapes(first) != _shapes(to_record(given)):
            message = "is of another model. Give this one a study of its own, or remove the folder."
            raise InputError(InputProblem(source=str(path), message=message))
        return first

    def begin(
        self, seed: int, problem: Problem, plan: Pair | None, *, fleet: Fleet | None = None
    ) -> Begun:
        """The course, by which the run is found again that this seed has begun with.

        fleet : devices by their names; without it, what earlier runs have measured.
        """
        step = f"start-{seed}"
        if (begun := self._store.find_step(self._entry, step)) is not None:
            return Beginning(**begun).course(problem, plan)
        measured = self._folder / "fleet.csv"
        earlier = fleet or (read_fleet(measured) if measured.exists() else None)
        beginning = Beginning.of(problem, plan, self.names, earlier)
        self._store.save_step(self._entry, step, asdict(beginning))
        return beginning.course(problem, plan)

    def finish(self, run: RunRecord, weights: Weights) -> None:
        """Keep how a run has ended, its model, and what the devices have turned out to cost."""
        self.journal.finish(run)
        save_weights(self._folder / "model.npz", run.num_rounds, weights)
        devices = observed_devices(self._store, self._entry)
        if devices is not None and devices.costs.devices:
            write_fleet(self._folder / "fleet.csv", devices.fleet)


def _shapes(arrays: ArrayRecord) -> list[list[Any]]:
    return [[name, array.dtype, list(array.shape)] for name, array in arrays.items()]
