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
from fedplan.core.setting import Prediction
from fedplan.figures.plan import PAPER
from fedplan.figures.style import group_colours
from fedplan.participation import uniform
from fedplan.planning.explain import how_sure, is_guess, whole_message
from fedplan.planning.planner import make_plan
from fedplan.planning.plans import BEST_UNIFORM, TURNS, beside_turns
from fedplan.planning.predict import predict, price_setting
from fedplan.planning.sensitivity import WhatIf, sensitivity
from fedplan.web.copies import as_command, as_python, fleet_file
from fedplan.web.pictures import pictures_of
from fedplan.web.question import Question
from fedplan.web.scales import scales_of
from fedplan.web.state import COEFFICIENTS
from fedplan.words import extra, few_digits, joules, number, seconds

_ROLES = {PAPER: "paper", BEST_UNIFORM: "uniform"}
_LEAST = {
    "deadline_s": "the fastest",
    "energy_budget_j": "the least energy",
    "max_rounds": "the fewest rounds",
}


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
    estimate = question.knowledge if isinstance(question.knowledge, Estimate) else None
    shown = question.knowledge if isinstance(question.knowledge, Bound) else question.reference
    bound, _, _ = what_is_known(shown, None)
    return {
        "success": plan.success,
        "status": plan.status,
        "method": plan.method,
        "participation": {"law": question.participation, "groups": _group_rows(plan)},
        "unit": plan.unit,
        "num_clients": len(question.fleet),
        "message": whole_message(plan, question.knowledge, question.convergence.relative_to),
        "binding": list(plan.binding),
        "regret": plan.regret,
        "is_guess": estimate is not None and is_guess(plan.regret),
        "rows": _setting_rows(question, plan, current, remark),
        "pictures": pictures_of(question, plan, chosen, current),
        "scales": scales_of(question),
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


def _setting_rows(
    question: Question, plan: Plan, current: Prediction | None, remark: str
) -> list[dict[str, Any]]:
    """The plan, the user's own setting with a remark, others, and what is attainable at best."""
    rows = []
    if plan.prediction is not None:
        name = "the paper's method, by its own model" if plan.method == "paper" else "the plan"
        rows.append(_row(name, "chosen", question, plan.prediction, "", feasible=True))
    if current is not None:
        name = "your setting" if question.participation == "uniform" else "your setting, uniform"
        met = question.problem.limits.are_met_by(current) and _in_ranges(question, current)
        rows.append(_row(name, "current", question, current, remark, feasible=met))
    for other in plan.alternatives:
        name = other.name
        if other.name == PAPER and plan.method == "paper":
            name = "the same, stragglers counted"
        role, ratio = _ROLES.get(other.name, "other"), extra(other.cost_ratio)
        rows.append(_row(name, role, question, other.prediction, ratio, feasible=other.feasible))
    for name, best in plan.best_attainable.items():
        words = f"{_LEAST[name]} {how_sure(plan.method)}"
        rows.append(_row(words, "attainable", question, best, "", feasible=False))
    return rows


def _group_rows(plan: Plan) -> list[dict[str, Any]]:
    """The groups that take turns, the fastest first: in numbers, in words, and their colours."""
    cycle = sum(plan.visits)
    return [
        {
            **asdict(group),
            "colour": colour,
            "words": {
                "clients": f"{group.clients:,}",
                "time": seconds(group.time_s),
                "energy": joules(group.energy_j),
                "data_share": f"{group.data_share:.1%}",
                "frequency": f"{visits:,} of {cycle:,} rounds",
            },
        }
        for group, visits, colour in zip(
            plan.groups, plan.visits, group_colours(len(plan.groups)), strict=True
        )
    ]


def _in_ranges(question: Question, priced: Prediction) -> bool:
    limits = question.problem.limits
    low, high = limits.clients_range(len(question.fleet))
    least, most = limits.min_local_steps or 1, limits.max_local_steps or priced.local_steps
    clients, steps = priced.pair
    return low <= clients <= high and least <= steps <= most


def _row(
    name: str, role: str, question: Question, priced: Prediction, remark: str, *, feasible: bool
) -> dict[str, Any]:
    clients, prices = priced.clients_per_round, question.prices
    return {
        "name": name,
        "role": role,
        "clients_per_round": clients,
        "local_steps": priced.local_steps,
        "rounds": priced.rounds,
        "time_s": priced.time_s,
        "energy_j": priced.energy_j,
        "cost": priced.cost,
        "feasible": feasible,
        "remark": remark,
        "words": {
            "clients": "in turns" if clients is None else f"{clients:,}",
            "rounds": f"{priced.rounds:,}",
            "time": seconds(priced.time_s),
            "energy": joules(priced.energy_j),
            "cost": number(priced.cost),
            "co2": f"{number(prices.co2_g(priced.energy_j))} g CO2"
            if prices is not None and prices.co2_g_per_kwh
            else "",
        },
    }
