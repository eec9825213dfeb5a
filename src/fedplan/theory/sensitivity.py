"""Sensitivity: what it costs to be wrong about the bound, the devices or the weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedplan.errors import InputError
from fedplan.theory.constraints import Constraints
from fedplan.theory.convergence import Bound
from fedplan.theory.cost import Objective, predict
from fedplan.theory.fleet import Fleet
from fedplan.theory.plan import Plan, make_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """If the truth were otherwise: its own best (K, E), and the plan's regret against that."""

    name: str
    clients_per_round: int
    local_steps: int
    regret: float


def sensitivity(
    fleet: Fleet,
    bound: Bound,
    plan: Plan,
    *,
    energy_weight: float | None = None,
    constraints: Constraints | None = None,
    plausible: Sequence[Bound] = (),
) -> list[WhatIf]:
    """How much the planned (K, E) would lose if something assumed were not so.

    The bound is moved to every plausible one, or where none is given each coefficient is halved
    and doubled; communication time is halved and doubled against step time; the energy weight is
    moved by 0.1 either way (left alone where None, as with prices). Ranges of K and E stay, limits
    on totals do not: regret is about the choice, not about a limit that the truth would break.

    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0)
    >>> plan = make_plan(fleet, bound, energy_weight=0.2)
    >>> all(case.regret >= 0 for case in sensitivity(fleet, bound, plan, energy_weight=0.2))
    True
    """
    if not plan.success:
        raise InputError(f"an infeasible plan has no choice to be unsure of. {plan.message}")
    limits = constraints or Constraints()
    ranges = Constraints(
        min_clients_per_round=limits.min_clients_per_round,
        max_clients_per_round=limits.max_clients_per_round,
        min_local_steps=limits.min_local_steps,
        max_local_steps=limits.max_local_steps,
    )
    weight = energy_weight if energy_weight is not None else 0.0
    cases = [
        *((name, fleet, truth, weight) for name, truth in _other_bounds(bound, plausible)),
        ("communication half as slow", _slower(fleet, 0.5), bound, weight),
        ("communication twice as slow", _slower(fleet, 2.0), bound, weight),
    ]
    if energy_weight is not None:
        moved = sorted({max(0.0, energy_weight - 0.1), min(1.0, energy_weight + 0.1)})
        cases += [(f"energy weight {other:.2g}", fleet, bound, other) for other in moved]
    results = []
    for name, true_fleet, true_bound, true_weight in cases:
        best = make_plan(
            true_fleet, true_bound, energy_weight=true_weight, constraints=ranges, method="exact"
        )
        objective = Objective.weighted(true_weight)
        paid = predict(true_fleet, true_bound, objective, *plan.setting).cost
        assert best.prediction is not None  # ranges alone are never empty
        cheapest = best.prediction.cost
        results.append(
            WhatIf(
                name=name,
                clients_per_round=best.setting[0],
                local_steps=best.setting[1],
                regret=max(0.0, paid / cheapest - 1.0) if cheapest else 0.0,
            )
        )
    return results


def _other_bounds(bound: Bound, plausible: Sequence[Bound]) -> list[tuple[str, Bound]]:
    if plausible:
        return [
            (f"a0={b.a0:.3g}, b0={b.b0:.3g}, c0={b.c0:.3g}", b) for b in plausible if b != bound
        ]
    named = []
    for name in ("a0", "b0", "c0"):
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            values = {"a0": bound.a0, "b0": bound.b0, "c0": bound.c0}
            if values[name]:
                values[name] *= factor
                named.append((f"{name} {word} as large", Bound(**values)))
    return named


def _slower(fleet: Fleet, factor: float) -> Fleet:
    return Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s * factor,
        step_energy_j=fleet.step_energy_j,
        comm_energy_j=fleet.comm_energy_j,
        count=fleet.count,
    )
