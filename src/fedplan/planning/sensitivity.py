"""Sensitivity: the cost of being wrong about the bound, the devices or the weight."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.objective import Objective
from fedplan.core.plan import Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Setting
from fedplan.notebook import Rows
from fedplan.planning.by_law import plan_by_law
from fedplan.planning.predict import Convergence, price_setting

_MOVED = ((0.5, "half"), (2.0, "twice"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """If the truth were otherwise: the best setting then, and the plan's regret relative to it.

    clients_per_round is None if groups take turns.
    """

    name: str
    clients_per_round: int | None
    local_steps: int
    regret: float


def sensitivity(
    problem: Problem,
    convergence: Bound | Estimate | Saturation,
    plan: Plan,
    *,
    plausible: Sequence[Bound] = (),
) -> Rows[WhatIf]:
    """How much the plan would lose if an assumption were wrong.

    Pass what `make_plan` was given. The bound is moved to every plausible one, or where there is
    none each coefficient is halved and doubled, as is the saturation; communication time is halved
    and doubled relative to step time; the energy weight, if one was given, is moved by 0.1
    either way. Ranges of K and E remain, limits on totals do not: regret is about the choice, not
    about a limit that the truth would break.

    >>> from fedplan import Fleet, make_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> problem = Problem(fleet=fleet, objective=Objective.weighted(0.2))
    >>> bound = Bound(a0=1000.0, b0=1.0)
    >>> plan = make_plan(problem, bound)
    >>> all(case.regret >= 0 for case in sensitivity(problem, bound, plan))
    True
    """
    known, estimated, limits = what_is_known(convergence, problem.limits)
    problem = replace(problem, limits=limits.ranges_only())
    if not price_setting(problem, known, plan.setting).cost:
        return Rows((), WhatIf)  # nothing costs anything, so nothing can be lost
    cases = [(name, problem, truth) for name, truth in _otherwise(known, plausible or estimated)]
    for factor, word in ((0.5, "fast"), (2.0, "slow")):
        fleet = replace(problem.fleet, comm_time_s=problem.fleet.comm_time_s * factor)
        cases.append((f"communication twice as {word}", replace(problem, fleet=fleet), known))
    if (weight := problem.objective.energy_weight) is not None:
        for other in sorted({max(0.0, weight - 0.1), min(1.0, weight + 0.1)} - {weight}):
            weighted = replace(problem, objective=Objective.weighted(other))
            cases.append((f"energy weight {other:.2g}", weighted, known))
    return Rows(
        (_what_if(name, asked, truth, plan.setting) for name, asked, truth in cases), WhatIf
    )


def _what_if(name: str, problem: Problem, truth: Convergence, planned: Setting) -> WhatIf:
    paid = price_setting(problem, truth, planned)
    found = plan_by_law(problem, truth, planned.participation.law)
    best = paid if found is None else found.prediction
    return WhatIf(
        name=name,
        clients_per_round=best.clients_per_round,
        local_steps=best.local_steps,
        regret=max(0.0, paid.cost / best.cost - 1.0) if best.cost else 0.0,
    )


def _otherwise(known: Convergence, plausible: Sequence[Bound]) -> list[tuple[str, Convergence]]:
    """What may be true instead, by name."""
    if isinstance(known, Bound):
        return [*other_bounds(known, plausible)]
    return [
        (f"saturation {word} as large", replace(known, saturation=known.saturation * factor))
        for factor, word in _MOVED
    ]


def other_bounds(bound: Bound, plausible: Sequence[Bound]) -> list[tuple[str, Bound]]:
    """What the bound may be instead: the plausible ones, or each coefficient halved and doubled.

    >>> [name for name, _ in other_bounds(Bound(a0=100.0, b0=1.0, c0=0.0), ())][:2]
    ['a0 half as large', 'a0 twice as large']
    """
    if plausible:
        named = {f"a0={b.a0:.4g}, b0={b.b0:.4g}, c0={b.c0:.4g}": b for b in plausible if b != bound}
        return list(named.items())
    return [
        (f"{name} {word} as large", replace(bound, **{name: value * factor}))
        for name in ("a0", "b0", "c0")
        if (value := getattr(bound, name))
        for factor, word in _MOVED
    ]
