"""Planning: from a problem and what is known of convergence to a plan."""

from __future__ import annotations

from collections.abc import Sequence

from fedplan.convergence.bound import Bound, target_gap_problems
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import RANGE, Saturation
from fedplan.core.plan import Method, Plan
from fedplan.core.problem import Problem
from fedplan.errors import InputError
from fedplan.participation import LAWS
from fedplan.planning.plans import Case
from fedplan.planning.sampling import SamplingCase, method_problems


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
        stands for its bound, its plausible bounds, and no (K, E) out of its reach; or how rounds
        saturate with local steps. Without any, the plan is for a usual range of saturation.
    participation : the law; turns where no bound is known, uniform sampling where one is.
    method, plausible : of uniform sampling. With bounds that could be true the default method is
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
    if problems:
        raise InputError(problems)
    if law != "uniform" or not isinstance(truth, Bound):
        return Case(problem, truth, law, target_gap).plan()
    piloted = known.piloted if isinstance(known, Estimate) else None
    asked = SamplingCase(problem, truth, law, target_gap, limits=limits, piloted=piloted)
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
