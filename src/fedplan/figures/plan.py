"""The plan figure: the plan on the time-energy frontier, and what other settings cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.pilots import DESCENT
from fedplan.core.constraints import Constraints
from fedplan.core.objective import Objective, Prices
from fedplan.core.prediction import Prediction
from fedplan.errors import InputError
from fedplan.figures.cost_map import cost_panels, surface_around
from fedplan.figures.frontier import Mark, frontier_note, frontier_panel
from fedplan.figures.spec import Figure
from fedplan.planning.frontier import compute_frontier
from fedplan.planning.predict import predict
from fedplan.words import extra, totals

if TYPE_CHECKING:
    from fedplan.convergence.bound import Bound
    from fedplan.core.fleet import Fleet
    from fedplan.core.plan import Alternative, Plan

PAPER = "the paper's method"  # what a plan calls that alternative


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
) -> Figure:
    """Data of the plan figure; the arguments are those `make_plan` was called with.

    Every setting is priced with exact stragglers and the full bound, the paper's choice too.
    relative : whether seconds and joules are relative, or the words for what they are for; those
        from an estimate are for the pilots' descent.

    >>> from fedplan import Bound, Fleet, Problem, make_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    >>> problem = Problem(fleet=fleet, objective=Objective.weighted(0.2))
    >>> plan = make_plan(problem, bound)
    >>> plan_figure_data(fleet, bound, plan, energy_weight=0.2).title
    '1 of 3 clients per round, 6 local steps: 13.2 min, 698 J'
    """
    if energy_weight is not None and prices is not None:
        raise InputError("give energy_weight or prices, not both: each fully sets the cost.")
    if isinstance(bound, Estimate):
        relative = relative or DESCENT
    objective = prices.objective() if prices else Objective.weighted(energy_weight or 0.0)
    bound, _, constraints = what_is_known(bound, constraints)
    chosen = predict(fleet, bound, objective, *plan.setting.pair, target_gap=target_gap)
    marks = plan_marks(plan, chosen)
    points = compute_frontier(fleet, bound, target_gap=target_gap, constraints=constraints)
    surface = surface_around(
        fleet, bound, objective, chosen.pair, target_gap=target_gap, constraints=constraints
    )
    basis = plan.unit if prices else _weight(energy_weight)
    frontier = frontier_panel(points, marks, relative=relative, constraints=constraints)
    costs = cost_panels(surface, marks, constraints, basis=basis)
    return Figure(
        title=_title(marks[0], len(fleet), relative),
        rows=((frontier, *costs),),
        size=(11.0, 4.6),
        note=frontier_note([*points, marks[0]], relative),
    )


def plan_marks(plan: Plan, chosen: Prediction | None) -> list[Mark]:
    """The plan, priced exactly, and its alternatives that have a K."""
    by_paper = plan.method == "paper"
    planned = (
        [] if chosen is None else [Mark.at(chosen, PAPER if by_paper else "fedplan", "chosen")]
    )
    others = [
        Mark.at(
            other.prediction,
            other.name,
            "paper" if other.name == PAPER else "other",
            _remark(other, plan),
        )
        for other in plan.alternatives
        if not (by_paper and other.name == PAPER)  # it is the plan
        and other.prediction.clients_per_round is not None  # groups are not on a map of K and E
    ]
    return [*planned, *others]


def _remark(other: Alternative, plan: Plan) -> str:
    found = other.prediction
    planned = plan.prediction
    if planned is not None and found.pair == planned.pair:
        return "the same setting"
    return extra(other.cost_ratio) + ("" if other.feasible else ", over a limit")


def _title(chosen: Mark, num_clients: int, relative: bool | str) -> str:
    clients = f"{chosen.clients_per_round:,} of {num_clients:,} clients per round"
    steps = f"{chosen.local_steps:,} local step{'' if chosen.local_steps == 1 else 's'}"
    of_what = {"": "", DESCENT: " (pilots' descent)"}.get(str(relative or ""), " (relative)")
    return f"{clients}, {steps}: {totals(chosen.time_s, chosen.energy_j)}{of_what}"


def _weight(energy_weight: float | None) -> str:
    return f"energy weight {energy_weight:g}" if energy_weight else "time alone"
