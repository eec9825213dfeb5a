"""The online course: the training is the pilot.

It begins with groups that take turns, made from what the devices cost, and with local steps for a
usual saturation, or for one that is known. From the third round on the updates themselves tell the
saturation, and local steps follow. `steering` has the rules.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation, best_constant_steps
from fedplan.core.constraints import MAX_STEPS
from fedplan.core.problem import Problem
from fedplan.core.records import Stop
from fedplan.core.setting import Setting
from fedplan.course.steering import FEWEST_STEPS, HEAVIEST, OnlineSteering
from fedplan.errors import InputError
from fedplan.participation.grouping import Grouping
from fedplan.planning.turns import Choice, check_group_sizes, plan_turns


@dataclass(frozen=True, kw_only=True, eq=False)
class Online:
    """Starts at once, learns from the rounds, and changes groups and steps when they call for it.

    problem : the devices with their samples, objective, limits, target and learning rate.
    known : the saturation, if anything is known in advance, at the usual rate (`usual_rate`). The
        first local steps are for its middle, and whatever rounds show, local steps stay between
        those for its ends. The default is a typical range, which groups always use.
    source : where it comes from, for messages.
    stop : what ends the training even short of the target, so that the course can give up early
        if the target is out of reach.

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
    source: str = "the saturation given"
    stop: Stop | None = None

    def __post_init__(self) -> None:
        check_group_sizes(self.problem)
        if self.problem.target_loss is None:
            raise InputError("an online course trains to a target, and needs one: target_loss.")

    @cached_property
    def first(self) -> Choice[Grouping]:
        """What training begins with; limits on totals come later, and so does a rate's end."""
        limits = self.problem.limits.ranges_only()
        free = replace(self.problem, limits=limits, learning_rate=None)
        chosen = plan_turns(free.evened(HEAVIEST), Saturation.within(*RANGE, rounds=ROUNDS))
        if chosen is None:
            raise AssertionError("without limits on totals there is a plan")
        return chosen

    @cached_property
    def setting(self) -> Setting:
        """What training begins with."""
        steps = self.first.prediction.local_steps
        if self.known is not None:
            rate, line = self.problem.learning_rate, self.first.law.line()
            steps = round(min(best_constant_steps(self.known.saturation, rate, *line), MAX_STEPS))
        steps = self.problem.limits.steps_within(max(FEWEST_STEPS, steps))
        law = replace(self.first.law.whole(), heaviest=HEAVIEST)
        return Setting(participation=law, local_steps=steps)

    @cached_property
    def identity(self) -> str:
        """The name, a digest of the question, and what was known in advance, if anything."""
        question = f"{self.name}/{self.problem.digest()}"
        if self.known is None:
            return question
        low, high = self.known.interval or (self.known.saturation,) * 2
        return f"{question}/{low!r}..{high!r}"

    def begin(self) -> OnlineSteering:
        """The steering of a new training."""
        given = "a usual saturation" if self.known is None else self.source
        return OnlineSteering(
            self.problem,
            self.first.law,
            self.setting,
            known=self.known,
            source=given,
            stop=self.stop,
        )


def known_before(identity: str) -> Saturation | None:
    """The saturation that the online training of this identity began with; None without one.

    >>> known_before("online/0123456789abcdef/10.0..40.0").saturation
    20.0
    >>> known_before("online/0123456789abcdef")
    """
    _, _, text = identity.split("/", 1)[1].partition("/")
    if not text:
        return None
    low, high = map(float, text.split(".."))
    return Saturation.within(low, high)
