"""Pictures: the figures of a plan, as plotly JSON.

Each is found by the id of its element on the page: its drawing, a title where the page has none,
and the head of the table that says the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import what_is_known
from fedplan.convergence.saturation import Saturation
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.plan import Plan
from fedplan.core.problem import Problem
from fedplan.core.setting import Prediction
from fedplan.figures.cost_map import allowed_part, cost_curve, cost_panels, grid_surface
from fedplan.figures.devices import devices_panel
from fedplan.figures.frontier import Mark, frontier_panel
from fedplan.figures.save import page_figure
from fedplan.figures.spec import Figure, Panel, alone, spot
from fedplan.figures.style import BY_ROLE
from fedplan.figures.turns import plan_turns_data
from fedplan.participation.slowest import log_choose_ratio
from fedplan.planning.frontier import frontier_of
from fedplan.planning.sensitivity import other_bounds
from fedplan.planning.surface import Surface, cost_surface
from fedplan.web.question import Question
from fedplan.words import seconds

_MAP_POINTS = 48  # per axis of the map: smooth, and little to send
_RATIO = "cost / the plan's"
_SLOWEST = 6  # devices that are listed


_OF_SOME = ("turns", "bills", "frontier", "map", "steps", "clients")  # not of every plan


def pictures_of(
    question: Question, plan: Plan, chosen: Prediction | None, marks: Sequence[Mark]
) -> dict[str, Any]:
    """Devices for any plan, groups for turns, maps for uniform sampling by a bound; or else None.

    chosen : what the plan's setting takes, stragglers counted; `marks` are settings to point out.
    """
    clients, steps, waits = None, 1, None
    if chosen is not None:
        clients, steps = chosen.clients_per_round, chosen.local_steps
        words = "a round on average" if clients is None else f"a round waits (K={clients:,})"
        waits = words, chosen.time_s / chosen.expected_rounds
    is_drawn_alike = plan.participation in ("uniform", "shuffled")
    head = ("a round takes", "devices", *(["group"] if plan.groups else []))
    devices = devices_panel(question.fleet, steps, waits, plan.groups)
    shown: dict[str, Any] = dict.fromkeys(_OF_SOME)
    if plan.groups:
        shown |= _of_turns(plan)
    if question.method is not None:
        shown |= _over_settings(question, plan, marks)
    return shown | {
        "histogram": _drawn(alone(devices), *head),
        "slowest": _slowest(question.fleet, steps, clients or 1) if is_drawn_alike else [],
        "note": "" if question.method is not None else _why_no_map(question.participation),
    }


def _why_no_map(law: str) -> str:
    lists = f"`fedplan frontier --participation {law}` lists time against energy."
    if law == "uniform":
        lists = "Nothing was measured: give a bound or pilots under Convergence."
    return f"Maps and curves over K and E are of uniform sampling by a bound. {lists}"


def _over_settings(question: Question, plan: Plan, marks: Sequence[Mark]) -> dict[str, Any]:
    """The frontier, the map, and curves through the plan, all within the ranges of K and E."""
    if isinstance(question.knowledge, Saturation):
        raise TypeError("a method is of a bound")
    known = question.knowledge.at_gap(question.convergence.target_gap)
    bound, plausible, limits = what_is_known(known, question.problem.limits)
    problem = replace(question.problem, limits=limits)
    settings = [] if plan.prediction is None else [plan.prediction.pair]
    whole = grid_surface(problem, bound, settings)
    part = allowed_part(whole, problem, bound, settings)
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


def _of_turns(plan: Plan) -> dict[str, Any]:
    """Who trains when, and the bill beside that of uniform sampling; both fit a phone."""
    (turns, *_), bills = plan_turns_data(plan, most_bills=2).rows
    return {
        "turns": _drawn(alone(turns), "round", "its length", title=turns.words),
        "bills": _drawn(alone(*bills), "way", "what it takes"),
    }


def _frontier(
    surface: Surface, marks: Sequence[Mark], constraints: Constraints, relative: str
) -> dict[str, Any]:
    """The time-energy frontier within the ranges of K and E; limits on totals are lines."""
    points = frontier_of(surface, Constraints())
    ks, es = np.array([point.pair for point in points]).T
    places = surface.clients_per_round.searchsorted(ks), surface.local_steps.searchsorted(es)
    met = constraints.met(surface.time_s, surface.energy_j, surface.expected_rounds)[places]
    panel = frontier_panel(points, marks, relative=relative, constraints=constraints, met=met)
    return _drawn(alone(panel), "setting", "time and energy", "energy weights")


def _map(surface: Surface, marks: Sequence[Mark], problem: Problem) -> dict[str, Any] | None:
    """Extra cost over (K, E); None if K or E has a single value, which has a curve."""
    if min(surface.cost.shape) == 1:
        return None
    panels = cost_panels(surface, marks, problem, points=_MAP_POINTS)
    data = Figure(title="", rows=(panels,), size=(7.4, 4.6))
    return _drawn(data, "setting", panels[0].y.label, title=panels[0].title)


def _curves(
    problem: Problem, whole: Surface, chosen: tuple[int, int], bounds: Sequence[Bound]
) -> dict[str, Any]:
    """Cost relative to the plan's along E and along K, with a band for other bounds.

    A band is the lowest and the highest ratio over the bounds, the first of which is the plan's;
    each ratio is to the plan's own cost under the same bound.
    """
    ks, es = whole.clients_per_round, whole.local_steps
    row, column = np.searchsorted(ks, chosen[0]), np.searchsorted(es, chosen[1])
    seconds_of_round = whole.time_s / whole.expected_rounds
    drawn = {}
    for name, label, values, at, part in (
        ("steps", "local steps E", es, chosen[1], np.s_[row : row + 1, :]),
        ("clients", "clients per round K", ks, chosen[0], np.s_[:, column : column + 1]),
    ):
        some, seconds_ = (ks[part[0]], es[part[1]]), seconds_of_round[part]
        found = [
            cost_surface(problem.fleet, bound, problem.objective, *some, seconds=seconds_)
            for bound in bounds
        ]
        costs = np.stack([(one.cost if one.cost.any() else one.time_s).ravel() for one in found])
        line, x, y = cost_curve(values, costs / costs[:, values == at], label, _RATIO)
        panel = Panel(x=x, y=y, parts=(line, spot(at, 1.0, BY_ROLE["chosen"])))
        drawn[name] = _drawn(alone(panel), label, _RATIO)
    return drawn


def _slowest(fleet: Fleet, local_steps: int, k: int) -> list[list[str]]:
    """The slowest entries: how many, how long, and how often a round of K waits for them."""
    times = fleet.round_times_s(local_steps)
    some = np.argpartition(times, max(times.size - _SLOWEST, 0))[-_SLOWEST:]
    order = some[np.argsort(times[some])[::-1]]
    slower = np.concatenate([[0.0], np.cumsum(fleet.count[order])])
    # The chance that a sample has none of the slowest 0, 1, 2, ... entries.
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
