"""The course of a planned federation: an online one, or a (K, E) given by hand.

What a study began with is kept, so that it is found again whatever has changed since: the clients
that are there, what is known of them, or the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedplan.core.constraints import Constraints
from fedplan.core.course import Course, Steering
from fedplan.core.fleet import QUANTITIES, Fleet
from fedplan.core.learning_rate import LearningRate
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.course import Online
from fedplan.course.steering import FEWEST_STEPS
from fedplan.errors import InputError
from fedplan.flower.steering import LiveSteering
from fedplan.participation import setting_from_dict, uniform

USUAL_STEPS = 10  # to begin with, where nothing is known of the devices
# All alike: with these, whoever is there trains at once, and who is slow shows.
_GUESS = {"step_time_s": 0.1, "comm_time_s": 1.0, "step_energy_j": 0.1, "comm_energy_j": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What training is for."""

    target_loss: float
    patience: int
    rate: LearningRate
    objective: Objective
    constraints: Constraints
    plan: tuple[int, int] | None
    min_clients: int
    seed: int

    def __post_init__(self) -> None:
        problems = []
        if not 0 < self.target_loss < math.inf:
            problems.append(f"`target_loss > 0 and finite` must hold, but got {self.target_loss}.")
        if self.patience < 1:
            problems.append(f"`patience >= 1` must hold, but got {self.patience}.")
        if self.min_clients < 1:
            problems.append(f"`min_clients >= 1` must hold, but got {self.min_clients}.")
        if self.plan is not None and not is_setting(self.plan):
            problems.append(f"plan must be (K, E), both whole and >= 1, but is {self.plan!r}.")
        if problems:
            raise InputError(problems)


def is_setting(value: object) -> bool:
    """Whether this can be a (K, E)."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(part, int) and part >= 1 for part in value)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a study began with.

    clients : how many there were.
    known : what their devices cost, by earlier measurements; None where nothing was known.
    setting, identity : the first setting, and the course, by which the run is found again.
    """

    clients: int
    known: dict[str, list[float]] | None
    setting: dict[str, Any]
    identity: str

    @classmethod
    def of(cls, goal: Goal, names: Sequence[str], earlier: Fleet | None) -> Start:
        """A study that begins now, with these clients and what is known of them."""
        known = _matched(names, earlier)
        if goal.plan is not None:
            first, identity = uniform(*goal.plan), ""
        else:
            first, identity = _first_setting(goal, len(names), known), Online.name
        return cls(clients=len(names), known=known, setting=first.to_dict(), identity=identity)

    def course(self, goal: Goal) -> Planned:
        """How to train, from the first round or from the last there is."""
        return Planned(
            setting=setting_from_dict(dict(self.setting)),
            identity=self.identity,
            start=self,
            goal=goal,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """A course that goes by what its study began with, and trains as it is told to now."""

    setting: Setting
    identity: str
    start: Start
    goal: Goal

    @property
    def wants_signal(self) -> bool:
        """Whether rounds are to tell what half of their steps would have done."""
        return self.goal.plan is None

    def begin(self) -> Steering:
        """The steering of a new training."""
        if self.goal.plan is not None:
            fixed: Course = uniform(*self.goal.plan)
            return fixed.begin()
        online = Online(problem=_problem(self.goal, self.start.clients, self.start.known))
        first = self.setting if self.identity else online.setting
        return LiveSteering(
            online.problem, online.first.grouping, first, guessed=self.start.known is None
        )


def _first_setting(goal: Goal, clients: int, known: Mapping[str, list[float]] | None) -> Setting:
    first = Online(problem=_problem(goal, clients, known)).setting
    if known is not None:
        return first
    limits = goal.constraints
    most = limits.max_local_steps or USUAL_STEPS
    fewest = max(limits.min_local_steps or 1, min(FEWEST_STEPS, most))
    steps = min(max(USUAL_STEPS, fewest), most)
    return Setting(participation=first.participation, local_steps=steps)


def _problem(goal: Goal, clients: int, known: Mapping[str, list[float]] | None) -> Problem:
    columns: Mapping[str, Any] = known or {**_GUESS, "step_time_s": [0.1] * clients}
    return Problem(
        fleet=Fleet(**columns),
        objective=goal.objective,
        limits=goal.constraints,
        target_loss=goal.target_loss,
        learning_rate=goal.rate,
    )


def _matched(names: Sequence[str], earlier: Fleet | None) -> dict[str, list[float]] | None:
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
