"""The study figure's data: pilots and fit, training, cost of other settings, and the bill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedplan.errors import InputError
from fedplan.figures.bill_panel import BillPanel, Totals, bill_panel
from fedplan.figures.cost_panel import CostPanel, descent_cost_panel
from fedplan.figures.frontier import Mark, Role
from fedplan.figures.loss_panels import PilotPanel, TrainingPanel, pilot_panel, training_panel
from fedplan.figures.units import extra
from fedplan.theory.constraints import Constraints
from fedplan.theory.cost import Objective, costs_nothing
from fedplan.theory.descent_surface import cheapest_setting, predict_descent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fedplan.records import RunRecord
    from fedplan.theory.descent import Descent
    from fedplan.theory.descent_plan import Forecast
    from fedplan.theory.fleet import Fleet

Setting = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyFigure:
    """A study, ready to be drawn; what it did not come to is None.

    pilots : None where no pilot has any loss.
    training : None where it was not begun.
    cost : None where nothing was fitted (the paper's pilots), or no setting meets the limits.
    """

    title: str
    pilots: PilotPanel | None
    training: TrainingPanel | None
    cost: CostPanel | None
    bill: BillPanel
    note: str

    @property
    def panels(self) -> tuple[PilotPanel | TrainingPanel | CostPanel | BillPanel, ...]:
        """What there is to draw, in its order."""
        found = (self.pilots, self.training, self.cost, self.bill)
        return tuple(panel for panel in found if panel is not None)

    @property
    def rows(self) -> tuple[int, ...]:
        """How many panels each row has: two, and the last one all of its row if need be."""
        count = len(self.panels)
        return (2,) * (count // 2) + (1,) * (count % 2)


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
) -> StudyFigure:
    """Data of the study figure.

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
        problem = fleet, objective, constraints or Constraints()
        cost = _cost_panel(descent, problem, setting, pilots, others)
    return StudyFigure(
        title=title,
        pilots=pilot_panel(pilots, target_loss, descent),
        training=training_panel(runs, target_loss, forecast),
        cost=cost,
        bill=bill_panel(
            objective,
            pilots=pilots_bill,
            forecast=forecast,
            training=training_bill,
            reached=any(run.status == "target" for run in runs),
        ),
        note=note,
    )


def _cost_panel(
    descent: Descent,
    problem: tuple[Fleet, Objective, Constraints],
    setting: Setting,
    pilots: Sequence[RunRecord],
    others: dict[str, Setting | None],
) -> CostPanel | None:
    fleet, objective, limits = problem
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
    marks += [mark((run.clients_per_round, run.local_steps), "pilot", "pilot") for run in pilots]
    return descent_cost_panel(
        fleet, descent, objective, marks, lowest, constraints=limits, basis=basis
    )


def _basis(objective: Objective) -> str:
    weight = objective.per_joule
    if objective != Objective.weighted(min(weight, 1.0)):
        return objective.unit
    return f"energy weight {weight:g}" if weight else "time alone"
