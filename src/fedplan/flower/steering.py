"""Steering on real devices: the online course, with costs as the rounds show them.

Everything follows from the records of the rounds: told of them again, a new steering decides as the
one before it did.
"""

from __future__ import annotations

from dataclasses import replace

from fedplan.core.course import Course, Decision, Steering
from fedplan.core.fleet import Fleet
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord
from fedplan.core.setting import RoundCost, Setting
from fedplan.course import Online
from fedplan.course.steering import OnlineSteering
from fedplan.flower.ledger import Ledger
from fedplan.participation import Turns
from fedplan.participation.grouping import RAREST, Grouper, Grouping

DRIFT = 0.1  # groups that cost more than the best by this share are made anew
# Costs of a step and of a round that have moved apart by this factor: the best local steps go with
# the root of it, and a factor of two costs at most 6%.
APART = 2.0
PATIENCE = 2  # cycles that are waited for clients that do not show what they cost
_STAGES = 2  # numbers of local steps that tell a step from the rest of a round


def begin_live(course: Course) -> Steering:
    """The steering of a new training; an online course learns what real devices cost."""
    if isinstance(course, Online):
        return LiveSteering(course.problem, course.first.grouping, course.setting)
    return course.begin()


class LiveSteering:
    """An online steering that learns costs and samples from the rounds.

    guessed : the fleet of the problem says nothing. Rounds then come with a usual number of local
        steps until every client has been seen, and with twice as many until every client has been
        seen again; by then it is known what a step takes and what a round does, and groups and
        steps are chosen for that. They train all the while.
    """

    def __init__(
        self, problem: Problem, grouping: Grouping, setting: Setting, *, guessed: bool = False
    ) -> None:
        self._online = OnlineSteering(problem, grouping, setting)
        self.decisions: list[Decision] = self._online.decisions
        self._problem = problem
        self._known = None if guessed else problem.fleet
        samples = problem.fleet.samples.tolist() if problem.fleet.has_samples else ()
        self._ledger = Ledger(samples)
        self._clients = len(problem.fleet)
        self._round = self._learnt = 0
        self._stage = _STAGES if guessed else 0  # numbers of local steps that are still to be seen
        self._ratio = _ratio(grouping)
        self._has_signal = False

    @property
    def hopeless(self) -> str | None:
        """Why going on is pointless; None while it is not."""
        return self._online.hopeless

    def ask(self) -> Setting:
        """How to train the next round."""
        return self._online.ask()

    def meet(self, clients: int) -> None:
        """So many clients are known now; those that are new join a group."""
        if clients > self._clients:
            came, self._clients = clients - self._clients, clients
            self._learn(f"{came} more clients are there.")

    def tell(self, record: RoundRecord) -> None:
        """What came of a round."""
        law = record.setting.participation if record.setting else None
        if isinstance(law, Turns):  # as many as were known when the round was made
            self.meet(1 + max(client for group in law.groups for client in group))
        self._online.tell(record)
        self._round = record.round
        self._ledger.hear(record.observations)
        self._has_signal |= record.signal is not None
        if not record.round:
            return
        if self._stage:
            self._settle()
        elif self._matters():
            self._learn("The devices' costs have changed.")

    def _settle(self) -> None:
        """Go on to other local steps, once all clients have shown what those of now cost."""
        setting = self.ask()
        steps, wanted = setting.local_steps, _STAGES + 1 - self._stage
        seen = [self._ledger.steps_seen(client) for client in range(self._clients)]
        late = self._round - self._learnt >= PATIENCE * setting.participation.cycle
        if not any(seen) or not (min(seen) >= wanted or late):
            return
        self._stage -= 1
        if self._stage:
            most = self._problem.limits.max_local_steps or 2 * steps
            why = "Twice the steps tell what a step costs, and what a round does."
            self._learn(why, local_steps=min(2 * steps, most))
            return
        first = Online(problem=self._priced()).setting
        self._learn(
            "The devices' costs are known now: groups and local steps for them.",
            groups=first.groups,
            local_steps=first.local_steps,
        )

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
        self._ratio = _ratio(self._grouped(problem))

    def _grouped(self, problem: Problem) -> Grouping | None:
        setting = self.ask()
        return Grouper(problem, setting.local_steps).group(setting.groups or 1)

    def _priced(self) -> Problem:
        """The problem with the devices as they are known now."""
        fleet = self._ledger.fleet(self._clients, self._known)
        if fleet is None:  # nobody has answered yet, and all are taken to be alike
            fleet = like(self._problem.fleet, self._clients)
        return replace(self._problem, fleet=fleet)

    def _cost(self, cost: RoundCost) -> float:
        paid = self._problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients)
        return float(paid) or cost.time_s


def like(fleet: Fleet, clients: int) -> Fleet:
    """So many devices, each as the mean of these."""
    return Fleet(
        step_time_s=[fleet.mean("step_time_s")] * clients,
        comm_time_s=fleet.mean("comm_time_s"),
        step_energy_j=fleet.mean("step_energy_j"),
        comm_energy_j=fleet.mean("comm_energy_j"),
    )


def _ratio(grouping: Grouping | None) -> float:
    """What a round costs, in steps; 0 where one of the two costs nothing."""
    per_step, per_round = (0.0, 0.0) if grouping is None else grouping.line()
    return per_round / per_step if per_step else 0.0
