"""Plans for any law: the cheapest setting, the reason, and the alternatives.

`planner.py` adds what only uniform sampling with a bound has: a proof, the paper's method, and
the least regret over what pilots leave open.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.pilots import Piloted
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.objective import Objective, costs_nothing
from fedplan.core.plan import Alternative, Certificate, Method, Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction, Setting
from fedplan.errors import InputError
from fedplan.participation import Turns, Uniform, uniform
from fedplan.participation.rankings import with_cache
from fedplan.planning.by_law import AnyChoice, least_by_law, plan_by_law
from fedplan.planning.explain import explain_infeasible, explain_plan
from fedplan.planning.predict import Convergence, price_setting
from fedplan.planning.turns import check_group_sizes, group_sizes_fit, thinned

BEST_UNIFORM = "uniform sampling, best K and E"
TURNS = "groups that take turns"
A_TENTH = "a tenth of the clients, one epoch (10 steps)"
# "One epoch" for a device with 600 samples and batches of 64, the usual share of MNIST.
_EPOCH_STEPS = 10
_ALIKE = 1e-9  # relative; the search and the price of what it found add up in different orders

Known = TypeVar("Known", bound=Convergence)


def beside_turns(
    plan: Plan, problem: Problem, known: Bound | Estimate, *, target_gap: float = 1.0
) -> Plan:
    """A plan for uniform sampling with what turns would cost among its alternatives.

    Not part of the plan itself: finding groups takes ten times as long.
    """
    bound, _, _ = what_is_known(known.at_gap(target_gap), problem.limits)
    if plan.prediction is None or not plan.prediction.cost or not group_sizes_fit(problem):
        return plan
    turns = plan_by_law(problem, bound, Turns.law)
    if turns is None:
        return plan
    ratio = turns.prediction.cost / plan.prediction.cost
    other = Alternative(name=TURNS, prediction=turns.prediction, cost_ratio=ratio, feasible=True)
    return replace(plan, alternatives=(other, *plan.alternatives))


class Case(Generic[Known]):
    """One problem, planned by one law."""

    method: ClassVar[Method] = "expected"
    # Costs nearer than this may differ by chance where groups or a lattice were searched.
    precision: ClassVar[float] = 1e-3

    def __init__(
        self,
        problem: Problem,
        convergence: Known,
        law: str,
        *,
        limits: Constraints | None = None,
        piloted: Piloted | None = None,
    ) -> None:
        self.given = problem.limits  # `limits` may have others, of the pilots
        fleet = with_cache(problem.fleet)  # every question of a plan ranks the same devices
        self.limits = limits or problem.limits
        self.problem = replace(problem, fleet=fleet, limits=self.limits)
        self.convergence, self.law = convergence, law
        self.piloted, self.num_clients = piloted, len(fleet)
        # Where every setting costs nothing the quickest is the useful one.
        self.costs_nothing = costs_nothing(fleet, problem.objective)
        self.searched = self.problem
        if self.costs_nothing:
            self.searched = replace(self.problem, objective=Objective.weighted(0.0))
        self.rough = self._roughly(self.searched)

    def _roughly(self, problem: Problem) -> Problem:
        """The problem where a rough answer will do."""
        return thinned(problem)

    def plan(self) -> Plan:
        """The plan of least expected cost, with a certificate where there is one."""
        if self.law == Turns.law:
            check_group_sizes(self.problem)
        chosen = self.best(self.searched)
        if chosen is None:
            return self._infeasible(self.method, self._least_totals())
        certificate = None
        if (lower_bound := chosen.lower_bound) is not None:
            lower_bound = 0.0 if self.costs_nothing else lower_bound
            above = chosen.prediction.cost - lower_bound if lower_bound else 0.0
            gap = above / lower_bound if above > _ALIKE * lower_bound else 0.0
            certificate = Certificate(objective="cost", lower_bound=lower_bound, gap=gap)
        return self._plan(
            self.method,
            self._billed(chosen.prediction),
            law=chosen.law,
            groups=chosen.groups,
            certificate=certificate,
            regret=self._regret(chosen.prediction),
            binding=self._binding(chosen.prediction),
        )

    def best(
        self, problem: Problem, convergence: Convergence | None = None, law: str | None = None
    ) -> AnyChoice | None:
        """The cheapest setting of the law within the limits; None if none is."""
        return plan_by_law(problem, convergence or self.convergence, law or self.law)

    def price(self, setting: Setting) -> Prediction:
        """What training with a setting is expected to take."""
        return self._billed(price_setting(self.rough, self.convergence, setting))

    def _billed(self, prediction: Prediction) -> Prediction:
        return replace(prediction, cost=0.0) if self.costs_nothing else prediction

    def _plan(
        self,
        method: Method,
        prediction: Prediction,
        *,
        reference: Prediction | None = None,
        quantile: float = 1.0,
        **found: Any,
    ) -> Plan:
        """The plan; others are compared with `reference`, the same setting priced as they are."""
        plan = Plan(
            status="optimal",
            method=method,
            unit=self.problem.objective.unit,
            prediction=prediction,
            alternatives=self._alternatives(method, reference or prediction),
            **found,
        )
        message = explain_plan(
            plan,
            self.convergence,
            self.num_clients,
            given=self.given,
            clients_range=self.limits.clients_range(self.num_clients),
            costs_nothing=self.costs_nothing,
            piloted=self.piloted,
            quantile=quantile,
        )
        return replace(plan, message=message)

    def _infeasible(self, method: Method, attainable: dict[str, Prediction]) -> Plan:
        return Plan(
            status="infeasible",
            method=method,
            unit=self.problem.objective.unit,
            binding=tuple(attainable),
            best_attainable=attainable,
            message=explain_infeasible(method, self.limits, attainable),
        )

    def _least_totals(self) -> dict[str, Prediction]:
        """The least of each limited total, whatever the other limits say."""
        return least_by_law(self.problem, self.convergence, self.law)

    def _regret(self, planned: Prediction) -> float | None:
        """What the plan can cost above the best, at either end of the saturation's interval."""
        known, steps = self.convergence, planned.local_steps
        if not isinstance(known, Saturation) or known.interval is None:
            return None
        worst = 0.0
        for end in known.interval:
            truth = replace(known, saturation=end, interval=None)
            best = self.best(self.rough, truth)
            if best is not None and best.prediction.cost:
                # Only the number of rounds changes, not the cost of each.
                more = float(truth.full_rounds(steps) / known.full_rounds(steps))
                worst = max(worst, planned.cost * more / best.prediction.cost - 1.0)
        return worst

    def _binding(self, planned: Prediction) -> tuple[str, ...]:
        """The constraints whose removal would make the plan cheaper."""
        limits = self.limits
        if limits == Constraints() or not self._is_cheaper(Constraints(), planned):
            return ()
        return tuple(
            name for name, relaxed in limits.relaxations() if self._is_cheaper(relaxed, planned)
        )

    def _is_cheaper(self, relaxed: Constraints, planned: Prediction) -> bool:
        problem = replace(self.rough, limits=relaxed)
        if self.law == Turns.law and not group_sizes_fit(problem):
            return False
        try:
            freer = self.best(problem)
        except InputError:  # without a limit on E more steps help without end
            return True
        return freer is not None and freer.prediction.cost < planned.cost * (1 - self.precision)

    def _alternatives(self, method: Method, planned: Prediction) -> tuple[Alternative, ...]:
        return tuple(
            Alternative(
                name=name,
                prediction=other,
                cost_ratio=other.cost / planned.cost if planned.cost else 1.0,
                feasible=self._is_allowed(other),
            )
            for name, other in self._others(method, planned).items()
        )

    def _others(self, method: Method, planned: Prediction) -> Mapping[str, Prediction]:  # noqa: ARG002
        """Turns and uniform sampling at their best, and the usual guesses."""
        others = {}
        for name, law in ((TURNS, Turns.law), (BEST_UNIFORM, Uniform.law)):
            if law == self.law or (law == Turns.law and not group_sizes_fit(self.rough)):
                continue
            if (best := self.best(self.rough, law=law)) is not None:
                others[name] = self._billed(best.prediction)
        everyone = uniform(self.num_clients, planned.local_steps)
        others["all clients, the same local steps"] = self.price(everyone)
        return others | {A_TENTH: self.price(self._a_tenth())}

    def _a_tenth(self) -> Setting:
        return uniform(max(1, round(self.num_clients / 10)), _EPOCH_STEPS)

    def _is_allowed(self, prediction: Prediction) -> bool:
        """Whether training that takes this respects the constraints."""
        limits = self.limits
        low, high = limits.clients_range(self.num_clients)
        clients = prediction.clients_per_round or low
        steps_allowed = limits.min_local_steps or 1, limits.max_local_steps or math.inf
        in_ranges = steps_allowed[0] <= prediction.local_steps <= steps_allowed[1]
        return in_ranges and low <= clients <= high and limits.are_met_by(prediction)
