"""What a choice from a fitted descent is worth: against its neighbours, and if it was wrong."""

from __future__ import annotations

import math

from fedplan.convergence.descent import Descent
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective, costs_nothing
from fedplan.core.plan import Alternative
from fedplan.core.prediction import Prediction
from fedplan.planning.descent_surface import cheapest_setting, predict_descent
from fedplan.planning.sensitivity import WhatIf, slower_communication

Setting = tuple[int, int]


def descent_alternatives(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    setting: Setting,
    constraints: Constraints | None = None,
) -> list[Alternative]:
    """Other settings by the likeliest descent, each against `setting`; the cheapest comes first.

    Beside the cheapest they are half and twice as many clients and steps, and every client.
    """
    limits = constraints or Constraints()
    clients, steps = setting
    others: dict[str, Setting] = {}
    if (lowest := cheapest_setting(fleet, descent, objective, limits)) is not None:
        others["the cheapest, as fitted"] = lowest.pair
    others |= {
        "half as many clients": (max(1, clients // 2), steps),
        "twice as many clients": (min(2 * clients, len(fleet)), steps),
        "every client": (len(fleet), steps),
        "half as many local steps": (clients, max(1, steps // 2)),
        "twice as many local steps": (clients, 2 * steps),
    }
    chosen = predict_descent(fleet, descent, objective, *setting)
    return [
        _alternative(
            name, predict_descent(fleet, descent, objective, *at), chosen, limits, len(fleet)
        )
        for name, at in others.items()
        if at != setting
    ]


def _alternative(
    name: str, other: Prediction, chosen: Prediction, limits: Constraints, num_clients: int
) -> Alternative:
    ratio = other.cost / chosen.cost if chosen.cost else 1.0
    fewest, most = limits.clients_range(num_clients)
    allowed = (
        fewest <= other.pair[0] <= most
        and (limits.min_local_steps or 1) <= other.local_steps
        and other.local_steps <= (limits.max_local_steps or math.inf)
        and bool(limits.met(other.time_s, other.energy_j, other.expected_rounds))
    )
    return Alternative(name=name, prediction=other, cost_ratio=ratio, feasible=allowed)


def descent_sensitivity(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    setting: Setting,
    constraints: Constraints | None = None,
) -> list[WhatIf]:
    """How much `setting` would lose if communication or the energy weight were otherwise.

    By the likeliest descent; what the pilots leave open is the plan's own regret. Ranges of K and E
    stay, limits on totals do not, as in `sensitivity`.
    """
    if costs_nothing(fleet, objective):
        return []
    ranges = (constraints or Constraints()).ranges_only()
    cases = [
        ("communication twice as fast", slower_communication(fleet, 0.5), objective),
        ("communication twice as slow", slower_communication(fleet, 2.0), objective),
    ]
    weight = min(objective.per_joule, 1.0)
    if objective == Objective.weighted(weight):
        moved = sorted({max(0.0, weight - 0.1), min(1.0, weight + 0.1)} - {weight})
        cases += [(f"energy weight {w:.2g}", fleet, Objective.weighted(w)) for w in moved]
    found = []
    for name, devices, goal in cases:
        best = cheapest_setting(devices, descent, goal, ranges)
        paid = predict_descent(devices, descent, goal, *setting).cost
        if best is not None and best.cost and math.isfinite(paid):
            found.append(
                WhatIf(
                    name=name,
                    clients_per_round=best.clients_per_round,
                    local_steps=best.local_steps,
                    regret=max(0.0, paid / best.cost - 1.0),
                )
            )
    return found
