"""Beginning: what a study of `PlannedFedAvg` began with, by which it is found again.

It is kept, whatever has changed since: the clients that are there, what is known of them, or the
plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedplan.core.course import Course, Steering
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.course import Online
from fedplan.course.live import Live, alike
from fedplan.participation import setting_from_dict, uniform

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a study began with.

    clients : how many there were.
    known : what their devices cost, by earlier measurements; None where nothing was known.
    setting, identity : the first setting, and the course, by which the run is found again.
    """

    clients: int
    known: dict[str, Any] | None
    setting: dict[str, Any]
    identity: str

    @classmethod
    def of(
        cls, problem: Problem, plan: Pair | None, names: Sequence[str], earlier: Fleet | None
    ) -> Beginning:
        """A study that begins now, with these clients and what is known of them."""
        known = _matched(names, earlier)
        course = _course(problem, plan, len(names), known)
        identity = "" if plan is not None else Online.name
        return cls(
            clients=len(names), known=known, setting=course.setting.to_dict(), identity=identity
        )

    def course(self, problem: Problem, plan: Pair | None) -> Begun:
        """How to train now, from the first round or from the last there is."""
        return Begun(
            setting=setting_from_dict(dict(self.setting)),
            identity=self.identity,
            course=_course(problem, plan, self.clients, self.known),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun:
    """A course that is found by what its study began with, and trains as it is told to now."""

    setting: Setting
    identity: str
    course: Course

    @property
    def wants_signal(self) -> bool:
        """Whether rounds are to tell what half of their steps would have done."""
        return self.course.wants_signal

    def begin(self) -> Steering:
        """The steering of a new training."""
        return self.course.begin()


def _course(
    problem: Problem, plan: Pair | None, clients: int, known: dict[str, Any] | None
) -> Course:
    """A (K, E) given by hand, or the online course on these devices."""
    if plan is not None:
        return uniform(*plan)
    fleet = alike(clients) if known is None else Fleet(**known)
    return Live.online(replace(problem, fleet=fleet), guessed=known is None)


def _matched(names: Sequence[str], earlier: Fleet | None) -> dict[str, Any] | None:
    """What these clients' devices cost; those not among the earlier ones are taken for the mean."""
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
