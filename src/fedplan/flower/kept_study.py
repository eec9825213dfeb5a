"""The stored study of an app: its clients, its start, its rounds and its models."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord

from fedplan.core.course import Course, Decision, Steering
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.core.setting import Setting
from fedplan.course import Online
from fedplan.course.live import Live, alike
from fedplan.errors import InputError, InputProblem
from fedplan.flower.journal import Journal, load_weights, save_weights
from fedplan.flower.models import Weights, to_record
from fedplan.flower.replies import Layout
from fedplan.participation import setting_from_dict, uniform
from fedplan.store import Store
from fedplan.strictjson import to_json
from fedplan.studies.app_study import ASKED, asked_step
from fedplan.studies.devices import find_names, observed_devices, save_names
from fedplan.tables import read_fleet, write_fleet

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """A course with the setting and identity of its first start, by which its run is found."""

    setting: Setting
    identity: str
    course: Course

    @property
    def wants_signal(self) -> bool:
        """Whether rounds should report what half of their steps would have achieved."""
        return self.course.wants_signal

    def begin(self) -> Steering:
        """The steering of a new training."""
        return self.course.begin()


class KeptStudy:
    """A study in a store and a folder beside it; one that was begun before is found again."""

    def __init__(
        self, store: Store, name: str, folder: Path, arrays: ArrayRecord, **configuration: Any
    ) -> None:
        settings = {
            "engine": "flower", "study": name, "arrays": _shapes(arrays), **configuration
        }  # fmt: skip
        _refuse_another(store, name, settings)
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
        """The arrays of the first start, from which every run of the study begins."""
        path = self._folder / "initial.npz"
        given = Layout(arrays).arrays
        if not path.exists():
            save_weights(path, 0, given)
        first = to_record(load_weights(path).weights)
        if _shapes(first) != _shapes(to_record(given)):
            message = "is of another model. Give this one a study of its own, or remove the folder."
            raise InputError(InputProblem(source=str(path), message=message))
        return first

    def begin(
        self,
        seed: int,
        problem: Problem,
        stop: Stop,
        plan: Pair | None,
        *,
        fleet: Fleet | None = None,
    ) -> Begun:
        """The course for this seed, by which a run that was begun before is found again.

        fleet : devices by their names; without it, what earlier runs have measured.
        """
        self._store.save_step(self._entry, ASKED, asked_step(problem, stop))
        step = f"start-{seed}"
        if (kept := self._store.find_step(self._entry, step)) is not None:
            return begun_from(kept, problem, plan)
        measured = self._folder / "fleet.csv"
        known = _matched(self.names, fleet or (read_fleet(measured) if measured.exists() else None))
        course = _course(problem, plan, len(self.names), known)
        kept = {
            "clients": len(self.names),
            "known": known,  # what their devices cost; None if nothing was known
            "setting": course.setting.to_dict(),
            "identity": "" if plan else Online.name,
        }
        self._store.save_step(self._entry, step, kept)
        begun = begun_from(kept, problem, plan)
        first = Decision.of(begun.setting, 1)
        self._store.save_step(
            self._entry,
            "plan",
            {
                "course": "fixed" if plan else Online.name,
                "participation": first.participation,
                "groups": first.groups,
                "clients_per_round": first.clients_per_round,
                "local_steps": first.local_steps,
            },
        )
        return begun

    def finish(self, run: RunRecord, weights: Weights) -> None:
        """Keep how a run has ended, its model, and what the devices have turned out to cost."""
        self.journal.finish(run)
        ended = {"reached": int(run.status == "target"), "of": 1, "why": run.message}
        self._store.save_step(self._entry, "training", ended | {"status": run.status})
        save_weights(self._folder / "model.npz", run.num_rounds, weights)
        devices = observed_devices(self._store, self._entry)
        if devices is not None and devices.costs.devices:
            write_fleet(self._folder / "fleet.csv", devices.fleet)


def begun_from(kept: Mapping[str, Any], problem: Problem, plan: Pair | None) -> Begun:
    """The course of a study that began like this, whatever has changed since."""
    return Begun(
        setting=setting_from_dict(dict(kept["setting"])),
        identity=kept["identity"],
        course=_course(problem, plan, kept["clients"], kept["known"]),
    )


def _refuse_another(store: Store, name: str, settings: Mapping[str, Any]) -> None:
    """Refuse to go on with another configuration: what is kept would not be true of it."""
    now = json.loads(to_json(settings))
    for entry in store.studies():
        begun = entry.settings
        if entry.name == name and begun.get("engine") == "flower" and begun != now:
            changed = [
                f"{key} was {begun.get(key)!r} and is now {now.get(key)!r}"
                for key in sorted(begun.keys() | now.keys())
                if begun.get(key) != now.get(key) and key != "arrays"
            ]
            if begun.get("arrays") != now.get("arrays"):
                changed.append("the model's arrays have other names, types or shapes")
            raise InputError(
                f"study {name!r} was begun with another configuration: {'; '.join(changed)}. "
                "Nothing was changed. Give this one a study of its own."
            )


def _shapes(arrays: ArrayRecord) -> list[list[Any]]:
    return [[name, array.dtype, list(array.shape)] for name, array in arrays.items()]


def _course(
    problem: Problem, plan: Pair | None, clients: int, known: dict[str, Any] | None
) -> Course:
    """A (K, E) given by hand, or the online course on these devices."""
    if plan is not None:
        return uniform(*plan)
    fleet = alike(clients) if known is None else Fleet(**known)
    return Live.online(replace(problem, fleet=fleet), guessed=known is None)


def _matched(names: Sequence[str], earlier: Fleet | None) -> dict[str, Any] | None:
    """What these clients' devices cost; those not among the earlier ones get the mean."""
    rows = {name: row for row, name in enumerate(earlier.device or ())} if earlier else {}
    places = [rows.get(name) for name in names]
    found = [row for row in places if row is not None]
    if earlier is None or not found:
        return None
    known = {}
    for quantity in QUANTITIES:
        values = getattr(earlier, quantity)
        mean = float(values[found].mean())
        known[quantity] = [mean if row is None else float(values[row]) for row in places]
    return known
