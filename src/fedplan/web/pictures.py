"""Pictures: the figures of a plan, as plotly JSON.

Each stands under the id of the page's element for it: its drawing, a title where the page has none,
and the head of the table that says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.plan import Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.figures.axes import count_axis, fit_axis
from fedplan.figures.cost_map import allowed_part, cost_panels, grid_surface
from fedplan.figures.devices import devices_panel
from fedplan.figures.frontier import Mark, frontier_panel
from fedplan.figures.plan import plan_marks
from fedplan.figures.save import page_figure
from fedplan.figures.spec import Figure, Line, Panel, alone, spot
from fedplan.figures.style import BY_ROLE
from fedplan.figures.turns import plan_turns_data
from fedplan.participation.slowest import log_choose_ratio
from fedplan.planning.frontier import FrontierPoint, frontier_of
from fedplan.planning.sensitivity import other_bounds
from fedplan.planning.surface import Surface, cost_surface
from fedplan.web.question import Question
from fedplan.words import NO_UNIT, extra, seconds

_MAP_POINTS = 48  # an axis of the map: smooth, and little to send
_HIGHEST_RATIO = 3.0  # of cost curves; what is dearer is off the picture
_SLOWEST = 6  # devices that are listed


def pictures_of(
    question: Question, plan: Plan, chosen: Prediction | None, current: Prediction | None
) -> dict[str, Any]:
    """Those of a plan, or None: devices of any; groups of turns; maps of uniform sampling by bound.

    chosen, current : what the plan's setting takes, stragglers counted, and the user's own.
    """
    clients, steps, waits = None, 1, None
    if chosen is not None:
        clients, steps = chosen.clients_per_round, chosen.local_steps
        words = "a round on average" if clients is None else f"a round waits (K={clients:,})"
        waits = words, chosen.time_s / chosen.expected_rounds
    is_drawn_alike = plan.participation in ("uniform", "shuffled")
    head = ("a round takes", "devices", *(["group"] if plan.groups else []))
    devices = devices_panel(question.fleet, steps, waits, plan.groups)
    pictures: dict[str, Any] = dict.fromkeys(("turns", "frontier", "map", "steps", "clients"))
    if question.method is not None:
        pictures |= _over_settings(question, plan, chosen, current)
    return pictures | {
        "histogram": _drawn(alone(devices), *head),
        "slowest": _slowest(question.fleet, steps, clients or 1) if is_drawn_alike else [],
        "turns": _turns(plan) if plan.groups else None,
        "note": "" if question.method is not None else _why_no_map(question.participation),
    }


def _why_no_map(law: str) -> str:
    lists = f"`fedplan frontier --participation {law}` lists time against energy."
    if law == "uniform":
        lists = "Nothing was measured: give a bound or pilots under Convergence."
    return f"Maps and curves over K and E are of uniform sampling by a bound. {lists}"


def _over_settings(
    question: Question, plan: Plan, chosen: Prediction | None, current: Prediction | None
) -> dict[str, Any]:
    """The frontier, the map, and curves through the plan, all within the ranges of K and E."""
    if isinstance(question.knowledge, Saturation):
        raise TypeError("a method is of a bound")
    known = question.knowledge.at_gap(question.convergence.target_gap)
    bound, plausible, limits = what_is_known(known, question.problem.limits)
    problem = replace(question.problem, limits=limits)
    settings = [] if plan.prediction is None else [plan.prediction.pair]
    whole = grid_surface(problem, bound, settings)
    part, marks = allowed_part(whole, problem, bound, settings), _marks(plan, chosen, current)
    relative = question.convergence.relative_to or ""
    curves: dict[str, Any] = {}
    if settings:
        others = [other for _, other in other_bounds(bound, tuple(plausible))]
        curves = _curves(problem, whole, settings[0], [bound, *others])
    return curves | {
        "frontier": _frontier(part, marks, question.problem.limits, relative),
        "map": _map(part, marks, question.problem),
    }


def _drawn(data: Figure, *head: str, title: str = "") -> dict[str, Any]:
    return {"title": title, "head": head, **page_figure(data)}


def _turns(plan: Plan) -> dict[str, Any]:
    """Who trains when, for a wide and for a narrow screen."""
    drawings = {"wide": plan_turns_data(plan), "narrow": plan_turns_data(plan, narrow=True)}
    return {
        size: _drawn(data, "round", "its length", title=f"{data.panels[0].title}.")
        for size, data in drawings.items()
    }


def _frontier(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, relative: str
) -> dict[str, Any]:
    """The time-energy frontier within the ranges of K and E; limits on totals are lines."""
    points = frontier_of(surface, Constraints())
    met = constraints.met(
        [p.time_s for p in points],
        [p.energy_j for p in points],
        [_rounds_at(surface, p) for p in points] if constraints.max_rounds is not None else 0.0,
    )
    panel = frontier_panel(points, marks, relative=relative, constraints=constraints, met=met)
    return _drawn(alone(panel), "setting", "time and energy", "energy weights")


def _map(surface: Surface, marks: Sequence[Mark], problem: Problem) -> dict[str, Any] | None:
    """Extra cost over (K, E); none where K or E has a single value, for there is a curve."""
    if min(surface.cost.shape) == 1:
        return None
    panels = cost_panels(surface, marks, problem, points=_MAP_POINTS)
    data = Figure(title="", rows=(panels,), size=(7.4, 4.6))
    return _drawn(data, "setting", panels[0].y.label, title=panels[0].title)


def _curves(
    problem: Problem, whole: Surface, chosen: tuple[int, int], bounds: Sequence[Bound]
) -> dict[str, Any]:
    """Cost over the plan's along E and along K, and the band of it if the bound were another.

    A band is the lowest and the highest ratio over the bounds, the first of which is the plan's,
    each to the plan's own cost under the same bound.
    """
    ks, es = whole.clients_per_round, whole.local_steps
    row, column = int(np.searchsorted(ks, chosen[0])), int(np.searchsorted(es, chosen[1]))

    def ratios(rows: slice, columns: slice, place: int) -> FloatArray:
        part = rows, columns
        seconds_of_round = whole.time_s[part] / whole.expected_rounds[part]
        found = [
            cost_surface(
                problem.fleet, bound, problem.objective, ks[rows], es[columns],
                seconds=seconds_of_round,
            )
            for bound in bounds
        ]  # fmt: skip
        costs = [(one.cost if one.cost.any() else one.time_s).ravel() for one in found]
        return np.stack([cost / cost[place] for cost in costs])

    every, one_row, one_column = slice(None), slice(row, row + 1), slice(column, column + 1)
    by_steps, by_clients = ratios(one_row, every, column), ratios(every, one_column, row)
    panels = {
        "steps": _curve(es, by_steps, chosen[1], "local steps E"),
        "clients": _curve(ks, by_clients, chosen[0], "clients per round K"),
    }
    return {
        name: _drawn(alone(panel), panel.x.label, "cost / the plan's")
        for name, panel in panels.items()
    }


def _curve(values: IntArray, ratios: FloatArray, chosen: int, label: str) -> Panel:
    shown = np.flatnonzero(ratios[0] <= _HIGHEST_RATIO)
    part = slice(max(int(shown[0]) - 1, 0), int(shown[-1]) + 2)
    x, y = values[part].astype(float), ratios[0, part]
    low, high = ratios[:, part].min(axis=0), ratios[:, part].max(axis=0)
    hovers = tuple(
        f"{at:,.0f}\n{ratio:.3f}, or {least:.3f} to {most:.3f}"
        for at, ratio, least, most in zip(x, y, low, high, strict=True)
    )
    line = Line(
        x=x,
        y=y,
        low=low,
        high=high,
        width=2.0,
        name="as planned (shaded: by other bounds)",
        hover=hovers,
    )
    top = max(min(float(y.max()), _HIGHEST_RATIO), 1.02)
    return Panel(
        x=count_axis(label, int(x[0]), int(x[-1])),
        y=fit_axis("cost / the plan's", NO_UNIT, [min(1.0, float(y.min())), top], log=False),
        parts=(line, spot(chosen, 1.0, BY_ROLE["chosen"])),
    )


def _slowest(fleet: Fleet, local_steps: int, k: int) -> list[list[str]]:
    """The slowest entries: how many, how long, and how often a round of K waits for them."""
    times = fleet.round_times_s(local_steps)
    some = np.argpartition(times, max(times.size - _SLOWEST, 0))[-_SLOWEST:]
    order = some[np.argsort(times[some])[::-1]]
    slower = np.concatenate([[0.0], np.cumsum(fleet.count[order])])
    # The chance that a sample has none of the slowest devices, the more of them the smaller.
    n, chosen = np.full(slower.shape, float(len(fleet))), np.full(slower.shape, float(k))
    shares = -np.diff(np.exp(log_choose_ratio(n, slower, chosen)))
    names = fleet.device or ("",) * times.size
    return [
        [
            names[entry] or f"row {entry + 1:,}",
            f"{fleet.count[entry]:,}",
            seconds(float(times[entry])),
            f"{share:.1%}",
        ]
        for entry, share in zip(order.tolist(), shares.tolist(), strict=True)
    ]


def _marks(plan: Plan, chosen: Prediction | None, current: Prediction | None) -> list[Mark]:
    """The plan, the paper's and the user's own: a table has the others."""
    marks = [mark for mark in plan_marks(plan, chosen) if mark.role != "other"]
    if current is not None:
        remark = extra(current.cost / chosen.cost) if chosen is not None and chosen.cost else ""
        marks.append(Mark(current, "your setting", "current", remark))
    return marks


def _rounds_at(surface: Surface, point: FrontierPoint) -> float:
    clients, steps = point.pair
    row = np.searchsorted(surface.clients_per_round, clients)
    column = np.searchsorted(surface.local_steps, steps)
    return float(surface.expected_rounds[row, column])
