"""Entries of a store, and the fingerprints that identify experiments and studies."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fedplan import __version__
from fedplan.core.records import Status
from fedplan.core.setting import Setting
from fedplan.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The software that something was made with."""

    fedplan: str
    python: str
    numpy: str
    numba: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentEntry:
    """What makes runs comparable, and how many there are."""

    fingerprint: str
    settings: dict[str, Any]
    num_runs: int
    created: str

    @property
    def name(self) -> str:
        """The beginning of its fingerprint: it has no other name."""
        return self.fingerprint[:12]

    @property
    def configuration(self) -> dict[str, Any]:
        """Nothing: it has no study file."""
        return {}

    def has_runs_of(self, experiment: ExperimentEntry) -> bool:
        """Whether this is the experiment."""
        return experiment.fingerprint == self.fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyEntry:
    """A study and its experiment; `num_runs` counts the experiment's, whoever made them."""

    name: str
    fingerprint: str
    configuration: dict[str, Any]
    experiment: ExperimentEntry
    created: str
    versions: Versions

    @property
    def num_runs(self) -> int:
        """Runs of the study's experiment."""
        return self.experiment.num_runs

    @property
    def settings(self) -> dict[str, Any]:
        """What makes its runs comparable."""
        return self.experiment.settings

    def has_runs_of(self, experiment: ExperimentEntry) -> bool:
        """Whether an experiment is this study's, apart from when its runs end.

        Where the end of a run decides which of its rounds are evaluated it is in the settings, and
        pilots and training are experiments of their own.
        """
        settings = {key: value for key, value in experiment.settings.items() if key != "stop"}
        return settings == self.experiment.settings


Entry = StudyEntry | ExperimentEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A run without its rounds.

    clients_per_round, groups : where its participation, called `law`, has them.
    local_steps : E of the setting that the run began with.
    identity : of the course that steered it; empty if it kept to its setting.
    stored_setting : setting and course as they are stored.
    """

    clients_per_round: int | None
    local_steps: int
    law: str
    groups: int | None
    identity: str
    stored_setting: str
    seed: int
    status: Status
    message: str
    num_rounds: int
    final_loss: float | None
    time_s: float
    energy_j: float
    created: str
    versions: Versions

    @property
    def setting(self) -> Setting:
        """The setting that the run began with."""
        return read_key(self.stored_setting)[0]

    @property
    def course(self) -> str:
        """The name of the course that steered it; "fixed" where it kept to its setting."""
        return self.identity.partition("/")[0] or "fixed"

    def to_dict(self) -> dict[str, Any]:
        """The run in texts and numbers, its setting by what distinguishes it."""
        values = asdict(self)
        for name in ("identity", "stored_setting", "message"):
            del values[name]
        return {"participation": values.pop("law"), "course": self.course, **values}


def read_key(text: str) -> tuple[Setting, str]:
    """The setting that a run began with, and the identity of its course, as they are stored."""
    from fedplan.participation import setting_from_dict  # numpy, which lists do without

    values = json.loads(text)
    identity = values.pop("course", "")
    return setting_from_dict(values), identity


@cache
def current_versions() -> Versions:
    """The software in use now."""
    return Versions(
        fedplan=__version__,
        python=platform.python_version(),
        numpy=_version("numpy"),
        numba=_version("numba"),
    )


def _version(package: str) -> str:
    try:
        return version(package)  # without importing it
    except PackageNotFoundError:
        return ""


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces; infinities and NaN as Python writes them.

    >>> canonical_json({"rounds": 5, "data": ("a", None)})
    '{"data":["a",null],"rounds":5}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            "what is stored must be texts, numbers, true, false, None, and lists and mappings of "
            f"them, but: {error}. Convert it first."
        ) from error


def fingerprint_of(value: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal.

    >>> fingerprint_of({"a": 1, "b": 2.5}) == fingerprint_of({"b": 2.5, "a": 1})
    True
    """
    return hashlib.sha256(canonical_json(dict(value)).encode()).hexdigest()
