"""Question: what a page asks: a problem, what is known of convergence, and how to plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Literal

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, estimate_bound
from fedplan.convergence.pilots import DESCENT, Pilot
from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Prices
from fedplan.core.plan import Method
from fedplan.core.problem import Problem
from fedplan.errors import InputError
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet

Knowledge = Bound | Estimate | Saturation
EXAMPLE = "the built-in example"
RELATIVE = "b0 = 1 and a target gap of 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """A fleet, and how to have it again.

    file : what a command reads it from; None of the built-in example.
    python : the words that make it.
    number : tells it from every other, also in another process.
    """

    name: str
    fleet: Fleet
    file: str | None
    python: str
    summary: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    number: int = field(default_factory=count().__next__)

    @classmethod
    def of_example(cls) -> Devices:
        """The built-in fleet of 100 devices."""
        return cls(name=EXAMPLE, fleet=example_fleet(), file=None, python="example_fleet()")

    @classmethod
    def of_file(cls, name: str, fleet: Fleet) -> Devices:
        """Those of a fleet.csv of this name."""
        return cls(name=name, fleet=fleet, file=name, python=f"read_fleet({name!r})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """What is known of convergence.

    name : as the page shows it; of pilots the name of their file.
    known : a bound, for the target gap; pilots to fit one to; or, where nothing was measured, what
        is assumed.
    relative_to : what rounds are relative to, where they are not absolute.
    """

    name: str
    known: Bound | Saturation | tuple[Pilot, ...]
    target_gap: float = 1.0
    relative_to: str | None = None

    @classmethod
    def of_example(cls) -> Convergence:
        """What is known of the built-in fleet."""
        return cls(name=EXAMPLE, known=EXAMPLE_BOUND, relative_to=RELATIVE)

    @classmethod
    def of_pilots(cls, name: str, pilots: tuple[Pilot, ...]) -> Convergence:
        """What the pilots of a file of this name tell."""
        return cls(name=name, known=pilots, relative_to=DESCENT)

    @classmethod
    def unmeasured(
        cls, low: float = RANGE[0], high: float = RANGE[1], rounds: float = 2 * ROUNDS
    ) -> Convergence:
        """A range of the saturation, and about how many rounds all clients need.

        >>> Convergence.unmeasured(10.0, 1000.0).known.saturation
        100.0
        """
        # With as many steps as the saturation has, all clients need twice the fewest rounds.
        known = Saturation.within(low, high, rounds=rounds / 2)
        return cls(name="nothing measured", known=known)

    @property
    def is_measured(self) -> bool:
        """Whether there is a bound or pilots."""
        return not isinstance(self.known, Saturation)

    @property
    def num_pilots(self) -> int:
        """How many pilots a bound is to be fitted to."""
        return len(self.known) if isinstance(self.known, tuple) else 0

    def fitted(self, num_clients: int, method: Method | None = None) -> Knowledge:
        """What to plan with for so many clients; InputError where pilots settle no bound."""
        if not isinstance(self.known, tuple):
            return self.known
        # The paper's method is the whole of Algorithm 2, its averaging over pairs included.
        estimate = _estimated(self.known, num_clients, "pairwise" if method == "paper" else "joint")
        if not estimate.success:
            raise InputError(f"there is no bound to plan with. {estimate.message}")
        return estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to plan for, and what else the page needs to know of it.

    knowledge : what rounds are predicted from.
    prices : those that the problem's objective was made of; None of an energy weight.
    method : of uniform sampling with a bound; the rest have one way to be planned.
    current : K and E of the user's own setting.
    reference : what a bound of one's own is moved away from.
    """

    devices: Devices
    convergence: Convergence
    problem: Problem
    knowledge: Knowledge
    participation: str
    prices: Prices | None
    method: Method | None
    current: tuple[int, int] | None
    reference: Bound | Estimate

    @property
    def fleet(self) -> Fleet:
        """The devices that are planned for."""
        return self.problem.fleet


@lru_cache(maxsize=64)  # a slider seldom moves what pilots say
def _estimated(
    pilots: tuple[Pilot, ...], num_clients: int, how: Literal["pairwise", "joint"]
) -> Estimate:
    return estimate_bound(pilots, num_clients, method=how)
