"""The plan figure's data: the frontier with the plan on it, and the cost of every other setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fedplan.figures.frontier import FrontierFigure, Mark, frontier_panel
from fedplan.figures.units import energy_unit, quantity, time_unit
from fedplan.theory.constraints import Constraints
from fedplan.theory.cost import Objective, Prices, predict
from fedplan.theory.estimation import Estimate
from fedplan.theory.frontier import compute_frontier
from fedplan.theory.grid import cost_surface, lattice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fedplan.theory.convergence import Bound
    from fedplan.theory.fleet import Fleet, FloatArray, IntArray
    from fedplan.theory.plan import Plan

_PAPER = "the paper's method"  # the name of `Alternative` that plan.py gives it
_LEVELS = (-0.5, -0.2, -0.05, -0.01, 0.01, 0.05, 0.2, 1.0)
# Points an axis, and for fleets of more entries than that, where each E costs a sort of them all.
_GRID, _LARGE_GRID, _LARGE_FLEET = (59, 59), (23, 15), 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostPanel:
    """What every (K, E) costs above the plan: `extra_cost` is cost / planned cost - 1.

    Rows are `clients_per_round`, columns `local_steps`; `allowed` says where the limits hold.
    levels : contours worth drawing, those between the least and the greatest extra cost.
    """

    title: str
    clients_per_round: IntArray
    local_steps: IntArray
    extra_cost: FloatArray
    allowed: NDArray[np.bool_]
    levels: tuple[float, ...]
    marks: tuple[Mark, ...]

    @property
    def bands(self) -> FloatArray:
        """Extra cost on a scale where level i is i; between levels in ratio of cost.

        Drawings contour this: equal steps, and close to linear between the points of the grid.
        """
        ends = (self.extra_cost.min(), self.extra_cost.max())
        inner = [level for level in self.levels if ends[0] < level < ends[1]]
        knots = np.log1p([ends[0], *inner, ends[1]])
        first = self.levels.index(inner[0]) - 1.0 if inner else -1.0
        heights = first + np.arange(knots.size)
        return np.interp(np.log1p(self.extra_cost), knots, heights)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigure:
    """The picture of a plan: time against energy, and cost over (K, E)."""

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
    relative : whether seconds and joules are relative, or the words for what they are for.

    >>> from fedplan import Bound, Fleet, make_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    >>> plan = make_plan(fleet, bound, energy_weight=0.2)
    >>> data = plan_figure_data(fleet, bound, plan, energy_weight=0.2)
    >>> data.frontier.marks[0].label, data.cost.extra_cost.shape
    ('fedplan: K=1, E=6', (3, 32))
    """
    constraints = constraints or Constraints()
    if isinstance(bound, Estimate):
        constraints = bound.within_reach(constraints)
        bound = _bound_of(bound)
    objective = prices.objective() if prices else Objective.weighted(energy_weight or 0.0)
    chosen = predict(fleet, bound, objective, *plan.setting, target_gap=target_gap)
    marks = _marks(plan, Mark.at(chosen, "fedplan", "chosen"))
    points = compute_frontier(fleet, bound, target_gap=target_gap, constraints=constraints)
    k, e = plan.setting
    return PlanFigure(
        title=f"{k:,} of {len(fleet):,} clients per round, {e:,} local steps: "
        f"{quantity(chosen.time_s, time_unit(chosen.time_s))}, "
        f"{quantity(chosen.energy_j, energy_unit(chosen.energy_j))}",
        frontier=frontier_panel(points, marks, relative=relative, constraints=constraints),
        cost=_cost_panel(fleet, bound, objective, constraints, target_gap, marks, energy_weight),
    )


def _bound_of(estimate: Estimate) -> Bound:
    if estimate.bound is None:
        raise InputError(f"there is no bound to draw. {estimate.message}")
    return estimate.bound
