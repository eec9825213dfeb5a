"""The plan figure: the plan on the time-energy frontier, and what other settings cost."""

from dataclasses import replace

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.pilots import DESCENT
from fedplan.core.plan import Alternative, Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.figures.cost_map import allowed_part, cost_panels, grid_surface
from fedplan.figures.frontier import Mark, frontier_note, frontier_panel
from fedplan.figures.spec import Figure
from fedplan.planning.frontier import compute_frontier
from fedplan.planning.predict import predict
from fedplan.words import counted, extra, totals

PAPER = "the paper's method"  # what a plan calls that alternative


def plan_figure_data(
    plan: Plan,
    problem: Problem,
    bound: Bound | Estimate,
    *,
    target_gap: float = 1.0,
    relative: str = "",
) -> Figure:
    """Data of the plan figure; the arguments are those `make_plan` was called with.

    Every setting is priced with exact stragglers and the full bound, the paper's choice too.
    relative : what seconds and joules are for, where that is not a target; those from an estimate
        are for the pilots' descent.
    """
    if isinstance(bound, Estimate):
        relative = relative or DESCENT
    bound, _, limits = what_is_known(bound.at_gap(target_gap), problem.limits)
    problem, fleet, setting = replace(problem, limits=limits), problem.fleet, plan.setting.pair
    chosen = predict(fleet, bound, problem.objective, *setting)
    marks = plan_marks(plan, chosen)
    points = compute_frontier(fleet, bound, constraints=limits)
    surface = grid_surface(problem, bound, [setting])
    frontier = frontier_panel(points, marks, relative=relative, constraints=limits)
    costs = cost_panels(allowed_part(surface, problem, bound, [setting]), marks, problem)
    return Figure(
        title=_title(chosen, len(fleet), relative),
        rows=((frontier, *costs),),
        size=(11.0, 4.6),
        note=frontier_note([*points, chosen], relative),
    )


def plan_marks(plan: Plan, chosen: Prediction | None) -> list[Mark]:
    """The plan, priced exactly, and its alternatives that have a K."""
    by_paper = plan.method == "paper"
    planned = [] if chosen is None else [Mark(chosen, PAPER if by_paper else "fedplan", "chosen")]
    others = [
        Mark(
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


def _title(chosen: Prediction, num_clients: int, relative: str) -> str:
    k, e = chosen.pair
    setting = f"{k:,} of {num_clients:,} clients per round, {counted(e, 'local step')}"
    of_what = {"": "", DESCENT: " (pilots' descent)"}.get(relative, " (relative)")
    return f"{setting}: {totals(chosen.time_s, chosen.energy_j)}{of_what}"
