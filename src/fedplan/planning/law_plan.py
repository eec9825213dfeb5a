"""Plans by turns, and by any law where no bound is known, beside what uniform sampling costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.objective import Objective, costs_nothing
from fedplan.core.plan import Alternative, GroupCost, LazyLaw, Plan
from fedplan.core.prediction import Prediction
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation
from fedplan.participation import LAWS, Uniform, uniform
from fedplan.planning.by_law import least_by_law, plan_by_law, price_setting
from fedplan.planning.exact import minimise
from fedplan.planning.explain import explain_infeasible, explain_law_plan
from fedplan.planning.rounds import Convergence
from fedplan.planning.turns import (
    check_group_sizes,
    group_sizes_fit,
    least_of_turns,
    plan_turns,
    thinned,
)
from fedplan.planning.uniform_plan import EPOCH_STEPS

BEST_UNIFORM = "uniform sampling, best K and E"
TURNS = "groups that take turns"


def beside_turns(
    plan: Plan, problem: Problem, known: Bound | Estimate, *, target_gap: float = 1.0
) -> Plan:
    """A plan for uniform sampling with what turns would cost among its alternatives.

    Not part of the plan itself: finding groups takes ten times as long.
    """
    bound, _, _ = what_is_known(known, None)
    if plan.prediction is None or not plan.prediction.cost or not group_sizes_fit(problem):
        return plan
    turns = plan_turns(problem, bound, target_gap=target_gap)
    if turns is None:
        return plan
    ratio = turns.prediction.cost / plan.prediction.cost
    other = Alternative(name=TURNS, prediction=turns.prediction, cost_ratio=ratio, feasible=True)
    return replace(plan, alternatives=(other, *plan.alternatives))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    law: Participation | LazyLaw
    groups: tuple[GroupCost, ...]
    prediction: Prediction


def plan_of_law(
    problem: Problem, convergence: Convergence, law: str, *, target_gap: float = 1.0
) -> Plan:
    """The cheapest plan by a law, beside what uniform sampling would cost."""
    if law == "turns":
        check_group_sizes(problem)
    free = costs_nothing(problem.fleet, problem.objective)
    asked = replace(problem, objective=Objective.weighted(0.0)) if free else problem
    case = _Case(asked, convergence, law, target_gap)
    chosen = case.choose()
    if chosen is None:
        attainable = case.attainable()
        return Plan(
            status="infeasible",
            method="expected",
            unit=problem.objective.unit,
            prediction=None,
            certificate=None,
            alternatives=(),
            binding=tuple(attainable),
            regret=None,
            best_attainable=attainable,
            message=explain_infeasible("expected", problem.limits, attainable),
        )
    regret, alternatives = case.regret(chosen.prediction), case.alternatives(chosen.prediction)
    prediction = chosen.prediction
    return Plan(
        status="optimal",
        method="expected",
        unit=problem.objective.unit,
        prediction=replace(prediction, cost=0.0) if free else prediction,
        certificate=None,
        alternatives=alternatives,
        binding=case.binding(prediction),
        regret=regret,
        best_attainable={},
        message=explain_law_plan(
            law, prediction, chosen.groups, convergence, regret, alternatives, len(problem.fleet)
        ),
        law=chosen.law,
        groups=chosen.groups,
    )


class _Case:
    """One question to one law."""

    def __init__(
        self, problem: Problem, convergence: Convergence, law: str, target_gap: float
    ) -> None:
        self._problem, self._convergence = problem, convergence
        self._law, self._target_gap = law, target_gap

    def choose(
        self, problem: Problem | None = None, convergence: Convergence | None = None
    ) -> _Choice | None:
        """The cheapest setting of the law within the limits; None where none is."""
        asked, known = problem or self._problem, convergence or self._convergence
        if self._law == "turns":
            choice = plan_turns(asked, known, target_gap=self._target_gap)
            if choice is None:
                return None
            return _Choice(
                law=choice.grouping, groups=choice.grouping.rows, prediction=choice.prediction
            )
        best = plan_by_law(asked, known, LAWS[self._law], target_gap=self._target_gap)
        if best is None:
            return None
        return _Choice(law=best.setting.participation, groups=(), prediction=best.prediction)

    def attainable(self) -> dict[str, Prediction]:
        """The least of each limited total that the law can reach."""
        asked, known, gap = self._problem, self._convergence, self._target_gap
        if self._law == "turns":
            return least_of_turns(asked, known, target_gap=gap)
        return least_by_law(asked, known, LAWS[self._law], target_gap=gap)

    def regret(self, planned: Prediction) -> float | None:
        """What the plan can cost above the best, at either end of the saturation's interval."""
        known = self._convergence
        if not isinstance(known, Saturation) or known.interval is None:
            return None
        worst = 0.0
        for end in known.interval:
            truth = replace(known, saturation=end, interval=None)
            best = self.choose(thinned(self._problem), truth)
            if best is not None and best.prediction.cost:
                # A round costs what it does; that the rounds are others is all that changes.
                more = truth.full_rounds(planned.local_steps) / known.full_rounds(
                    planned.local_steps
                )
                worst = max(worst, planned.cost * float(more) / best.prediction.cost - 1.0)
        return worst

    def alternatives(self, planned: Prediction) -> tuple[Alternative, ...]:
        """Uniform sampling at its best, and the usual guesses, by the same knowledge."""
        problem, n = thinned(self._problem), len(self._problem.fleet)
        settings = {
            "all clients, the same local steps": uniform(n, planned.local_steps),
            "a tenth of the clients, one epoch (10 steps)": uniform(
                max(1, round(n / 10)), EPOCH_STEPS
            ),
        }
        priced = {
            name: price_setting(problem, self._convergence, one, target_gap=self._target_gap)
            for name, one in settings.items()
        }
        if self._law != "uniform" and (best := self._best_uniform(problem)) is not None:
            priced = {BEST_UNIFORM: best, **priced}
        if self._law != "turns" and group_sizes_fit(problem):
            turns = plan_turns(problem, self._convergence, target_gap=self._target_gap)
            if turns is not None:
                priced = {TURNS: turns.prediction, **priced}
        return tuple(
            Alternative(
                name=name,
                prediction=prediction,
                cost_ratio=prediction.cost / planned.cost if planned.cost else 1.0,
                feasible=self._problem.limits.are_met_by(prediction),
            )
            for name, prediction in priced.items()
        )

    def _best_uniform(self, problem: Problem) -> Prediction | None:
        known, gap = self._convergence, self._target_gap
        if isinstance(known, Bound):
            limits = problem.limits
            best = minimise(problem.fleet, known, problem.objective, limits, target_gap=gap)
            if best is None:
                return None
            return price_setting(problem, known, uniform(*best.setting), target_gap=gap)
        found = plan_by_law(problem, known, Uniform, target_gap=gap)
        return None if found is None else found.prediction

    def binding(self, planned: Prediction) -> tuple[str, ...]:
        """The limits whose removal would make the plan cheaper."""
        problem = thinned(self._problem)
        names = []
        for name, relaxed in problem.limits.relaxations():
            if self._law == "turns" and not group_sizes_fit(replace(problem, limits=relaxed)):
                continue
            freer = self.choose(replace(problem, limits=relaxed))
            # Nearer than this, two searches over groups may differ by chance.
            if freer is not None and freer.prediction.cost < planned.cost * (1 - 1e-3):
                names.append(name)
        return tuple(names)
