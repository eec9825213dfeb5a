"""The online course: the training is the pilot.

It begins with groups that take turns, made from what the devices cost, and with local steps for a
usual saturation. From the third round on the updates themselves tell the saturation, and local
steps follow. `steering` has the rules.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedplan.convergence.saturation import RANGE, Saturation
from fedplan.core.fleet import QUANTITIES
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.course.steering import FEWEST_STEPS, HEAVIEST, OnlineSteering
from fedplan.errors import InputError
from fedplan.planning.turns import TurnsChoice, check_group_sizes, plan_turns


@dataclass(frozen=True, kw_only=True, eq=False)
class Online:
    """Starts at once, learns from the rounds, and changes its mind when they say so.

    problem : the devices with their samples, what counts, limits, target and learning rate.
    known : what is known of local steps beforehand; a usual range without.

    >>> from fedplan.core.fleet import Fleet
    >>> fleet = Fleet(step_time_s=[0.1, 0.1, 0.4], comm_time_s=2.0)
    >>> course = Online(problem=Problem(fleet=fleet, target_loss=0.5))
    >>> course.setting.groups, course.setting.local_steps
    (2, 26)
    """

    name: ClassVar[str] = "online"
    wants_signal: ClassVar[bool] = True
    problem: Problem
    known: Saturation | None = None

    def __post_init__(self) -> None:
        check_group_sizes(self.problem)
        if self.problem.target_loss is None:
            raise InputError("an online course trains to a target, and needs one: target_loss.")

    @cached_property
    def first(self) -> TurnsChoice:
        """The groups and local steps that training begins with; limits on totals come later."""
        free = replace(self.problem, limits=self.problem.limits.ranges_only())
        chosen = plan_turns(free.evened(HEAVIEST), self.known or Saturation.within(*RANGE))
        if chosen is None:
            raise AssertionError("without limits on totals there is a plan")
        return chosen

    @cached_property
    def setting(self) -> Setting:
        """What training begins with."""
        steps = max(FEWEST_STEPS, self.first.prediction.local_steps)
        steps = min(steps, self.problem.limits.max_local_steps or steps)
        law = replace(self.first.grouping.whole(), heaviest=HEAVIEST)
        return Setting(participation=law, local_steps=steps)

    @cached_property
    def identity(self) -> str:
        """The name, and a digest of the question: other devices make another training."""
        digest, problem = hashlib.sha256(), self.problem
        for name in (*QUANTITIES, "samples", "count"):
            digest.update(np.ascontiguousarray(getattr(problem.fleet, name)).tobytes())
        rest = (problem.objective, problem.limits, problem.target_loss, problem.learning_rate)
        digest.update(repr((*rest, self.known)).encode())
        return f"{self.name}/{digest.hexdigest()[:16]}"

    def begin(self) -> OnlineSteering:
        """The steering of a new training."""
        return OnlineSteering(self.problem, self.first.grouping, self.setting)
