"""The plan figure's data: the plan on the time-energy frontier, and what other settings cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedplan.errors import InputError
from fedplan.figures.cost_panel import CostPanel, cost_panel
from fedplan.figures.frontier import FrontierFigure, Mark, frontier_panel
from fedplan.figures.units import energy_unit, extra, quantity, time_unit
from fedplan.theory.constraints import Constraints
from fedplan.theory.cost import Objective, Prediction, Prices, predict
from fedplan.theory.estimation import Estimate, what_is_known
from fedplan.theory.frontier import compute_frontier
from fedplan.theory.pilots import DESCENT

if TYPE_CHECKING:
    from fedplan.theory.convergence import Bound
    from fedplan.theory.fleet import Fleet
    from fedplan.theory.plan import Alternative, Plan

PAPER = "the paper's method"  # what a plan calls that alternative


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigure:
    """A plan, ready to be drawn: time against energy, and cost over (K, E)."""

    title: str
    frontier: FrontierFigure
    cost: CostPanel


def plan_figure_data(
    fleet: Fleet,
    bound: Bound | Estimate,
    plan: Plan,
    *,
    energy_weight: float | None = None,
    prices: Prices | None = None,
    target_gap: float = 1.0,
    constraints: Constraints | None = None,
    relative: bool | str = False,
) -> PlanFigure:
    """Data of the plan figure; the arguments are those `make_plan` was called with.

    Every setting is priced with exact stragglers and the full bound, the paper's choice too.
    relative : whether seconds and joules are relative, or the words for what they are for; those
        from an estimate are for the pilots' descent.

    >>> from fedplan import Bound, Fleet, make_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    >>> plan = make_plan(fleet, bound, energy_weight=0.2)
    >>> data = plan_figure_data(fleet, bound, plan, energy_weight=0.2)
    >>> data.frontier.marks[0].label, data.cost.extra_cost.shape
    ('fedplan: K=1, E=6', (3, 32))
    """
    if energy_weight is not None and prices is not None:
        raise InputError("give energy_weight or prices, not both: each fully sets the cost.")
    if isinstance(bound, Estimate):
        relative = relative or DESCENT
    bound, _, constraints = what_is_known(bound, constraints)
    objective = prices.objective() if prices else Objective.weighted(energy_weight or 0.0)
    chosen = predict(fleet, bound, objective, *plan.setting, target_gap=target_gap)
    marks = _marks(plan, chosen)
    points = compute_frontier(fleet, bound, target_gap=target_gap, constraints=constraints)
    return PlanFigure(
        title=_title(chosen, len(fleet), relative),
        frontier=frontier_panel(points, marks, relative=relative, constraints=constraints),
        cost=cost_panel(
            fleet,
            bound,
            objective,
            marks,
            target_gap=target_gap,
            constraints=constraints,
            basis=plan.unit if prices else _weight(energy_weight),
        ),
    )


def _marks(plan: Plan, chosen: Prediction) -> list[Mark]:
    by_paper = plan.method == "paper"
    planned = Mark.at(chosen, PAPER if by_paper else "fedplan", "chosen")
    others = [
        Mark.at(
            other.prediction,
            other.name,
            "paper" if other.name == PAPER else "other",
            _remark(other, plan),
        )
        for other in plan.alternatives
        if not (by_paper and other.name == PAPER)  # it is the plan
    ]
    return [planned, *others]


def _remark(other: Alternative, plan: Plan) -> str:
    found = other.prediction
    if (found.clients_per_round, found.local_steps) == plan.setting:
        return "the same setting"
    return extra(other.cost_ratio) + ("" if other.feasible else ", over a limit")


def _title(chosen: Prediction, num_clients: int, relative: bool | str) -> str:
    time = quantity(chosen.time_s, time_unit(chosen.time_s))
    energy = quantity(chosen.energy_j, energy_unit(chosen.energy_j))
    clients = f"{chosen.clients_per_round:,} of {num_clients:,} clients per round"
    steps = f"{chosen.local_steps:,} local step{'' if chosen.local_steps == 1 else 's'}"
    of_what = {"": "", DESCENT: " (pilots' descent)"}.get(str(relative or ""), " (relative)")
    return f"{clients}, {steps}: {time}, {energy}{of_what}"


def _weight(energy_weight: float | None) -> str:
    return f"energy weight {energy_weight:g}" if energy_weight else "time alone"
