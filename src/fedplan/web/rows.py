"""Rows: the table of settings, and that of the groups that take turns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fedplan.core.plan import Plan
from fedplan.core.prediction import Prediction
from fedplan.figures.style import group_colours
from fedplan.planning.explain import how_sure
from fedplan.planning.plans import BEST_UNIFORM
from fedplan.web.question import Question
from fedplan.words import extra, joules, number, seconds

PAPER = "the paper's method"
_ROLES = {PAPER: "paper", BEST_UNIFORM: "uniform"}
_LEAST = {
    "deadline_s": "the fastest",
    "energy_budget_j": "the least energy",
    "max_rounds": "the fewest rounds",
}


def setting_rows(
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


def group_rows(plan: Plan) -> list[dict[str, Any]]:
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
