"""Answers: from a question to everything the page shows, in one object."""

import math
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.objective import Objective
from fedplan.core.plan import Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.figures.frontier import Mark
from fedplan.figures.plan import PAPER, plan_marks
from fedplan.figures.style import group_colours
from fedplan.participation import uniform
from fedplan.planning.explain import group_table, how_sure, is_guess, whole_message
from fedplan.planning.plans import BEST_UNIFORM, TURNS, beside_turns
from fedplan.planning.predict import predict, price_setting
from fedplan.planning.steps import steps_range
from fedplan.planning.surface import cost_surface, lattice
from fedplan.web.copies import as_command, as_python, fleet_file
from fedplan.web.pictures import pictures_of
from fedplan.web.question import COEFFICIENTS, Question
from fedplan.words import extra, joules, number, seconds

# Rows of a fleet up to which what-ifs are planned by other laws than uniform sampling: the slowest
# of them, weighted, takes some seconds for so many.
MOST_DOUBTED = 5_000
_VALUES = 64  # of a slider
_PRICED_STEPS = 8  # numbers of local steps that are priced
_ROLES = {PAPER: "paper", BEST_UNIFORM: "uniform"}
_NUMBERS = ("clients_per_round", "local_steps", "rounds", "time_s", "energy_j", "cost")
_LEAST = {
    "deadline_s": "the fastest",
    "energy_budget_j": "the least energy",
    "max_rounds": "the fewest rounds",
}


def answer(question: Question) -> dict[str, Any]:
    """The plan, what else it is compared with, the pictures, and how to ask the same elsewhere."""
    plan = question.plan()
    chosen = plan.prediction
    if chosen is not None and question.method is not None:
        chosen = _priced(question, chosen.pair)  # the paper's own model takes no stragglers
    current = _priced(question, question.current) if question.current else None
    remark = extra(current.cost / chosen.cost) if current and chosen and chosen.cost else ""
    marks: list[Mark] = []
    if question.method is not None:  # pictures over K and E; a table has the other settings
        marks = [mark for mark in plan_marks(plan, chosen) if mark.role != "other"]
        marks += [Mark(current, "your setting", "current", remark)] if current else []
    estimate = question.knowledge if isinstance(question.knowledge, Estimate) else None
    shown = question.knowledge if isinstance(question.knowledge, Bound) else question.reference
    bound, _, _ = what_is_known(shown, None)
    return {
        "success": plan.success,
        "status": plan.status,
        "method": plan.method,
        "participation": {"law": question.participation, **_groups(plan)},
        "unit": plan.unit,
        "num_clients": len(question.fleet),
        "message": whole_message(plan, question.knowledge, question.convergence.relative_to),
        "binding": list(plan.binding),
        "regret": plan.regret,
        "is_guess": estimate is not None and is_guess(plan.regret),
        "rows": _setting_rows(question, plan, current, remark),
        "pictures": pictures_of(question, plan, chosen, marks),
        "scales": _scales(question),
        "fleet": {"name": question.devices.name},
        "convergence": {
            "name": question.convergence.name,
            "bound": {name: getattr(bound, name) for name in COEFFICIENTS},
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
    if question.method is None and question.fleet.count.size > MOST_DOUBTED:
        too_large = f"What-ifs by this law are for fleets of up to {MOST_DOUBTED:,} rows."
        return {"sensitivity": [], "turns": too_large}
    plan = question.plan()
    cases = ({**asdict(case), "words": f"+{case.regret:.1%}"} for case in question.what_ifs(plan))
    return {"sensitivity": [*cases], "turns": _about_turns(question, plan)}


def _about_turns(question: Question, plan: Plan) -> str:
    """What groups that take turns would cost instead; nothing if they are the plan."""
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
    return price_setting(question.problem, known.at_gap(gap), uniform(*setting))


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


def _groups(plan: Plan) -> dict[str, Any]:
    """The groups that take turns, the fastest first, with their colours, and their table."""
    colours = group_colours(len(plan.groups))
    table = group_table(plan.groups, title="")
    return {
        "groups": [
            {**asdict(group), "colour": colour}
            for group, colour in zip(plan.groups, colours, strict=True)
        ],
        "table": {"head": table.head, "rows": table.rows},
    }


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
        **{key: getattr(priced, key) for key in _NUMBERS},
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


def _scales(question: Question) -> dict[str, list[float]]:
    """The values of each slider by what it sets: in ratio, and independent of the limits.

    Those of totals are around the least total of a few settings.
    """
    known, fleet, gap = question.knowledge, question.fleet, question.convergence.target_gap
    clients, objective = [1, math.isqrt(len(fleet)), len(fleet)], Objective.weighted(0.0)
    if isinstance(known, Saturation):
        balance = known.best_steps(fleet.mean("step_time_s"), fleet.mean("comm_time_s"))
        steps, problem = max(1, round(balance)), Problem(fleet=fleet, objective=objective)
        some = [price_setting(problem, known, uniform(k, steps)) for k in clients]
        most_steps, times = 20 * steps, np.array([one.time_s for one in some])
        energies = np.array([one.energy_j for one in some])
    else:
        bound, _, reach = what_is_known(known, None)
        high = steps_range(reach, bound)[1]
        es = lattice(1, high, _PRICED_STEPS)
        surface = cost_surface(fleet, bound, objective, clients, es, target_gap=gap)
        most_steps, times, energies = 2 * high, surface.time_s, surface.energy_j
    scales = {
        "deadline_s": _around(float(times.min())),
        "clients_per_round": lattice(1, len(fleet), _VALUES).tolist(),
        "local_steps": lattice(1, most_steps, _VALUES).tolist(),
    }
    if energies.any():
        scales["energy_budget_j"] = _around(float(energies[energies > 0].min()))
    return scales | _bound_scales(question)


def _around(least: float) -> list[float]:
    return _ladder(0.5 * least, 20.0 * least)


def _bound_scales(question: Question) -> dict[str, list[float]]:
    known = question.reference
    intervals = known.intervals if isinstance(known, Estimate) else {}
    reference = known.bound if isinstance(known, Estimate) else known
    scales = {}
    for name in COEFFICIENTS:
        value = getattr(reference, name)
        low, high = value / 10, value * 10
        if name in intervals:
            interval = intervals[name]
            low, high = max(interval[0], value / 1000), min(interval[1], value * 1000)
        if value > 0 and low < high:
            scales[name] = _ladder(low, high)
    return scales


@lru_cache(maxsize=256)
def _ladder(low: float, high: float) -> list[float]:
    values = np.geomspace(low, high, _VALUES)
    return sorted({float(f"{value:.3g}") for value in values.tolist()})
