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
    """What a course has settled on, and from which round on it holds.

    saturation : the local steps at which half of what steps can save is saved, as measured.
    expected_rounds, interval : rounds that the training is expected to take in all, and between
        which two it does so in nine of ten cases; None while nothing tells.
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
        """A setting that is trained with from this round on."""
        return cls(
            round=round_,
            participation=setting.participation.law,
            groups=setting.groups,
            clients_per_round=setting.clients_per_round,
            local_steps=setting.local_steps,
            **what,
        )


class Steering(Protocol):
    """One training under way; told of every round, in order, it says how to train the next."""

    decisions: list[Decision]

    @property
    def hopeless(self) -> str | None:
        """Why going on is pointless, and what to do instead; None while it is not."""
        ...

    def ask(self) -> Setting:
        """How to train the next round."""
        ...

    def tell(self, record: RoundRecord) -> None:
        """What came of a round; round 0 is the evaluation before any training."""
        ...


class Identified(Protocol):
    """What a run is found again by, beside its seed: courses and runs have it."""

    @property
    def setting(self) -> Setting:
        """What the training begins with."""
        ...

    @property
    def identity(self) -> str:
        """What tells it from others that begin alike; empty where the setting says it all."""
        ...


class Course(Identified, Protocol):
    """A way to go about a training, from the first round to the target.

    `tests/contracts/course.py` says what a course promises; every course passes it.
    """

    @property
    def wants_signal(self) -> bool:
        """Whether rounds are to tell what half of their steps would have done."""
        ...

    def begin(self) -> Steering:
        """The steering of a new training."""
        ...


def wants_reports(course: object) -> bool:
    """Whether a course, or every one of a class, asks for more than updates (`ClientReports`).

    It says so by `wants_clients`. Few do, and what they ask for takes engines as long as training.
    """
    return bool(getattr(course, "wants_clients", False))


class Steady:
    """Steers straight on: the same setting in every round."""

    hopeless: None = None

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.decisions: list[Decision] = []

    def ask(self) -> Setting:
        """The setting."""
        return self._setting

    def tell(self, record: RoundRecord) -> None:
        """Nothing changes it."""
