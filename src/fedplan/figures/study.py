"""The study figure: pilots and fit, training, cost of other settings, and the bill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from fedplan.core.constraints import Constraints
from fedplan.core.objective import Objective, costs_nothing
from fedplan.errors import InputError
from fedplan.figures.bill import Totals, bill_panel
from fedplan.figures.cost_map import descent_cost_view
from fedplan.figures.cost_view import CostView
from fedplan.figures.frontier import Mark, Role
from fedplan.figures.spec import Figure
from fedplan.figures.study_losses import pilot_panel, training_panel
from fedplan.figures.units import extra
from fedplan.planning.descent_surface import cheapest_setting, predict_descent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.convergence.descent import Descent
    from fedplan.core.fleet import Fleet
    from fedplan.core.records import RunRecord
    from fedplan.planning.descent_plan import Forecast

Setting = tuple[int, int]


def study_figure_data(
    fleet: Fleet,
    objective: Objective,
    *,
    name: str,
    target_loss: float,
    constraints: Constraints | None = None,
    pilots: Sequence[RunRecord],
    pilots_bill: Totals,
    descent: Descent | None = None,
    setting: Setting | None = None,
    forecast: Forecast | None = None,
    runs: Sequence[RunRecord] = (),
    training_bill: Totals | None = None,
    paper: Setting | None = None,
    best_measured: Setting | None = None,
    note: str = "",
) -> Figure:
    """Data of the study figure; what the study did not come to has no panel.

    name : of the study, for the title.
    pilots, pilots_bill : the pilots, and what they cost together.
    descent : what was fitted to them.
    setting, forecast : the plan's (K, E), and what training with it was predicted to take.
    runs, training_bill : training with it, and what that cost on average.
    paper, best_measured : other settings to point out, where they are known.
    """
    if not any(run.final_loss is not None for run in (*pilots, *runs)):
        raise InputError("a figure of a study needs at least one loss to draw, but got none.")
    title = name
    if setting is not None:
        clients = f"{setting[0]:,} of {len(fleet):,} clients per round"
        title += f": {clients}, {setting[1]:,} local step{'' if setting[1] == 1 else 's'}"
    cost = None
    if descent is not None and setting is not None:
        others = {"the paper's method": paper, "best measured": best_measured}
        cost = study_costs(
            fleet, objective, constraints or Constraints(), descent, setting, pilots, others
        )
    bill = bill_panel(
        objective,
        pilots=pilots_bill,
        forecast=forecast,
        training=training_bill,
        reached=any(run.status == "target" for run in runs),
    )
    panels = [
        panel
        for panel in (
            pilot_panel(pilots, target_loss, descent),
            training_panel(runs, target_loss, forecast),
            None if cost is None else cost.panel(),
            bill,
        )
        if panel is not None
    ]
    rows = tuple(tuple(panels[first : first + 2]) for first in range(0, len(panels), 2))
    height = sum(max(panel.height for panel in row) for row in rows)
    return Figure(title=title, rows=rows, size=(11.5, height + 0.3), note=note)


def study_costs(
    fleet: Fleet,
    objective: Objective,
    limits: Constraints,
    descent: Descent,
    setting: Setting,
    pilots: Sequence[RunRecord],
    others: Mapping[str, Setting | None] = MappingProxyType({}),
) -> CostView | None:
    """What other settings cost by the fit; None where no setting meets the limits."""
    basis = _basis(objective)
    if costs_nothing(fleet, objective):  # then the plan is the fastest
        objective, basis = Objective.weighted(0.0), "time: nothing costs anything"
    lowest = cheapest_setting(fleet, descent, objective, limits)
    if lowest is None:
        return None

    def mark(at: Setting, name: str, role: Role) -> Mark:
        found = predict_descent(fleet, descent, objective, *at)
        reaches = math.isfinite(found.cost)
        remark = extra(found.cost / lowest.cost) if reaches else "never gets there"
        return Mark.at(found, name, role, remark)

    marks = [mark(setting, "chosen", "chosen"), Mark.at(lowest, "lowest, as fitted", "lowest")]
    marks += [
        mark(at, name, "paper" if "paper" in name else "other")
        for name, at in others.items()
        if at is not None
    ]
    marks += [mark(run.setting.pair, "pilot", "pilot") for run in pilots]
    return descent_cost_view(
        fleet, descent, objective, marks, lowest, constraints=limits, basis=basis
    )


def _basis(objective: Objective) -> str:
    weight = objective.per_joule
    if objective != Objective.weighted(min(weight, 1.0)):
        return objective.unit
    return f"energy weight {weight:g}" if weight else "time alone"
