"""Sensitivity: what it costs to be wrong about the bound, the devices or the weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedplan.notebook import Rows
from fedplan.theory.constraints import Constraints
from fedplan.theory.convergence import Bound
from fedplan.theory.cost import Objective, Prices, predict
from fedplan.theory.estimation import Estimate, what_is_known
from fedplan.theory.exact import minimise
from fedplan.theory.fleet import Fleet
from fedplan.theory.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """If the truth were otherwise: its own best (K, E), and the plan's regret against that."""

    name: str
    clients_per_round: int
    local_steps: int
    regret: float


def sensitivity(
    fleet: Fleet,
    bound: Bound | Estimate,
    plan: Plan,
    *,
    energy_weight: float | None = None,
    prices: Prices | None = None,
    constraints: Constraints | None = None,
    plausible: Sequence[Bound] = (),
) -> Rows[WhatIf]:
    """How much the planned (K, E) would lose if something assumed were not so.

    Pass what `make_plan` was given. The bound is moved to every plausible one, or where there is
    none each coefficient is halved and doubled; communication time is halved and doubled against
    step time; the energy weight, where that is what was given, is moved by 0.1 either way. Ranges
    of K and E stay, limits on totals do not: regret is about the choice, not about a limit that
    the truth would break.

    >>> from fedplan.theory.planning import make_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0)
    >>> plan = make_plan(fleet, bound, energy_weight=0.2)
    >>> all(case.regret >= 0 for case in sensitivity(fleet, bound, plan, energy_weight=0.2))
    True
    """
    chosen = plan.setting
    bound, estimated, constraints = what_is_known(bound, constraints)
    plausible = plausible or estimated
    ranges = constraints.ranges_only()
    given = prices.objective() if prices else Objective.weighted(energy_weight or 0.0)
    if not predict(fleet, bound, given, *chosen).cost:
        return Rows((), WhatIf)  # nothing costs anything, so nothing can be lost
    cases = [
        *((name, fleet, truth, given) for name, truth in other_bounds(bound, plausible)),
        ("communication twice as fast", slower_communication(fleet, 0.5), bound, given),
        ("communication twice as slow", slower_communication(fleet, 2.0), bound, given),
    ]
    if energy_weight is not None:
        moved = sorted(
            {max(0.0, energy_weight - 0.1), min(1.0, energy_weight + 0.1)} - {energy_weight}
        )
        cases += [
            (f"energy weight {other:.2g}", fleet, bound, Objective.weighted(other))
            for other in moved
        ]
    return Rows((_what_if(*case, ranges, chosen) for case in cases), WhatIf)


def _what_if(
    name: str,
    fleet: Fleet,
    bound: Bound,
    objective: Objective,
    ranges: Constraints,
    chosen: tuple[int, int],
) -> WhatIf:
    best = minimise(fleet, bound, objective, ranges)
    setting = chosen if best is None else best.setting
    paid = predict(fleet, bound, objective, *chosen).cost
    cheapest = predict(fleet, bound, objective, *setting).cost
    regret = max(0.0, paid / cheapest - 1.0) if cheapest else 0.0
    return WhatIf(name=name, clients_per_round=setting[0], local_steps=setting[1], regret=regret)


def other_bounds(bound: Bound, plausible: Sequence[Bound]) -> list[tuple[str, Bound]]:
    """What the bound may be instead: the plausible ones, or each coefficient halved and doubled.

    >>> [name for name, _ in other_bounds(Bound(a0=100.0, b0=1.0, c0=0.0), ())][:2]
    ['a0 half as large', 'a0 twice as large']
    """
    if plausible:
        named = {f"a0={b.a0:.4g}, b0={b.b0:.4g}, c0={b.c0:.4g}": b for b in plausible if b != bound}
        return list(named.items())
    moved = []
    for name in ("a0", "b0", "c0"):
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            values = {"a0": bound.a0, "b0": bound.b0, "c0": bound.c0}
            if values[name]:
                values[name] *= factor
                moved.append((f"{name} {word} as large", Bound(**values)))
    return moved


def slower_communication(fleet: Fleet, factor: float) -> Fleet:
    """The same devices, whose model exchange takes this many times as long."""
    return Fleet(
        step_time_s=fleet.step_time_s,
        comm_time_s=fleet.comm_time_s * factor,
        step_energy_j=fleet.step_energy_j,
        comm_energy_j=fleet.comm_energy_j,
        count=fleet.count,
    )
