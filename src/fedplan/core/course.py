"""Course: what to do next. A course begins a training; its steering is asked and told.

A setting is the simplest course: it never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fedplan.core.records import RoundRecord
    from fedplan.core.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision of a course, and the round from which it holds.

    saturation : the local steps at which half of what steps can save is saved, as measured.
    expected_rounds, interval : rounds that the training is expected to take in all, and their 90%
        interval; None while unknown.
    why : the reason, in a sentence.
    """

    round: int
    participation: str
    groups: int | None
    clients_per_round: int | None
    local_steps: int
    saturation: float | None = None
    expected_rounds: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""

    @classmethod
    def of(cls, setting: Setting, round_: int, **what: Any) -> Decision:
        """The decision to train with a setting from this round on."""
        return cls(
            round=round_,
            participation=setting.participation.law,
            groups=setting.groups,
            clients_per_round=setting.clients_per_round,
            local_steps=setting.local_steps,
            **what,
        )


class Steering(Protocol):
    """A training in progress: told of every round in order, it decides how to train the next."""

    decisions: list[Decision]

    @property
    def hopeless(self) -> str | None:
        """Why continuing is pointless, and what to do instead; None while it is not."""
        ...

    def ask(self) -> Setting:
        """How to train the next round."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """Report a completed round; round 0 is the evaluation before any training."""
        ...


class Identified(Protocol):
    """What identifies a run besides its seed: courses and runs have it."""

    @property
    def setting(self) -> Setting:
        """What the training begins with."""
        ...

    @property
    def identity(self) -> str:
        """What distinguishes it from others with the same start; empty if the setting does."""
        ...


class Course(Identified, Protocol):
    """A strategy for a training, from the first round to the target.

    `tests/contracts/course.py` says what a course promises; every course passes it.
    """

    @property
    def wants_signal(self) -> bool:
        """Whether rounds should report what half of their steps would have achieved."""
        ...

    def begin(self) -> Steering:
        """The steering of a new training."""
        ...


def wants_reports(course: object) -> bool:
    """Whether a course, or every one of a class, asks for more than updates (`ClientReports`).

    It says so by `wants_clients`. Few do, since reports take engines as long as training.
    """
    return bool(getattr(course, "wants_clients", False))


class Steady:
    """Never changes: the same setting in every round."""

    hopeless: None = None

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.decisions: list[Decision] = []

    def ask(self) -> Setting:
        """The setting."""
        return self._setting

    def tell(self, record: RoundRecord) -> None:
        """Nothing changes it."""
