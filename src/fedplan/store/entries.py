"""What a store lists, and the fingerprints that tell experiments and studies apart."""

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

    def has_runs_of(self, experiment: ExperimentEntry) -> bool:
        """Whether an experiment is this study's, apart from when its runs end.

        Where the end of a run decides which of its rounds are evaluated it is in the settings, and
        pilots and training are experiments of their own.
        """
        settings = {key: value for key, value in experiment.settings.items() if key != "stop"}
        return settings == self.experiment.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A run without its rounds; its setting as it is stored, which is read where it is wanted."""

    stored_setting: str
    seed: int
    status: Status
    num_rounds: int
    final_loss: float | None
    time_s: float
    energy_j: float
    created: str
    versions: Versions

    @property
    def setting(self) -> Setting:
        """The setting that the run began with."""
        from fedplan.participation import setting_from_dict  # numpy, which lists do without

        values = self._values
        values.pop("course", None)
        return setting_from_dict(values)

    @property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.stored_setting)
        return values

    @property
    def identity(self) -> str:
        """Of the course that steered it; empty where it kept to its setting."""
        return str(self._values.get("course", ""))

    @property
    def course(self) -> str:
        """The name of the course that steered it; "fixed" where it kept to its setting."""
        return self.identity.partition("/")[0] or "fixed"

    @property
    def law(self) -> str:
        """The name of its participation."""
        return str(self._values["law"])

    @property
    def clients_per_round(self) -> int | None:
        """K, where the participation has one."""
        clients: int | None = self._values.get("clients_per_round")
        return clients

    @property
    def groups(self) -> int | None:
        """How many groups take turns, where they do."""
        groups = self._values.get("groups")
        return None if groups is None else len(groups)

    @property
    def local_steps(self) -> int:
        """E of the setting that the run began with."""
        return int(self._values["local_steps"])

    def to_dict(self) -> dict[str, Any]:
        """The run in texts and numbers: of its setting what tells it from others."""
        known = {
            "clients_per_round": self.clients_per_round,
            "local_steps": self.local_steps,
            "participation": self.law,
            "groups": self.groups,
            "course": self.course,
        }
        rest = asdict(self)
        del rest["stored_setting"]
        return known | rest


@cache
def current_versions() -> Versions:
    """The software at hand."""
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
