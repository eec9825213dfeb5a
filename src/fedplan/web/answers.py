"""Answers: from a question to everything the page shows, in one object."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, what_is_known
from fedplan.core.constraints import TOTALS
from fedplan.core.plan import Alternative, Plan
from fedplan.core.prediction import Prediction
from fedplan.errors import InputProblem
from fedplan.figures.frontier import Mark
from fedplan.figures.units import extra, number
from fedplan.participation.uniform import round_time_s
from fedplan.planning.explain import how_sure, is_guess
from fedplan.planning.making import make_plan
from fedplan.planning.predict import predict
from fedplan.planning.sensitivity import other_bounds, sensitivity
from fedplan.planning.surface import Surface, lattice
from fedplan.web.copies import as_command, as_python
from fedplan.web.grids import Grid
from fedplan.web.pictures import (
    curve_pictures,
    fleet_picture,
    frontier_picture,
    map_picture,
    round_number,
    words_of,
)
from fedplan.web.state import Question

PAPER = "the paper's method"
_LEAST = {
    "deadline_s": "the fastest",
    "energy_budget_j": "the least energy",
    "max_rounds": "the fewest rounds",
}
_LADDER = 64  # values of a slider


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
    bound, plausible, limits = what_is_known(question.knowledge, question.constraints)
    objective, gap = question.objective, question.convergence.target_gap
    pair = _pair(plan)
    chosen = _priced(question, bound, pair) if pair else None
    current = _priced(question, bound, question.current) if question.current else None
    marks = _marks(plan, chosen, current)
    settings = [pair] if pair else []
    grid = Grid(question.fleet, bound, limits, settings)
    whole = grid.surface(objective, gap)
    part = grid.allowed(whole, settings)
    others = [other for _, other in other_bounds(bound, plausible)]
    relative = question.convergence.relative_to or False
    waits = round_time_s(question.fleet, *pair) if pair else None
    return {
        "success": plan.success,
        "status": plan.status,
        "method": plan.method,
        "participation": {
            "law": question.participation,
            "groups": [asdict(group) for group in plan.groups],
        },
        "unit": plan.unit,
        "num_clients": len(question.fleet),
        "message": _message(question, plan),
        "binding": list(plan.binding),
        "regret": plan.regret,
        "is_guess": is_guess(plan.regret),
        "rows": _rows(question, plan, current, chosen),
        "pictures": {
            "frontier": frontier_picture(part, marks, question.constraints, relative),
            "map": map_picture(part, marks, question.constraints, _basis(question, plan)),
            "curves": curve_pictures(grid, objective, pair, others, gap) if pair else None,
            "fleet": fleet_picture(question.fleet, settings[0] if settings else None, waits),
        },
        "scales": _scales(question, whole),
        "fleet": _facts(question),
        "convergence": {
            "name": question.convergence.name,
            "bound": {name: getattr(bound, name) for name in ("a0", "b0", "c0")},
            "is_estimate": question.estimate is not None,
        },
        "command": as_command(question),
        "python": as_python(question),
    }


def _pair(plan: Plan) -> tuple[int, int] | None:
    """The (K, E) on the maps: the plan's, or that of the best uniform sampling beside it."""
    if plan.prediction is None:
        return None
    if plan.prediction.clients_per_round is not None:
        return plan.prediction.pair
    others = (other.prediction for other in plan.alternatives)
    return next((one.pair for one in others if one.clients_per_round is not None), None)


def what_ifs(question: Question) -> list[dict[str, Any]]:
    """What the plan would lose if something assumed were not so.

    It plans about ten times over, so it is asked for on its own, once a slider rests.
    """
    plan = plan_of(question)
    if not plan.success or set(TOTALS) & set(plan.binding):
        return []  # the limit, not the choice, is what would cost
    cases = sensitivity(question.problem, question.knowledge, plan)
    return [
        {
            "name": case.name,
            "clients_per_round": case.clients_per_round,
            "local_steps": case.local_steps,
            "regret": case.regret,
            "words": f"+{case.regret:.1%}",
        }
        for case in cases
    ]


def problem_json(problem: InputProblem) -> dict[str, Any]:
    """A problem, as the command line's JSON has it."""
    return {
        "source": problem.source,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "text": str(problem),
    }


def _priced(question: Question, bound: Bound, setting: tuple[int, int]) -> Prediction:
    gap = question.convergence.target_gap
    return predict(question.fleet, bound, question.objective, *setting, target_gap=gap)


def _marks(plan: Plan, chosen: Prediction | None, current: Prediction | None) -> list[Mark]:
    marks = []
    if chosen is not None:
        name = PAPER if plan.method == "paper" else "fedplan"
        if plan.groups:
            name = "uniform sampling"
        marks.append(Mark.at(chosen, name, "chosen"))
    paper = _paper(plan)
    if paper is not None and plan.method != "paper":
        marks.append(Mark.at(paper.prediction, PAPER, "paper", extra(paper.cost_ratio)))
    if current is not None:
        remark = extra(current.cost / chosen.cost) if chosen is not None and chosen.cost else ""
        marks.append(Mark.at(current, "your setting", "current", remark))
    return marks


def _paper(plan: Plan) -> Alternative | None:
    return next((other for other in plan.alternatives if other.name == PAPER), None)


def _rows(
    question: Question, plan: Plan, current: Prediction | None, chosen: Prediction | None
) -> list[dict[str, Any]]:
    """The table of settings: the plan, the paper's, the user's own, and the usual guesses."""
    rows = []
    if plan.prediction is not None:
        name = "the paper's method, by its own model" if plan.method == "paper" else "the plan"
        rows.append(_row(name, "chosen", question, plan.prediction, "", feasible=True))
    if current is not None:
        remark = extra(current.cost / chosen.cost) if chosen is not None and chosen.cost else ""
        met = question.constraints.met(
            current.time_s, current.energy_j, current.expected_rounds
        ) and _in_ranges(question, current)
        rows.append(_row("your setting", "current", question, current, remark, feasible=bool(met)))
    for other in plan.alternatives:
        role, name = "other", other.name
        if other.name == PAPER:
            role = "paper"
            if plan.method == "paper":
                name = "the same, stragglers counted"
        remark = extra(other.cost_ratio)
        rows.append(_row(name, role, question, other.prediction, remark, feasible=other.feasible))
    for name, best in plan.best_attainable.items():
        words = f"{_LEAST[name]} {how_sure(plan.method)}"
        rows.append(_row(words, "attainable", question, best, "", feasible=False))
    return rows


def _in_ranges(question: Question, priced: Prediction) -> bool:
    limits = question.constraints
    low, high = limits.clients_range(len(question.fleet))
    least, most = limits.min_local_steps or 1, limits.max_local_steps or priced.local_steps
    clients, steps = priced.pair
    return low <= clients <= high and least <= steps <= most


def _row(
    name: str, role: str, question: Question, priced: Prediction, remark: str, *, feasible: bool
) -> dict[str, Any]:
    time, energy = words_of(priced.time_s, priced.energy_j)
    prices = question.prices
    return {
        "name": name,
        "role": role,
        "clients_per_round": priced.clients_per_round,
        "local_steps": priced.local_steps,
        "rounds": priced.rounds,
        "time_s": priced.time_s,
        "energy_j": priced.energy_j,
        "cost": priced.cost,
        "feasible": feasible,
        "remark": remark,
        "words": {
            "rounds": f"{priced.rounds:,}",
            "time": time,
            "energy": energy,
            "cost": number(priced.cost),
            "co2": f"{number(prices.co2_g(priced.energy_j))} g CO2"
            if prices is not None and prices.co2_g_per_kwh
            else "",
        },
    }


def _message(question: Question, plan: Plan) -> str:
    parts = [plan.message]
    if question.convergence.relative_to:
        parts.append(
            "Rounds, time, energy, cost and limits are in relative units: they are for "
            f"{question.convergence.relative_to}."
        )
    if question.estimate is not None:
        parts.append(f"Pilots: {question.estimate.message}")
    return " ".join(parts)


def _basis(question: Question, plan: Plan) -> str:
    if question.prices is not None:
        return plan.unit
    weight = question.energy_weight
    return f"energy weight {weight:g}" if weight else "time alone"


def _facts(question: Question) -> dict[str, Any]:
    return {
        "name": question.devices.name,
        "num_clients": len(question.fleet),
        "entries": int(question.fleet.count.size),
        "summary": {
            name: {key: round_number(value) for key, value in values.items()}
            for name, values in question.devices.summary.items()
        },
    }


def _scales(question: Question, surface: Surface) -> dict[str, list[float]]:
    """The values of each slider: by ratio, round numbers, the same while prices and limits move."""
    times, energies = surface.time_s, surface.energy_j
    scales = {
        "deadline_s": _ladder(0.5 * float(times.min()), 20.0 * float(times.min())),
        "clients_per_round": lattice(1, len(question.fleet), _LADDER).tolist(),
        "local_steps": lattice(1, 2 * int(surface.local_steps[-1]), _LADDER).tolist(),
    }
    if energies.any():
        least = float(energies[energies > 0].min())
        scales["energy_budget_j"] = _ladder(0.5 * least, 20.0 * least)
    known = question.reference
    intervals = known.intervals if isinstance(known, Estimate) else {}
    reference = known.bound if isinstance(known, Estimate) else known
    for name in ("a0", "b0", "c0"):
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
    values = np.geomspace(low, high, _LADDER)
    return sorted({float(f"{value:.3g}") for value in values.tolist()})
