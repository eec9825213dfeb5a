"""What the published courses share: how they begin, what they are found again by, how they turn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from fedplan.core.constraints import MAX_STEPS
from fedplan.core.course import Decision
from fedplan.core.fleet import QUANTITIES, FloatArray
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.participation import Uniform

USUAL_SHARE = 0.1  # of the clients that take part in a round, where a paper does not say
USUAL_STEPS = 20  # local steps to begin with: FedTune's E and AdaComm's tau0


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """A rule of others, for one problem; the fleet has the samples of every client.

    clients_per_round, local_steps : K and E to begin with; as the paper has them without.
    """

    name: ClassVar[str]
    wants_signal: ClassVar[bool] = False
    wants_clients: ClassVar[bool] = False
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
        return identity_of(
            self.name, self.problem, *((name, getattr(self, name)) for name in names)
        )

    @property
    def usual_clients(self) -> int:
        """A tenth of the clients, at least one."""
        return max(1, round(USUAL_SHARE * self.num_clients))

    def clients_within(self, clients: float) -> int:
        """The nearest K that the limits allow."""
        low, high = self.problem.limits.clients_range(self.num_clients)
        return int(min(max(clients, low), high))

    def steps_within(self, steps: float) -> int:
        """The nearest E that the limits allow."""
        limits = self.problem.limits
        low, high = limits.min_local_steps or 1, limits.max_local_steps or MAX_STEPS
        return int(min(max(steps, low), high))

    def uniform(self, clients: float, steps: float) -> Setting:
        """K at random and E, as far as the limits allow."""
        law = Uniform(clients_per_round=self.clients_within(clients))
        return Setting(participation=law, local_steps=self.steps_within(steps))

    def per_client(self, values: FloatArray) -> FloatArray:
        """Numbers of the fleet's entries, one for each client."""
        return np.repeat(values, self.problem.fleet.count)


class Turning:
    """A training under way that remembers when it turned to another setting."""

    hopeless: None = None

    def __init__(self, setting: Setting, why: str) -> None:
        self._setting = setting
        self.decisions = [Decision.of(setting, 1, why=why)]

    def ask(self) -> Setting:
        """How to train the next round."""
        return self._setting

    def turn_to(self, setting: Setting, round_: int, why: str) -> None:
        """Train so from this round on; a decision, where law, K or E are other ones."""
        if _told(setting) != _told(self._setting):
            self.decisions.append(Decision.of(setting, round_, why=why))
        self._setting = setting


def _told(setting: Setting) -> tuple[str, int | None, int]:
    return setting.participation.law, setting.clients_per_round, setting.local_steps


def identity_of(name: str, problem: Problem, *numbers: object) -> str:
    """A name and a digest of everything that a course is made from."""
    digest = hashlib.sha256()
    for quantity in (*QUANTITIES, "samples", "count"):
        digest.update(np.ascontiguousarray(getattr(problem.fleet, quantity)).tobytes())
    rest = (problem.objective, problem.limits, problem.target_loss, problem.learning_rate, numbers)
    digest.update(repr(rest).encode())
    return f"{name}/{digest.hexdigest()[:16]}"
