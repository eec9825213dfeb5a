"""Setting: who trains when, and for how many local steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fedplan.core.course import Steady
from fedplan.errors import InputError, unmet
from fedplan.words import counted

if TYPE_CHECKING:
    from fedplan.core.fleet import FloatArray, IntArray
    from fedplan.core.problem import Problem


class Cohort(NamedTuple):
    """The clients of one round, and the weight of each client's update."""

    clients: IntArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCost:
    """The expected cost of a round: seconds, joules of all its clients, and their number."""

    time_s: float
    energy_j: float
    clients: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The expected cost of training with one setting; K is None if groups take turns."""

    clients_per_round: int | None
    local_steps: int
    expected_rounds: float
    time_s: float
    energy_j: float
    cost: float

    @property
    def pair(self) -> tuple[int, int]:
        """(K, E) of a setting that has a K."""
        if self.clients_per_round is None:
            raise InputError("where clients take turns there is no clients_per_round.")
        return self.clients_per_round, self.local_steps

    @property
    def rounds(self) -> int:
        """Whole rounds: the ceiling of `expected_rounds`."""
        return math.ceil(self.expected_rounds * (1 - 1e-12))


class Participation(ABC):
    """A law of who trains when; each has its own file in `participation/`.

    A law is a dataclass of numbers and tuples, so that a store can keep it. The defaults are
    those of K clients that are drawn for each round, whoever trained before.
    `tests/contracts/participation.py` says what a law promises; every law passes it.
    """

    __slots__ = ()
    law: ClassVar[str]  # its name in commands, files and stores
    summary: ClassVar[str]  # who trains when, in a few words
    needs_fleet: ClassVar[bool] = False  # whether it depends on how quick the devices are
    clients_per_round: int | None  # K if a law has one, None if rounds differ in size

    @classmethod
    @abstractmethod
    def of(cls, problem: Problem, local_steps: int, size: int) -> Participation:
        """The law for these devices; `size` is K, or the number of groups that take turns."""

    @property
    def cycle(self) -> int:
        """Rounds over which each client's shares average to its share of the data; 1 if random."""
        return 1

    @property
    def averaged(self) -> int:
        """How many of the last models are averaged into the one that is evaluated and returned."""
        return self.cycle

    @abstractmethod
    def cohort(self, samples: FloatArray, seed: int, round_: int) -> Cohort:
        """Who trains in this round, counted from 1; `samples` has one number per client."""

    @abstractmethod
    def round_cost(self, problem: Problem, local_steps: float) -> RoundCost:
        """The exact expected cost of a round."""

    def sampling_variance(self, problem: Problem) -> float:
        """Sampling noise: 0 if every client's data is used in every cycle.

        1 is the noise of a single client drawn uniformly from many with equal data, and
        s(K) = (N - K) / (K (N - 1)) that of K.
        """
        n, k = len(problem.fleet), self.clients_per_round
        return 0.0 if k is None or self.cycle > 1 else (n - k) / (k * max(n - 1, 1))

    def largest_share(self, problem: Problem) -> float:  # noqa: ARG002
        """The largest weight of a client's update; far above 1, training is unstable."""
        return 1.0

    @abstractmethod
    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train by this law; empty if they can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A participation and a number of local steps, E."""

    identity: ClassVar[str] = ""
    wants_signal: ClassVar[bool] = False
    participation: Participation
    local_steps: int

    @property
    def setting(self) -> Setting:
        """Itself: a setting is a course that never changes."""
        return self

    def begin(self) -> Steady:
        """A training that keeps to this setting."""
        return Steady(self)

    @property
    def clients_per_round(self) -> int | None:
        """K, where the participation has one."""
        return self.participation.clients_per_round

    @property
    def groups(self) -> int | None:
        """How many groups take turns; None if none do."""
        groups = getattr(self.participation, "groups", None)
        return None if groups is None else len(groups)

    @property
    def pair(self) -> tuple[int, int]:
        """(K, E) of a setting that has a K."""
        if self.clients_per_round is None:
            raise InputError(f"participation {self.participation.law} has no clients_per_round.")
        return self.clients_per_round, self.local_steps

    @property
    def label(self) -> str:
        """A short label of the setting, for tables and figures."""
        return setting_label(
            self.participation.law, self.clients_per_round, self.groups, self.local_steps
        )

    def problems(self, num_clients: int) -> list[str]:
        """Why this many clients cannot train with it; empty if they can."""
        steps = self.local_steps
        found = self.participation.problems(num_clients)
        return found + unmet({"local_steps >= 1": steps >= 1}, local_steps=steps)

    def __str__(self) -> str:
        law, clients = self.participation.law, self.clients_per_round
        who = f"groups={self.groups}" if clients is None else f"clients-per-round={clients}"
        shown = who if law == "uniform" else f"participation={law}, {who}"
        return f"{shown}, local-steps={self.local_steps}"

    def to_dict(self) -> dict[str, Any]:
        """The setting as texts, numbers and lists; `participation.setting_from_dict` reads it."""
        law: Any = self.participation
        written = {field.name: _plain(getattr(law, field.name)) for field in fields(law)}
        return {"law": law.law, **written, "local_steps": int(self.local_steps)}


def _plain(value: Any) -> Any:
    """Tuples as lists, and numpy's numbers as Python's."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") else value


def setting_label(
    law: str, clients_per_round: int | None, groups: int | None, local_steps: int
) -> str:
    """A short label of a setting; uniform sampling is not mentioned.

    >>> setting_label("uniform", 10, None, 20), setting_label("turns", None, 8, 20)
    ('K=10, E=20', '8 groups, E=20')
    >>> setting_label("shuffled", 10, None, 20)
    'shuffled K=10, E=20'
    """
    who = counted(groups or 0, "group") if clients_per_round is None else f"K={clients_per_round:,}"
    if clients_per_round is not None and law != "uniform":
        who = f"{law} {who}"
    return f"{who}, E={local_steps:,}"
