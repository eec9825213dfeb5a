"""What the published courses share: how they begin and change; and one that never changes."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

from fedplan.core.course import Decision, Steady
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.participation import uniform

USUAL_SHARE = 0.1  # of the clients that take part in a round, where a paper does not say
USUAL_STEPS = 20  # local steps to begin with: FedTune's E and AdaComm's tau0


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """A published rule for one problem; the fleet has the samples of every client.

    clients_per_round, local_steps : K and E to begin with; by default the paper's.
    """

    name: ClassVar[str]
    wants_signal: ClassVar[bool] = False
    wants_clients: ClassVar[bool] = False
    usual_share: ClassVar[float] = USUAL_SHARE
    usual_steps: ClassVar[int] = USUAL_STEPS
    problem: Problem
    clients_per_round: int | None = None
    local_steps: int | None = None

    @property
    def num_clients(self) -> int:
        """N."""
        return len(self.problem.fleet)

    @property
    def identity(self) -> str:
        """The name of the rule and a digest of the problem and of all its numbers."""
        names = [field.name for field in fields(self) if field.name != "problem"]
        numbers = tuple((name, getattr(self, name)) for name in names)
        return f"{self.name}/{self.problem.digest(numbers)}"

    @property
    def usual_clients(self) -> int:
        """The default share of the clients, at least one."""
        return max(1, round(self.usual_share * self.num_clients))

    @property
    def first_clients(self) -> int:
        """K to begin with, as far as the limits allow."""
        return self.clients_within(self.clients_per_round or self.usual_clients)

    @property
    def first_steps(self) -> int:
        """E to begin with, as far as the limits allow."""
        return self.problem.limits.steps_within(self.local_steps or self.usual_steps)

    @cached_property
    def setting(self) -> Setting:
        """What training begins with."""
        return self.uniform(self.first_clients, self.first_steps)

    def clients_within(self, clients: float) -> int:
        """The nearest K that the limits allow."""
        low, high = self.problem.limits.clients_range(self.num_clients)
        return int(min(max(clients, low), high))

    def uniform(self, clients: float, steps: float) -> Setting:
        """K random clients and E local steps, as far as the limits allow."""
        return uniform(self.clients_within(clients), self.problem.limits.steps_within(steps))


class Turning(Steady):
    """A training in progress that remembers when it changed its setting."""

    def __init__(self, setting: Setting, why: str) -> None:
        super().__init__(setting)
        self.decisions.append(Decision.of(setting, 1, why=why))

    def turn_to(self, setting: Setting, round_: int, why: str) -> None:
        """Train like this from this round on; a decision if law, K or E change."""
        if _told(setting) != _told(self._setting):
            self.decisions.append(Decision.of(setting, round_, why=why))
        self._setting = setting


def _told(setting: Setting) -> tuple[str, int | None, int]:
    return setting.participation.law, setting.clients_per_round, setting.local_steps


def fixed(
    *, problem: Problem, clients_per_round: int | None = None, local_steps: int | None = None
) -> Setting:
    """A setting, the course that never changes; by default a tenth of the clients and E = 20.

    >>> from fedplan.core.fleet import Fleet
    >>> problem = Problem(fleet=Fleet(step_time_s=0.1, comm_time_s=2.0, count=50))
    >>> fixed(problem=problem).pair
    (5, 20)
    """
    usual = max(1, round(USUAL_SHARE * len(problem.fleet)))
    clients = usual if clients_per_round is None else clients_per_round
    return uniform(clients, USUAL_STEPS if local_steps is None else local_steps)
