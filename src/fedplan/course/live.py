"""Live: any course on real devices, whose costs are measured round by round.

Everything follows from the records of the rounds: a new steering that is told the same records
makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from fedplan.core.course import Course, Decision, Steady, Steering
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord
from fedplan.core.setting import RoundCost, Setting
from fedplan.course.online import Online
from fedplan.course.steering import OnlineSteering
from fedplan.errors import InputError
from fedplan.participation import Turns
from fedplan.participation.grouping import RAREST, Grouper, Grouping
from fedplan.profiling.observed import Ledger

FIRST_STEPS = 10  # where nothing is known of the devices
DRIFT = 0.1  # groups that cost this share more than the best are made again
# The factor by which the ratio of the costs of a round and of a step may change: the best local
# steps go with its root, and a factor of two costs at most 6%.
APART = 2.0
PATIENCE = 2  # cycles to wait for clients that do not show what they cost
_STAGES = 2  # numbers of local steps it takes to tell a step from the rest of a round
_FIRST = "The first rounds measure what the devices cost."
_LONGER = "Twice the steps tell what a step costs, and what a round does."
_KNOWN = "The devices' costs are known now: groups and local steps for them."


def alike(clients: int) -> Fleet:
    """Identical devices, for when nothing is known."""
    return Fleet(step_time_s=[0.1] * clients, comm_time_s=1.0, step_energy_j=0.1, comm_energy_j=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Live:
    """A course on real devices, which begins at once and follows their measured costs.

    name : of the course.
    make : the course for a problem whose devices are known, or why there is none.
    problem : with the devices as measured earlier; all `alike` if they were not.
    guessed : nothing is known of the devices. Rounds then come with a usual number of local steps
        until every client has been seen, and with twice as many until every client has been seen
        again; by then the costs of a step and of a round are known, and the course is made for
        them. These rounds train, too.
    about : what else distinguishes it from other courses of its name.
    """

    name: str
    make: Callable[[Problem], Course | str]
    problem: Problem
    guessed: bool
    about: tuple[object, ...] = ()

    @classmethod
    def online(cls, problem: Problem, *, guessed: bool) -> Live:
        """The online course, which follows the devices' costs to the end."""
        return cls(
            name=Online.name,
            make=lambda known: Online(problem=known),
            problem=problem,
            guessed=guessed,
        )

    @property
    def wants_signal(self) -> bool:
        """Whether rounds should report what half of their steps would have achieved."""
        return self.name == Online.name

    @cached_property
    def first(self) -> Online:
        """The online course that groups the first rounds.

        If devices are guessed, it counts time alone: each client is to be seen twice soon.
        """
        quickly = self.problem
        if self.guessed:
            quickly = replace(quickly, objective=Objective.weighted(0.0))
        return Online(problem=quickly)

    @cached_property
    def setting(self) -> Setting:
        """What training begins with."""
        if not self.guessed:
            return self._made.setting
        steps = self.problem.limits.steps_within(FIRST_STEPS)
        return Setting(participation=self.first.setting.participation, local_steps=steps)

    @cached_property
    def identity(self) -> str:
        """Identifies the course; another problem makes another training."""
        if not self.guessed:
            return self._made.identity
        return f"{self.name}/{self.problem.digest(self.about)}"

    @property
    def _made(self) -> Course:
        course = self.make(self.problem)
        if isinstance(course, str):
            raise InputError(course)
        return course

    def begin(self) -> Steering:
        """The steering of a new training."""
        if self.name == Online.name:
            return LiveOnline(self)
        return Deferred(self) if self.guessed else self._made.begin()


class LiveSteering:
    """What steerings that measure devices share: which clients are known, and their costs."""

    def __init__(self, live: Live, steering: Steering) -> None:
        self._steering, self._problem = steering, live.problem
        fleet = live.problem.fleet
        self._known = None if live.guessed else fleet
        self._ledger = Ledger(fleet.samples.tolist() if fleet.has_samples else ())
        self._clients = len(fleet)
        self._round = self._learnt = 0
        self._stage = _STAGES if live.guessed else 0  # numbers of local steps yet to be seen
        self._refused: str | None = None
        self.decisions: list[Decision] = steering.decisions

    @property
    def hopeless(self) -> str | None:
        """Why going on is pointless; None while it is not."""
        return self._refused or self._steering.hopeless

    def ask(self) -> Setting:
        """How to train the next round."""
        return self._steering.ask()

    def meet(self, clients: int) -> None:
        """Note that so many clients are known now."""
        self._clients = max(self._clients, clients)

    def tell(self, record: RoundRecord) -> None:
        """Report a completed round."""
        law = record.setting.participation if record.setting else None
        if isinstance(law, Turns):  # as many as were known when the round was made
            self.meet(1 + max(client for group in law.groups for client in group))
        self._steering.tell(record)
        self._round = record.round
        self._ledger.hear(record.observations)
        if record.round and self._stage and self._all_seen():
            self._stage -= 1
            self._learnt = self._round
            if self._stage:
                steps = 2 * round(median(one.local_steps for one in record.observations))
                self._lengthen(min(steps, self._problem.limits.max_local_steps or steps))
            else:
                self._settle(self._priced())

    def _all_seen(self) -> bool:
        """Whether all clients have shown what rounds cost now, or were waited for long enough."""
        wanted = _STAGES + 1 - self._stage
        seen = [self._ledger.steps_seen(client) for client in range(self._clients)]
        late = self._round - self._learnt >= PATIENCE * self.ask().participation.cycle
        return any(seen) and (min(seen) >= wanted or late)

    def _lengthen(self, local_steps: int) -> None:
        """Go on with more local steps, to see what a step costs."""
        raise NotImplementedError

    def _settle(self, problem: Problem) -> None:
        """Go on with this problem, whose devices have known costs."""
        raise NotImplementedError

    def _priced(self) -> Problem:
        """The problem with the devices as they are known now."""
        fleet = self._ledger.fleet(self._clients, self._known)
        if fleet is None:  # nobody has answered yet
            fleet = alike(self._clients)
        return replace(self._problem, fleet=fleet)


class Deferred(LiveSteering):
    """A course that begins once the devices' costs are known, and ignores later changes."""

    def __init__(self, live: Live) -> None:
        self._make = live.make
        super().__init__(live, Steady(live.setting))
        self.decisions = [Decision.of(live.setting, 1, why=_FIRST)]
        self._heard = 0  # decisions of the course that are among ours
        self._last: RoundRecord | None = None

    def tell(self, record: RoundRecord) -> None:
        """Report a completed round."""
        self._last = record
        super().tell(record)
        if not self._stage:
            self.decisions += self._steering.decisions[self._heard :]
            self._heard = len(self._steering.decisions)

    def _lengthen(self, local_steps: int) -> None:
        self._turn_to(Steady(replace(self.ask(), local_steps=local_steps)), _LONGER)

    def _settle(self, problem: Problem) -> None:
        course = self._make(problem)
        if isinstance(course, str):
            self._refused = course
            return
        steering = course.begin()
        if self._last is not None:  # the loss it begins with
            steering.tell(replace(self._last, round=0))
        self._heard = len(steering.decisions)
        self._turn_to(steering, _KNOWN)

    def _turn_to(self, steering: Steering, why: str) -> None:
        if steering.ask() != self.ask():
            self.decisions.append(Decision.of(steering.ask(), self._round + 1, why=why))
        self._steering = steering


class LiveOnline(LiveSteering):
    """The online course: groups and local steps follow the devices' costs and presence."""

    def __init__(self, live: Live) -> None:
        grouping = live.first.first.law
        self._online = OnlineSteering(live.problem, grouping, live.setting)
        super().__init__(live, self._online)
        if live.guessed:
            self.decisions[0] = replace(self.decisions[0], why=_FIRST)
        self._ratio = _ratio(grouping)
        self._has_signal = False

    def meet(self, clients: int) -> None:
        """Note that so many clients are known now; new ones join a group."""
        if clients > self._clients:
            came, self._clients = clients - self._clients, clients
            self._learn(f"New clients have come: {came}.")

    def tell(self, record: RoundRecord) -> None:
        """Report a completed round."""
        self._has_signal |= record.signal is not None
        begun = bool(record.round) and not self._stage
        super().tell(record)
        if begun and self._matters():
            self._learn("The devices' costs have changed.")

    def _lengthen(self, local_steps: int) -> None:
        self._learn(_LONGER, local_steps=local_steps)

    def _settle(self, problem: Problem) -> None:
        first = Online(problem=problem).setting
        self._learn(_KNOWN, groups=first.groups, local_steps=first.local_steps)

    def _matters(self) -> bool:
        """Whether costs have moved so much that other groups or local steps are called for."""
        setting, problem = self.ask(), self._priced()
        law = setting.participation
        if self._round - self._learnt < law.averaged or not isinstance(law, Turns):
            return False
        best = Grouper(problem, setting.local_steps).group(len(law.groups))
        if best is None:
            return False
        now = self._cost(law.round_cost(problem, setting.local_steps))
        if now > (1.0 + DRIFT) * self._cost(best.round_cost):
            return True
        if law.largest_share(problem) > RAREST * (1.0 + DRIFT):
            return True  # a client has far more data than its group was made for
        moved = _ratio(best) / self._ratio if self._ratio else 1.0
        return not 1.0 / APART <= moved <= APART

    def _learn(self, why: str, **chosen: int | None) -> None:
        """Go on with what the devices cost now."""
        problem = self._priced()
        if not chosen and not self._stage and not self._has_signal:
            # Without signals nothing else would ever move the local steps.
            chosen = {"local_steps": Online(problem=problem).setting.local_steps}
        self._learnt = self._round
        self._online.learn_costs(problem.fleet, self._round, why=why, **chosen)
        setting = self.ask()
        self._ratio = _ratio(Grouper(problem, setting.local_steps).group(setting.groups or 1))

    def _cost(self, cost: RoundCost) -> float:
        paid = self._problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients)
        return float(paid) or cost.time_s


def _ratio(grouping: Grouping | None) -> float:
    """The cost of a round over that of a step; 0 if a step costs nothing."""
    per_step, per_round = (0.0, 0.0) if grouping is None else grouping.line()
    return per_round / per_step if per_step else 0.0
