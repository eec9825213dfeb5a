"""Plans from a fleet and a bound, for tests of uniform sampling; light."""

from __future__ import annotations

from fedplan import Constraints, Objective, Problem
from fedplan import make_plan as plan_problem
from fedplan import sensitivity as sensitivity_of


def problem_of(fleet, energy_weight=None, prices=None, constraints=None):
    objective = prices.objective() if prices else Objective.weighted(energy_weight or 0.0)
    return Problem(fleet=fleet, objective=objective, limits=constraints or Constraints())


def make_plan(fleet, bound, *, energy_weight=None, prices=None, constraints=None, **options):
    return plan_problem(problem_of(fleet, energy_weight, prices, constraints), bound, **options)


def sensitivity(fleet, bound, plan, *, energy_weight=None, prices=None, constraints=None, **rest):
    problem = problem_of(fleet, energy_weight, prices, constraints)
    return sensitivity_of(problem, bound, plan, **rest)
