"""Question: what a command or a page asks: a problem, what is known, and how to plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, estimate_bound
from fedplan.convergence.pilots import DESCENT, Pilot
from fedplan.convergence.saturation import RANGE, ROUNDS, Saturation
from fedplan.core.constraints import TOTALS, Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.plan import Method, Plan
from fedplan.core.problem import Problem
from fedplan.errors import Collector, InputError
from fedplan.planning.example import EXAMPLE_BOUND, example_fleet
from fedplan.planning.planner import make_plan, method_problems
from fedplan.planning.sensitivity import WhatIf, sensitivity
from fedplan.planning.steps import steps_range
from fedplan.prices_and_limits import LIMITS, PRICES

Knowledge = Bound | Estimate | Saturation
EXAMPLE = "the built-in example"
RELATIVE = "b0 = 1 and a target gap of 1"
COEFFICIENTS = ("a0", "b0", "c0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """A fleet, and how to have it again.

    file : what a command reads it from; None for the built-in example.
    python : the expression that makes it.
    """

    name: str
    fleet: Fleet
    file: str | None
    python: str

    @classmethod
    def of_example(cls) -> Devices:
        """The built-in fleet of 100 devices."""
        return cls(name=EXAMPLE, fleet=example_fleet(), file=None, python="example_fleet()")

    @classmethod
    def of_file(cls, name: str, fleet: Fleet) -> Devices:
        """The devices of a fleet.csv of this name."""
        return cls(name=name, fleet=fleet, file=name, python=f"read_fleet({name!r})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """What is known of convergence.

    name : as the page shows it; for pilots the name of their file.
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
        """The bound of the built-in fleet."""
        return cls(name=EXAMPLE, known=EXAMPLE_BOUND, relative_to=RELATIVE)

    @classmethod
    def of_pilots(cls, name: str, pilots: tuple[Pilot, ...]) -> Convergence:
        """The pilots of a file of this name."""
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
        """What to plan with for so many clients; InputError if pilots settle no bound."""
        if not isinstance(self.known, tuple):
            return self.known
        # The paper's method is the whole of Algorithm 2, its averaging over pairs included.
        estimate = _estimated(self.known, num_clients, "pairwise" if method == "paper" else "joint")
        if not estimate.success:
            raise InputError(f"there is no bound to plan with. {estimate.message}")
        return estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to plan for, and what else a command or the page needs to know of it.

    knowledge : what rounds are predicted from.
    prices : those that the problem's objective was made of; None with an energy weight.
    method : for uniform sampling with a bound; the rest are planned in one way only.
    current : K and E of the user's own setting.
    reference : the bound that the user's own is compared with.
    """

    devices: Devices
    convergence: Convergence
    problem: Problem
    knowledge: Knowledge
    participation: str
    prices: Prices | None
    method: Method | None
    current: tuple[int, int] | None = None
    reference: Bound | Estimate = EXAMPLE_BOUND

    @property
    def fleet(self) -> Fleet:
        """The devices that are planned for."""
        return self.problem.fleet

    @property
    def of_what(self) -> str:
        """What is added to the name of a total that is not one to a target."""
        if self.convergence.relative_to is None:
            return ""
        return " (pilots' descent)" if self.convergence.num_pilots else " (relative)"

    def plan(self, *, regret_quantile: float = 1.0) -> Plan:
        """The plan."""
        return make_plan(
            self.problem,
            self.knowledge,
            participation=self.participation,
            target_gap=self.convergence.target_gap,
            method=self.method,
            regret_quantile=regret_quantile,
        )

    def what_ifs(self, plan: Plan) -> Sequence[WhatIf]:
        """What the plan would lose if something assumed were not so; it plans ten times over."""
        if not plan.success or set(TOTALS) & set(plan.binding):
            return ()  # the limit, not the choice, is what would cost
        return sensitivity(self.problem, self.knowledge, plan)


def make_question(
    values: Mapping[str, Any],
    collector: Collector,
    devices: Devices | None,
    convergence: Convergence | None,
    **more: Any,
) -> Question:
    """The question of these parts; a wrong one is None, and all problems are raised together.

    values : prices and limits by the names of their flags, `energy_weight` and `objective`,
        `participation`, `method` and `regret_quantile`; what is left out has its usual value.
    """
    size = None if devices is None else len(devices.fleet)
    limits = collector.attempt(partial(_limits, values, size))
    counts = collector.attempt(partial(_objective, values))
    is_measured = convergence is None or convergence.is_measured
    law = values.get("participation") or ("uniform" if is_measured else "turns")
    method: Method | None = None
    if has_method := law == "uniform" and is_measured:
        method = values.get("method")
        can_be_robust = convergence is None or convergence.num_pilots > 0
        collector.add(
            *method_problems(
                method,
                limits or Constraints(),
                robust_possible=can_be_robust,
                regret_quantile=values.get("regret_quantile", 1.0),
            )
        )
    knowledge = None
    if convergence is not None and (size is not None or not convergence.num_pilots):
        knowledge = collector.attempt(partial(convergence.fitted, size or 1, method))
    if isinstance(knowledge, Bound) and limits is not None:
        collector.attempt(partial(steps_range, limits, knowledge))
    collector.finish()
    if not (devices and limits and counts and convergence and knowledge):
        raise AssertionError("a missing part is always a noted problem")
    if has_method:
        method = method or ("robust" if isinstance(knowledge, Estimate) else "exact")
    prices, objective = counts
    return Question(
        devices=devices,
        convergence=convergence,
        problem=Problem(fleet=devices.fleet, objective=objective, limits=limits),
        knowledge=knowledge,
        participation=law,
        prices=prices,
        method=method,
        **more,
    )


def _limits(values: Mapping[str, Any], size: int | None) -> Constraints:
    limits = Constraints(**{name: values.get(name) for name in LIMITS})
    if size is not None:
        limits.clients_range(size)
    return limits


def _objective(values: Mapping[str, Any]) -> tuple[Prices | None, Objective]:
    if values.get("objective") != "prices":
        return None, Objective.weighted(values.get("energy_weight") or 0.0)
    prices = Prices(**{price.field: values.get(name) or 0.0 for name, price in PRICES.items()})
    return prices, prices.objective()


@lru_cache(maxsize=64)  # sliders seldom change what pilots say
def _estimated(
    pilots: tuple[Pilot, ...], num_clients: int, how: Literal["pairwise", "joint"]
) -> Estimate:
    return estimate_bound(pilots, num_clients, method=how)
