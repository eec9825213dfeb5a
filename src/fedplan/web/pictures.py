"""Pictures: which figures a plan has, by who trains when and by what is known, as plotly's JSON.

Each stands under the id of the page's element for it: its drawing, a title where the page has none,
and the head of the table that says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.plan import GroupCost, Plan
from fedplan.core.prediction import Prediction
from fedplan.figures.axes import count_axis, fit_axis
from fedplan.figures.cost_map import cost_panels
from fedplan.figures.devices import devices_panel
from fedplan.figures.frontier import Mark, frontier_panel
from fedplan.figures.plan import plan_marks
from fedplan.figures.save import page_figure
from fedplan.figures.spec import Figure, Line, Panel, alone, spot
from fedplan.figures.style import BY_ROLE
from fedplan.figures.turns import plan_turns_data
from fedplan.participation.slowest import log_choose_ratio
from fedplan.participation.uniform import round_time_s
from fedplan.planning.frontier import FrontierPoint, frontier_of
from fedplan.planning.sensitivity import other_bounds
from fedplan.planning.surface import Surface
from fedplan.web.grids import Grid
from fedplan.web.question import Question
from fedplan.words import NO_UNIT, extra, seconds

_MAP_POINTS = 48  # an axis of the map: smooth, and little to send
_HIGHEST_RATIO = 3.0  # of cost curves; what is dearer is off the picture
_SLOWEST = 6  # devices that are listed
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
_NONE = dict.fromkeys(("turns", "frontier", "map", "steps", "clients"))


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
    steps = 1 if found is None else found.local_steps
    return {
        **_NONE,
        **_devices(question.fleet, steps, waits, sampled, plan.groups),
        "turns": _turns(plan) if plan.groups else None,
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
    curves, waits, (k, e) = dict[str, Any](), None, (1, 1)
    if settings:
        k, e = settings[0]
        curves = _curves(question, grid, (k, e), plausible)
        waits = f"a round waits (K={k:,})", round_time_s(question.fleet, k, e)
    return {
        **_NONE,
        **curves,
        "frontier": _frontier(part, marks, question.problem.limits, relative),
        "map": _map(part, marks, question, plan),
        **_devices(question.fleet, e, waits, k),
        "note": "",
    }


def _drawn(data: Figure, *head: str, title: str = "") -> dict[str, Any]:
    return {"title": title, "head": head, **page_figure(data)}


def _devices(
    fleet: Fleet,
    steps: int,
    waits: tuple[str, float] | None,
    sampled: int | None,
    groups: Sequence[GroupCost] = (),
) -> dict[str, Any]:
    """How long a round takes each device, and who the slowest are where K are drawn at random."""
    head = ("a round takes", "devices", *(["group"] if groups else []))
    return {
        "histogram": _drawn(alone(devices_panel(fleet, steps, waits, groups)), *head),
        "slowest": [] if sampled is None else _slowest(fleet, steps, sampled),
    }


def _turns(plan: Plan) -> dict[str, Any]:
    """Who trains when, for a wide and for a narrow screen."""
    drawings = {"wide": plan_turns_data(plan), "narrow": plan_turns_data(plan, narrow=True)}
    return {
        size: _drawn(data, "round", "its length", title=f"{data.panels[0].title}.")
        for size, data in drawings.items()
    }


def _frontier(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, relative: str | bool
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


def _map(
    surface: Surface, marks: Sequence[Mark], question: Question, plan: Plan
) -> dict[str, Any] | None:
    """Extra cost over (K, E); none where K or E has a single value, for there is a curve."""
    if min(surface.cost.shape) == 1:
        return None
    weight = question.problem.objective.energy_weight
    basis = f"energy weight {weight:g}" if weight else "time alone"
    if question.prices is not None:
        basis = plan.unit
    limits = question.problem.limits
    panels = cost_panels(surface, marks, limits, basis=basis, points=_MAP_POINTS)
    data = Figure(title="", rows=(panels,), size=(7.4, 4.6))
    return _drawn(data, "setting", panels[0].y.label, title=panels[0].title)


def _curves(
    question: Question, grid: Grid, chosen: tuple[int, int], plausible: tuple[Bound, ...]
) -> dict[str, Any]:
    """Cost over the plan's along E and along K, and the band of it if the bound were another.

    A band is the lowest and the highest ratio over the other bounds, each to the plan's own cost
    under the same bound.
    """
    row = int(np.searchsorted(grid.clients_per_round, chosen[0]))
    column = int(np.searchsorted(grid.local_steps, chosen[1]))
    gap, others = question.convergence.target_gap, other_bounds(grid.bound, plausible)

    def ratios(bound: Bound | None) -> tuple[FloatArray, FloatArray]:
        surface = grid.surface(question.problem.objective, gap, bound=bound)
        cost = surface.cost if surface.cost.any() else surface.time_s
        return cost[row] / cost[row, column], cost[:, column] / cost[row, column]

    every = [ratios(bound) for bound in (None, *(other for _, other in others))]
    by_steps, by_clients = (np.stack([one[along] for one in every]) for along in (0, 1))
    panels = {
        "steps": _curve(grid.local_steps, by_steps, chosen[1], "local steps E"),
        "clients": _curve(grid.clients_per_round, by_clients, chosen[0], "clients per round K"),
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
        marks.append(Mark.at(current, "your setting", "current", remark))
    return marks


def _rounds_at(surface: Surface, point: FrontierPoint) -> float:
    clients, steps = point.pair
    row = np.searchsorted(surface.clients_per_round, clients)
    column = np.searchsorted(surface.local_steps, steps)
    return float(surface.expected_rounds[row, column])
