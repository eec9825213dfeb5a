"""Plans for uniform sampling: the certified optimum, the paper's method, the least regret."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedplan.convergence.bound import Bound, drift
from fedplan.convergence.pilots import Piloted
from fedplan.core.constraints import MAX_STEPS, TOTALS, Constraints
from fedplan.core.objective import Objective, costs_nothing
from fedplan.core.plan import METHODS, Alternative, Certificate, Method, Plan
from fedplan.core.prediction import Prediction
from fedplan.core.problem import Problem
from fedplan.participation.rankings import remembering
from fedplan.participation.uniform import Uniform
from fedplan.planning.exact import Optimum, minimise
from fedplan.planning.explain import explain_infeasible, explain_plan, hold_words
from fedplan.planning.paper import solve_paper
from fedplan.planning.predict import predict
from fedplan.planning.robust import RobustOptimum, least_totals, minimise_regret
from fedplan.planning.steps import best_integer_steps, steps_range

# "One epoch" for a device with 600 samples and batches of 64, the usual share of MNIST.
EPOCH_STEPS = 10


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
    if not 0 < regret_quantile <= 1:
        problems.append(
            f"`0 < regret_quantile <= 1` must hold, but got regret_quantile={regret_quantile}."
        )
    return problems


class UniformCase:
    """One planning problem and the ways to answer it by uniform sampling."""

    def __init__(
        self,
        problem: Problem,
        bound: Bound,
        constraints: Constraints,
        target_gap: float,
        piloted: Piloted | None,
    ) -> None:
        fleet, objective = problem.fleet, problem.objective
        # Every question of a plan ranks the same devices.
        self.fleet = fleet if fleet.memory is not None else remembering(fleet)
        self.problem, self.bound, self.constraints = problem, bound, constraints
        self.objective, self.target_gap = objective, target_gap
        self.given, self.piloted = problem.limits, piloted  # other constraints are the pilots'
        # Where every setting costs nothing the quickest is the useful one.
        self.costs_nothing = costs_nothing(fleet, objective)
        self.searched = Objective.weighted(0.0) if self.costs_nothing else objective

    def price(self, setting: tuple[int, int]) -> Prediction:
        """What training with this (K, E) is expected to take."""
        return predict(self.fleet, self.bound, self.objective, *setting, target_gap=self.target_gap)

    def solve(self, constraints: Constraints, objective: Objective | None = None) -> Optimum | None:
        """The certified optimum within these constraints."""
        return minimise(
            self.fleet,
            self.bound,
            objective or self.searched,
            constraints,
            target_gap=self.target_gap,
        )

    def exact_plan(self) -> Plan:
        """The plan of least expected cost, with its certificate."""
        optimum = self.solve(self.constraints)
        if optimum is None:
            return self._infeasible("exact", self._best_attainable())
        prediction = self.price(optimum.setting)
        # Priced anew the same setting may differ in the last digit.
        lower_bound = min(optimum.lower_bound, prediction.cost)
        gap = (optimum.cost - optimum.lower_bound) / (optimum.cost or 1.0)
        certificate = Certificate(objective="cost", lower_bound=lower_bound, gap=gap)
        return self._plan("exact", prediction, certificate, binding=self._binding(optimum))

    def paper_setting(self) -> tuple[int, int]:
        """The paper's own (K, E)."""
        return solve_paper(
            self.fleet,
            self.bound,
            self.searched,
            clients_range=self.constraints.clients_range(len(self.fleet)),
            steps_range=steps_range(self.constraints, self.bound),
        )

    def paper_plan(self) -> Plan:
        """The plan of the paper's Algorithm 2, by its own model."""
        prediction = predict(
            self.fleet,
            self.bound.as_in_paper,
            self.objective,
            *self.paper_setting(),
            target_gap=self.target_gap,
            exact_stragglers=False,
        )
        return self._plan(
            "paper", prediction, Certificate(objective="p3", lower_bound=None, gap=None)
        )

    def robust_plan(self, plausible: Sequence[Bound], quantile: float) -> Plan:
        """The plan of least regret over the plausible bounds."""

        def choose(constraints: Constraints) -> RobustOptimum | None:
            return minimise_regret(
                self.fleet,
                plausible,
                self.searched,
                constraints,
                target_gap=self.target_gap,
                quantile=quantile,
            )

        found = choose(self.constraints)
        if found is None:
            least = least_totals(
                self.fleet,
                plausible,
                self.constraints,
                target_gap=self.target_gap,
                quantile=quantile,
            )
            return self._infeasible(
                "robust",
                {
                    name: predict(
                        self.fleet, bound, self.objective, k, e, target_gap=self.target_gap
                    )
                    for name, (bound, k, e) in least.items()
                },
            )
        prediction = self.price(found.setting)
        certificate = Certificate(
            objective="regret",
            lower_bound=found.lower_bound,
            gap=found.regret - found.lower_bound,
        )
        held = tuple(
            name
            for name, relaxed in self.constraints.relaxations()
            if name in TOTALS and (freer := choose(relaxed)) and freer.setting != found.setting
        )
        binding = self._edges(prediction) + held
        return self._plan("robust", prediction, certificate, binding=binding, robust=found)

    def _plan(
        self,
        method: Method,
        prediction: Prediction,
        certificate: Certificate,
        *,
        binding: tuple[str, ...] = (),
        robust: RobustOptimum | None = None,
    ) -> Plan:
        alternatives = self._alternatives(method, prediction.pair)
        regret = None if robust is None else robust.regret
        return Plan(
            status="optimal",
            method=method,
            unit=self.objective.unit,
            prediction=prediction,
            certificate=certificate,
            alternatives=alternatives,
            binding=binding,
            regret=regret,
            best_attainable={},
            law=Uniform(clients_per_round=prediction.pair[0]),
            message=explain_plan(
                method,
                prediction,
                certificate.gap,
                len(self.fleet),
                self._holds(binding),
                robust,
                alternatives,
                self.costs_nothing,
                self.piloted,
            ),
        )

    def _holds(self, binding: tuple[str, ...]) -> list[str]:
        """What holds the plan, in words: limits that were given, or the reach of the pilots."""
        return [hold_words(name, given=getattr(self.given, name) is not None) for name in binding]

    def _edges(self, prediction: Prediction) -> tuple[str, ...]:
        """The given ends of the ranges of K and E that this setting sits on."""
        limits, (k, e) = self.constraints, prediction.pair
        ends = {
            "min_clients_per_round": (k, limits.min_clients_per_round, 1),
            "max_clients_per_round": (k, limits.max_clients_per_round, len(self.fleet)),
            "min_local_steps": (e, limits.min_local_steps, 1),
            "max_local_steps": (e, limits.max_local_steps, None),
        }
        return tuple(n for n, (at, end, natural) in ends.items() if at == end and end != natural)

    def _binding(self, optimum: Optimum) -> tuple[str, ...]:
        """The constraints whose removal would make the plan cheaper."""
        if self.constraints == Constraints():
            return ()
        endless = self.bound.fewest_rounds_steps() > MAX_STEPS
        if not endless and not self._cheaper(Constraints(), optimum):
            return ()
        return tuple(
            name
            for name, relaxed in self.constraints.relaxations()
            # Without any limit on E such a bound has no optimum at all.
            if (endless and relaxed.max_local_steps is None) or self._cheaper(relaxed, optimum)
        )

    def _cheaper(self, relaxed: Constraints, optimum: Optimum) -> bool:
        freer = self.solve(relaxed)
        return freer is not None and freer.cost < optimum.cost * (1 - 1e-9)

    def _alternatives(self, method: Method, chosen: tuple[int, int]) -> tuple[Alternative, ...]:
        n = len(self.fleet)
        free = Constraints(
            max_local_steps=None
            if self.bound.fewest_rounds_steps() <= MAX_STEPS
            else self.constraints.max_local_steps
        )
        settings = {
            "all clients, one step": (n, 1),
            "a tenth of the clients, one epoch (10 steps)": (max(1, round(n / 10)), EPOCH_STEPS),
            "all clients, fewest rounds": self._fewest_rounds(free),
        }
        if method != "exact" and (optimum := self.solve(self.constraints)):
            settings = {
                "exact optimum": optimum.setting,
                **settings,
            }
        # The paper's own choice; where it is the plan, what it costs once stragglers count.
        settings = {"the paper's method": self.paper_setting(), **settings}
        planned = self.price(chosen).cost
        priced = {name: self.price(setting) for name, setting in settings.items()}
        return tuple(
            Alternative(
                name=name,
                prediction=prediction,
                cost_ratio=prediction.cost / planned if planned else 1.0,
                feasible=self._feasible(prediction),
            )
            for name, prediction in priced.items()
        )

    def _feasible(self, prediction: Prediction) -> bool:
        limits = self.constraints
        low_k, high_k = limits.clients_range(len(self.fleet))
        in_range = low_k <= prediction.pair[0] <= high_k and (
            (limits.min_local_steps or 1)
            <= prediction.local_steps
            <= (limits.max_local_steps or math.inf)
        )
        return in_range and bool(
            limits.met(prediction.time_s, prediction.energy_j, prediction.expected_rounds)
        )

    def _infeasible(self, method: Method, attainable: dict[str, Prediction]) -> Plan:
        return Plan(
            status="infeasible",
            method=method,
            unit=self.objective.unit,
            prediction=None,
            certificate=None,
            alternatives=(),
            binding=tuple(attainable),
            regret=None,
            best_attainable=attainable,
            message=explain_infeasible(method, self.constraints, attainable),
        )

    def _fewest_rounds(self, limits: Constraints) -> tuple[int, int]:
        """The (K, E) that needs the fewest rounds within these ranges: the most clients, and E."""
        most = limits.clients_range(len(self.fleet))[1]
        spread = drift(self.bound, most, len(self.fleet))
        ends = steps_range(limits, self.bound)
        return most, int(best_integer_steps(0.0, 1.0, self.bound.a0, spread, *ends))

    def _best_attainable(self) -> dict[str, Prediction]:
        """The least of each limited total, whatever the other limits say."""
        limits, ranges = self.constraints, self.constraints.ranges_only()
        least = {}
        for name, objective in (
            ("deadline_s", Objective.weighted(0.0)),
            ("energy_budget_j", Objective.weighted(1.0)),
        ):
            if getattr(limits, name) is not None:
                optimum = self.solve(ranges, objective)
                if optimum is not None:
                    least[name] = self.price(optimum.setting)
        if limits.max_rounds is not None:
            least["max_rounds"] = self.price(self._fewest_rounds(limits))
        return least
