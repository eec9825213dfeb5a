"""The online course: the training is the pilot.

It begins with groups that take turns, made from what the devices cost, and local steps for a usual
saturation. Every few rounds the updates themselves tell the saturation, and local steps follow.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedplan.convergence.saturation import RANGE, Saturation
from fedplan.core.course import Decision
from fedplan.core.fleet import QUANTITIES
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord
from fedplan.core.setting import Setting
from fedplan.course.elasticity import Window
from fedplan.participation.grouping import Grouping
from fedplan.planning.turns import plan_turns, turns_steps_range

WINDOW = 2.0  # rounds whose updates are looked at together, for each group
OFTEN = 0.5  # rounds between two looks, for each group
MOVE = 2.0  # local steps change by this factor at most at a time
AHEAD = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Online:
    """Starts at once, learns from the rounds, and changes its mind when they say so.

    problem : the devices with their samples, what counts, limits, target and learning rate.
    known : what is known of local steps beforehand; a usual range without.
    """

    problem: Problem
    known: Saturation | None = None
    wants_signal = True

    @cached_property
    def grouping(self) -> Grouping:
        """The groups that training begins with."""
        return self._plan.grouping

    @cached_property
    def _plan(self):
        ranges = replace(self.problem, limits=self.problem.limits.ranges_only())
        chosen = plan_turns(ranges, self.known or Saturation.within(*RANGE))
        if chosen is None:
            raise AssertionError("without limits on totals there is a plan")
        return chosen

    @cached_property
    def setting(self) -> Setting:
        steps = max(2, self._plan.prediction.local_steps)
        return Setting(participation=self.grouping.whole(), local_steps=steps)

    @property
    def identity(self) -> str:
        digest = hashlib.sha256()
        fleet = self.problem.fleet
        for name in (*QUANTITIES, "samples", "count"):
            digest.update(np.ascontiguousarray(getattr(fleet, name)).tobytes())
        rest = (
            self.problem.objective,
            self.problem.limits,
            self.problem.target_loss,
            self.problem.learning_rate,
            self.known,
        )
        digest.update(repr(rest).encode())
        return f"online/{digest.hexdigest()[:16]}"

    def begin(self) -> OnlineSteering:
        return OnlineSteering(self)


class OnlineSteering:
    hopeless = None

    def __init__(self, course: Online) -> None:
        self._problem = course.problem
        self._grouping, self._setting = course.grouping, course.setting
        self._window = Window()
        self._next_look = max(2, len(self._grouping.visits))
        self.decisions = [Decision.of(self._setting, 1, why="A usual saturation is assumed.")]

    def ask(self) -> Setting:
        return self._setting

    def tell(self, record: RoundRecord) -> None:
        if record.signal is None:
            return
        groups = len(self._grouping.visits)
        self._window.add(record.signal, self._setting.local_steps, max(2, round(WINDOW * groups)))
        if record.round >= self._next_look:
            self._next_look = record.round + max(2, int(OFTEN * groups))
            self._look(record.round)

    def _look(self, round_: int) -> None:
        saturation = self._window.saturation()
        rate = self._problem.learning_rate
        ahead = rate.at(round_ - 1) / rate.at(2 * round_ + AHEAD - 1) if rate else 1.0
        now = self._setting.local_steps
        per_step, per_round = self._grouping.line()
        wanted = math.sqrt(saturation * ahead * per_round / per_step) if per_step else math.inf
        low, high = turns_steps_range(self._problem.limits, Saturation())
        wanted = min(max(wanted, now / MOVE), now * MOVE)
        steps = int(np.clip(round(wanted), max(low, min(2, high)), high))
        if steps != now:
            self._setting = Setting(participation=self._setting.participation, local_steps=steps)
            self.decisions.append(Decision.of(self._setting, round_ + 1, saturation=saturation))
