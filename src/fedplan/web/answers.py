"""Answers: from a question to everything the page shows, in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import TOTALS
from fedplan.core.plan import Plan
from fedplan.core.prediction import Prediction
from fedplan.participation import uniform
from fedplan.planning.explain import is_guess, whole_message
from fedplan.planning.making import make_plan
from fedplan.planning.plans import TURNS, beside_turns
from fedplan.planning.predict import predict, price_setting
from fedplan.planning.sensitivity import WhatIf, sensitivity
from fedplan.web.copies import as_command, as_python, fleet_file
from fedplan.web.grids import Grid
from fedplan.web.pictures import law_pictures, sampling_pictures
from fedplan.web.question import Question
from fedplan.web.rows import group_rows, setting_rows
from fedplan.web.scales import scales_of
from fedplan.web.state import COEFFICIENTS
from fedplan.words import extra, few_digits


def plan_of(question: Question) -> Plan:
    """The plan."""
    return make_plan(
        question.problem,
        question.knowledge,
        participation=question.participation,
        target_gap=question.convergence.target_gap,
        method=question.method,
    )


def answer(question: Question) -> dict[str, Any]:
    """The plan, what else it is compared with, the pictures, and how to ask the same elsewhere."""
    plan = plan_of(question)
    chosen = plan.prediction
    if chosen is not None and question.method is not None:
        chosen = _priced(question, chosen.pair)  # the paper's own model takes no stragglers
    current = _priced(question, question.current) if question.current else None
    remark = extra(current.cost / chosen.cost) if current and chosen and chosen.cost else ""
    pictures, scales = _pictures_and_scales(question, plan, (chosen, current))
    estimate = question.knowledge if isinstance(question.knowledge, Estimate) else None
    shown = question.knowledge if isinstance(question.knowledge, Bound) else question.reference
    bound, _, _ = what_is_known(shown, None)
    return {
        "success": plan.success,
        "status": plan.status,
        "method": plan.method,
        "participation": {"law": question.participation, "groups": group_rows(plan)},
        "unit": plan.unit,
        "num_clients": len(question.fleet),
        "message": whole_message(plan, question.knowledge, question.convergence.relative_to),
        "binding": list(plan.binding),
        "regret": plan.regret,
        "is_guess": estimate is not None and is_guess(plan.regret),
        "rows": setting_rows(question, plan, current, remark),
        "pictures": pictures,
        "scales": scales,
        "fleet": _facts(question),
        "convergence": {
            "name": question.convergence.name,
            "bound": {name: getattr(bound, name) for name in COEFFICIENTS},
            "is_estimate": estimate is not None,
            "is_measured": question.convergence.is_measured,
        },
        "command": as_command(question),
        "python": as_python(question),
        "fleet_file": fleet_file(question),
    }


def _pictures_and_scales(
    question: Question, plan: Plan, priced: tuple[Prediction | None, Prediction | None]
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    known = question.knowledge
    if isinstance(known, Saturation):
        return law_pictures(question, plan), scales_of(question, None)
    bound, plausible, limits = what_is_known(known, question.problem.limits)
    is_mapped = question.method is not None
    settings = [plan.prediction.pair] if is_mapped and plan.prediction is not None else []
    grid = Grid(question.fleet, bound, limits, settings)
    whole = grid.surface(question.problem.objective, question.convergence.target_gap)
    scales = scales_of(question, whole)
    if not is_mapped:
        return law_pictures(question, plan), scales
    return sampling_pictures(question, plan, grid, whole, tuple(plausible), priced), scales


def doubts(question: Question) -> dict[str, Any]:
    """What the plan would lose if something assumed were not so, and what turns would cost.

    It plans about ten times over, so it is asked for on its own, once a slider rests.
    """
    plan = plan_of(question)
    cases: Sequence[WhatIf] = ()
    if plan.success and not set(TOTALS) & set(plan.binding):
        # Where it is held by a limit, that is what would cost, not the choice.
        cases = sensitivity(question.problem, question.knowledge, plan)
    return {
        "sensitivity": [{**asdict(case), "words": f"+{case.regret:.1%}"} for case in cases],
        "turns": _about_turns(question, plan),
    }


def _about_turns(question: Question, plan: Plan) -> str:
    """What groups that take turns would cost instead; nothing where they are the plan."""
    if question.method is not None and not isinstance(question.knowledge, Saturation):
        gap = question.convergence.target_gap
        plan = beside_turns(plan, question.problem, question.knowledge, target_gap=gap)
    ratios = [other.cost_ratio for other in plan.alternatives if other.name == TURNS]
    if not ratios or ratios[0] == 1.0:
        return ""
    less = "less" if ratios[0] < 1 else "more"
    return f"Groups that take turns would cost {abs(ratios[0] - 1):.0%} {less}."


def _priced(question: Question, setting: tuple[int, int]) -> Prediction:
    """What uniform sampling with this (K, E) would take, by what the plan rests on."""
    known, gap = question.knowledge, question.convergence.target_gap
    if not isinstance(known, Saturation):
        known, _, _ = what_is_known(known, None)
        if question.method is not None:
            problem = question.problem
            return predict(problem.fleet, known, problem.objective, *setting, target_gap=gap)
    return price_setting(question.problem, known, uniform(*setting), target_gap=gap)


def _facts(question: Question) -> dict[str, Any]:
    return {
        "name": question.devices.name,
        "num_clients": len(question.fleet),
        "entries": int(question.fleet.count.size),
        "summary": {
            name: {key: few_digits(value) for key, value in values.items()}
            for name, values in question.devices.summary.items()
        },
    }
