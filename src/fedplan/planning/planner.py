"""Planner: from a problem and a model of convergence to a plan.

Uniform sampling with a bound has plans of its own: certified, the paper's, and of least regret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from fedplan.convergence.bound import Bound, drift, target_gap_problems
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import RANGE, Saturation
from fedplan.core.constraints import MAX_STEPS, TOTALS, Constraints
from fedplan.core.objective import Objective
from fedplan.core.plan import METHODS, Certificate, Method, Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.errors import refuse, unmet
from fedplan.participation import LAWS, uniform
from fedplan.planning.exact import Optimum
from fedplan.planning.paper import solve_paper
from fedplan.planning.plans import A_TENTH, Case
from fedplan.planning.predict import predict
from fedplan.planning.robust import least_totals, minimise_regret
from fedplan.planning.steps import best_integer_steps, steps_range


def make_plan(
    problem: Problem,
    convergence: Bound | Estimate | Saturation | None = None,
    *,
    participation: str | None = None,
    target_gap: float = 1.0,
    method: Method | None = None,
    plausible: Sequence[Bound] = (),
    regret_quantile: float = 1.0,
) -> Plan:
    """Choose who trains when and the local steps that reach the target at the lowest cost.

    convergence : a bound, with `target_gap` how close to the best loss to get; an estimate, which
        brings its bound, its plausible bounds and the limits of its reach in (K, E); or how rounds
        saturate with local steps. Without any, the plan suits the default range of saturation.
    participation : the law; by default turns without a bound, uniform sampling with one.
    method, plausible : for uniform sampling. With plausible bounds the default method is
        `robust`, which predicts with `convergence` but chooses by regret over all of them; without,
        it is `exact`.

    >>> from fedplan import Fleet, Objective
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> problem = Problem(fleet=fleet, objective=Objective.weighted(0.2))
    >>> plan = make_plan(problem, Bound(a0=1000.0, b0=1.0, c0=10.0))
    >>> plan.setting.pair, plan.certificate.gap
    ((1, 6), 0.0)
    >>> make_plan(problem).setting.participation.groups
    ((0,), (1,), (2,))
    """
    known = Saturation.within(*RANGE) if convergence is None else convergence
    law = participation or ("turns" if isinstance(known, Saturation) else "uniform")
    truth, estimated, limits = what_is_known(known, problem.limits)
    plausible = plausible or estimated
    problems = law_problems(law, method, has_bound=isinstance(truth, Bound))
    problems += target_gap_problems(target_gap)
    if law == "uniform" and isinstance(truth, Bound):
        problems += method_problems(
            method, limits, robust_possible=bool(plausible), regret_quantile=regret_quantile
        )
    refuse(problems)
    truth, plausible = truth.at_gap(target_gap), [each.at_gap(target_gap) for each in plausible]
    if law != "uniform" or not isinstance(truth, Bound):
        return Case(problem, truth, law).plan()
    piloted = known.piloted if isinstance(known, Estimate) else None
    asked = SamplingCase(problem, truth, law, limits=limits, piloted=piloted)
    match method or ("robust" if plausible else "exact"):
        case "paper":
            return asked.paper_plan()
        case "robust":
            return asked.robust_plan(plausible, regret_quantile)
    return asked.plan()


def law_problems(law: str, method: str | None, *, has_bound: bool) -> list[str]:
    """What keeps a law from being planned for as asked."""
    problems = []
    if law not in LAWS:
        problems.append(f"participation must be one of {', '.join(LAWS)}, but got {law!r}.")
    if method is not None and (law != "uniform" or not has_bound):
        problems.append(
            f"method {method!r} is for uniform sampling and a bound. Leave it out, or plan with "
            "participation 'uniform' and a ratio, a bound or pilots."
        )
    return problems


def method_problems(
    method: Method | None,
    constraints: Constraints,
    *,
    robust_possible: bool,
    regret_quantile: float,
) -> list[str]:
    """What keeps a method from being used as asked."""
    problems = []
    if method not in (None, *METHODS):
        problems.append(f"method must be one of {', '.join(METHODS)}, but got {method!r}.")
    if method == "robust" and not robust_possible:
        problems.append(
            "method 'robust' needs plausible bounds to be robust over. Plan from pilots, or pass "
            "plausible=[...]."
        )
    if method == "paper" and constraints.limits_totals:
        problems.append(
            "method 'paper' knows only ranges of clients_per_round and local_steps. Use 'exact' "
            "with a deadline, an energy budget or max_rounds."
        )
    rules = {"0 < regret_quantile <= 1": 0 < regret_quantile <= 1}
    return problems + unmet(rules, regret_quantile=regret_quantile)


class SamplingCase(Case[Bound]):
    """One question to uniform sampling, where a bound is known."""

    method: ClassVar[Method] = "exact"
    precision: ClassVar[float] = 1e-9

    def _roughly(self, problem: Problem) -> Problem:
        return problem  # certified, however many devices there are

    def paper_plan(self) -> Plan:
        """The plan of the paper's Algorithm 2, by its own model."""
        # Algorithm 2 is not limited to what was piloted: K = 1 is a plan of it.
        limits = replace(self.limits, min_clients_per_round=self.given.min_clients_per_round)
        setting = solve_paper(replace(self.searched, limits=limits), self.convergence)
        prediction = predict(
            self.problem.fleet,
            self.convergence.as_in_paper,
            self.problem.objective,
            *setting,
            exact_stragglers=False,
        )
        certificate = Certificate(objective="p3", lower_bound=None, gap=None)
        chosen = uniform(*setting)
        return self._plan(
            "paper",
            prediction,
            reference=self.price(chosen),
            law=chosen.participation,
            certificate=certificate,
        )

    def robust_plan(self, plausible: Sequence[Bound], quantile: float) -> Plan:
        """The plan of least regret over the plausible bounds."""

        def choose(limits: Constraints) -> Optimum | None:
            asked = replace(self.searched, limits=limits)
            return minimise_regret(asked, plausible, quantile=quantile)

        found = choose(self.limits)
        if found is None:
            least = least_totals(self.problem, plausible, quantile=quantile)
            return self._infeasible("robust", least)
        prediction = self.price(uniform(*found.setting))
        held = tuple(
            name
            for name, relaxed in self.limits.relaxations()
            if name in TOTALS and (freer := choose(relaxed)) and freer.setting != found.setting
        )
        certificate = Certificate(
            objective="regret", lower_bound=found.lower_bound, gap=found.value - found.lower_bound
        )
        return self._plan(
            "robust",
            prediction,
            law=uniform(*found.setting).participation,
            certificate=certificate,
            regret=found.value,
            binding=self._edges(prediction) + held,
            quantile=quantile,
        )

    def _edges(self, prediction: Prediction) -> tuple[str, ...]:
        """The given ends of the ranges of K and E at which this setting lies."""
        limits, (k, e) = self.limits, prediction.pair
        ends = {
            "min_clients_per_round": (k, limits.min_clients_per_round, 1),
            "max_clients_per_round": (k, limits.max_clients_per_round, self.num_clients),
            "min_local_steps": (e, limits.min_local_steps, 1),
            "max_local_steps": (e, limits.max_local_steps, None),
        }
        return tuple(n for n, (at, end, natural) in ends.items() if at == end and end != natural)

    def _others(self, method: Method, planned: Prediction) -> Mapping[str, Prediction]:  # noqa: ARG002
        """The paper's own choice, and the usual guesses, with exact stragglers."""
        settings = {"the paper's method": uniform(*solve_paper(self.searched, self.convergence))}
        if method != "exact" and (optimum := self.best(self.searched)):
            settings["exact optimum"] = uniform(*optimum.prediction.pair)
        endless = self.convergence.fewest_rounds_steps() > MAX_STEPS
        free = Constraints(max_local_steps=self.limits.max_local_steps if endless else None)
        settings |= {
            "all clients, one step": uniform(self.num_clients, 1),
            A_TENTH: self._a_tenth(),
            "all clients, fewest rounds": uniform(*self._fewest_rounds(free)),
        }
        return {name: self.price(setting) for name, setting in settings.items()}

    def _fewest_rounds(self, limits: Constraints) -> tuple[int, int]:
        """The (K, E) that needs the fewest rounds within these ranges: the most clients, and E."""
        most = limits.clients_range(self.num_clients)[1]
        spread = drift(self.convergence, most, self.num_clients)
        ends = steps_range(limits, self.convergence)
        return most, int(best_integer_steps(0.0, 1.0, self.convergence.a0, spread, *ends))

    def _least_totals(self) -> dict[str, Prediction]:
        least = {}
        ranges = replace(self.searched, limits=self.limits.ranges_only())
        for name, weight in (("deadline_s", 0.0), ("energy_budget_j", 1.0)):
            if getattr(self.limits, name) is not None:
                found = self.best(replace(ranges, objective=Objective.weighted(weight)))
                if found is not None:
                    least[name] = self.price(uniform(*found.prediction.pair))
        if self.limits.max_rounds is not None:
            least["max_rounds"] = self.price(uniform(*self._fewest_rounds(self.limits)))
        return least
