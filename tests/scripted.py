"""A course whose decisions are given beforehand: for tests of whatever shows them."""

from __future__ import annotations

from dataclasses import dataclass

from fedplan.core.course import Decision
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.participation import Turns


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted:
    """Groups of equal size take turns; from round `at` on with other steps, and a forecast."""

    problem: Problem
    steps: tuple[int, ...] = (20, 40, 30)
    at: tuple[int, ...] = (1, 6, 11)
    foretold: tuple[float, tuple[float, float]] | None = (50.0, (10.0, 140.0))
    gives_up: int | None = None
    wants_signal = False
    wants_clients = False

    @property
    def setting(self) -> Setting:
        law = Turns.of(self.problem, self.steps[0], 4)
        return Setting(participation=law, local_steps=self.steps[0])

    @property
    def identity(self) -> str:
        rest = (self.steps, self.at, self.foretold, self.gives_up, self.problem.target_loss)
        return f"online/{rest!r}"

    def begin(self) -> ScriptedSteering:
        return ScriptedSteering(self)


class ScriptedSteering:
    def __init__(self, course: Scripted) -> None:
        self._course, self._now = course, course.setting
        self.decisions = [Decision.of(self._now, 1, why="It is written.")]
        self.hopeless: str | None = None

    def ask(self) -> Setting:
        return self._now

    def tell(self, record) -> None:
        course = self._course
        if record.round == course.gives_up:
            self.hopeless = "The loss stays where it is. Raise target-loss."
        if record.round + 1 in course.at[1:]:
            steps = course.steps[course.at.index(record.round + 1)]
            self._now = Setting(participation=self._now.participation, local_steps=steps)
            rounds, interval = course.foretold or (None, None)
            self.decisions.append(
                Decision.of(
                    self._now,
                    record.round + 1,
                    saturation=60.0,
                    expected_rounds=rounds,
                    interval=interval,
                )
            )


def follow_script(monkeypatch, **script) -> None:
    """Let `course=online` be this script."""
    from fedplan.studies import courses

    def make(*, problem, **_):
        return Scripted(problem=problem, **script)

    monkeypatch.setattr(courses, "STEERING", {**courses.STEERING, "online": make})
