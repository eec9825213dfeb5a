"""Views: which pictures a plan has, by who trains when and by what is known."""

from __future__ import annotations

from typing import Any

from fedplan.convergence.bound import Bound
from fedplan.core.plan import Plan
from fedplan.core.prediction import Prediction
from fedplan.figures.embed import screen_data
from fedplan.figures.frontier import Mark
from fedplan.figures.turns import first_turns, plan_turns_data
from fedplan.figures.units import extra
from fedplan.participation.uniform import round_time_s
from fedplan.planning.sensitivity import other_bounds
from fedplan.planning.surface import Surface
from fedplan.web.fleet_picture import fleet_picture
from fedplan.web.grids import Grid
from fedplan.web.pictures import curve_pictures, frontier_picture, map_picture
from fedplan.web.question import Question
from fedplan.web.rows import PAPER

_NO_MAP = {
    "turns": "Groups that take turns have no K: there is no map of costs over K and E. "
    "`fedplan frontier --participation turns` lists time against energy.",
    "shuffled": "Maps and curves over K and E are of uniform sampling; of shuffled rounds only the "
    "plan is shown. `fedplan frontier --participation shuffled` lists time against energy.",
    "weighted": "Maps and curves over K and E are of uniform sampling; of weighted sampling only "
    "the plan is shown. `fedplan frontier --participation weighted` lists time against energy.",
    "uniform": "Nothing was measured, so costs over K and E are not mapped: give a bound or "
    "pilots under Convergence.",
}


def law_pictures(question: Question, plan: Plan) -> dict[str, Any]:
    """Of a plan by any law: its groups and turns where it has any, and why there is no map."""
    found, waits, sampled = plan.prediction, None, None
    if found is not None:
        words = "a round on average"
        if found.clients_per_round is not None:
            words = f"a round waits (K={found.clients_per_round:,})"
        waits = words, found.time_s / found.expected_rounds
        if plan.participation in ("uniform", "shuffled"):
            sampled = found.clients_per_round
    return {
        "frontier": None,
        "map": None,
        "curves": None,
        "turns": _turns(plan) if plan.groups else None,
        "fleet": fleet_picture(
            question.fleet,
            1 if found is None else found.local_steps,
            waits,
            groups=plan.groups,
            sampled=sampled,
        ),
        "note": _NO_MAP[question.participation],
    }


def sampling_pictures(
    question: Question,
    plan: Plan,
    grid: Grid,
    whole: Surface,
    plausible: tuple[Bound, ...],
    priced: tuple[Prediction | None, Prediction | None],
) -> dict[str, Any]:
    """Of uniform sampling with a bound: the frontier, the map, curves, and who is waited for.

    priced : the plan's setting, and the user's own.
    """
    marks = _marks(plan, *priced)
    settings = [plan.prediction.pair] if plan.prediction is not None else []
    part = grid.allowed(whole, settings)
    relative = question.convergence.relative_to or False
    curves, waits, (k, e) = None, None, (1, 1)
    if settings:
        k, e = settings[0]
        others = [other for _, other in other_bounds(grid.bound, plausible)]
        gap = question.convergence.target_gap
        curves = curve_pictures(grid, question.problem.objective, (k, e), others, gap)
        waits = f"a round waits (K={k:,})", round_time_s(question.fleet, k, e)
    return {
        "frontier": frontier_picture(part, marks, question.problem.limits, relative),
        "map": map_picture(part, marks, question.problem.limits, _basis(question, plan)),
        "curves": curves,
        "turns": None,
        "fleet": fleet_picture(question.fleet, e, waits, sampled=k),
        "note": "",
    }


def _turns(plan: Plan) -> dict[str, Any]:
    """Who trains when, as plotly's traces for a wide and for a narrow screen."""
    drawings = {"wide": plan_turns_data(plan), "narrow": plan_turns_data(plan, narrow=True)}
    return {
        size: {"title": data.panels[0].title, **screen_data(data)}
        for size, data in drawings.items()
    } | {"order": list(first_turns(plan))}


def _marks(plan: Plan, chosen: Prediction | None, current: Prediction | None) -> list[Mark]:
    marks = []
    if chosen is not None:
        marks.append(Mark.at(chosen, PAPER if plan.method == "paper" else "fedplan", "chosen"))
    paper = next((other for other in plan.alternatives if other.name == PAPER), None)
    if paper is not None and plan.method != "paper":
        marks.append(Mark.at(paper.prediction, PAPER, "paper", extra(paper.cost_ratio)))
    if current is not None:
        remark = extra(current.cost / chosen.cost) if chosen is not None and chosen.cost else ""
        marks.append(Mark.at(current, "your setting", "current", remark))
    return marks


def _basis(question: Question, plan: Plan) -> str:
    if question.prices is not None:
        return plan.unit
    weight = question.problem.objective.energy_weight
    return f"energy weight {weight:g}" if weight else "time alone"
