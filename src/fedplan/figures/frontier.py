"""The frontier figure: settings that nothing beats on both time and energy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedplan.convergence.pilots import DESCENT
from fedplan.core.constraints import Constraints
from fedplan.core.setting import Prediction, setting_label
from fedplan.errors import InputError
from fedplan.figures.axes import Axis, fit_axis, near
from fedplan.figures.spec import Figure, Line, Panel, Part, Points, Texts, alone, rule, spot
from fedplan.figures.style import BLUE, BY_ROLE, GREY, OTHERS, PALE, Look
from fedplan.planning.frontier import FrontierPoint
from fedplan.words import Unit, energy_unit, quantity, time_unit, totals

Role = Literal["chosen", "paper", "current", "other"]

TITLE = "Time-energy frontier"
_MANY = 150  # points from which on smaller dots read better
_POINT = 1.25  # a frontier whose time and energy span no more than this ratio is almost a point
_ARROWS = {1: {-1: "↖", 0: "↑", 1: "↗"}, 0: {-1: "←", 0: "", 1: "→"}, -1: {-1: "↙", 0: "↓", 1: "↘"}}

Place = tuple[float, float]

_MIDDLE, _NEAR_TOP = 0.5, 0.85  # shares of an axis


@dataclass(frozen=True, slots=True)
class Mark:
    """A setting to point out; `remark` compares it with the plan, and is empty for the plan."""

    place: FrontierPoint | Prediction
    name: str
    role: Role = "other"
    remark: str = ""

    @property
    def label(self) -> str:
        """The name with K and E: "fedplan: K=24, E=24"."""
        return f"{self.name}: {_setting(self.place)}"

    @property
    def legend(self) -> str:
        """The label with the remark: "the paper's method: K=7, E=29 (+26%)"."""
        return f"{self.label} ({self.remark})" if self.remark else self.label


def looks(marks: Sequence[Mark]) -> list[Look]:
    """A look for each mark."""
    others = cycle(OTHERS)
    return [BY_ROLE.get(mark.role) or next(others) for mark in marks]


def frontier_figure_data(points: Sequence[FrontierPoint], *, relative: str = "") -> Figure:
    """Data of the frontier alone, its two ends marked.

    relative : what seconds and joules are for, where that is not a target.

    >>> from fedplan import Bound, Fleet, compute_frontier
    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0)
    >>> data = frontier_figure_data(compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)))
    >>> [part.texts for part in data.panels[0].parts[-2:]], data.panels[0].x.label
    ([('fastest: K=2, E=6',), ('least energy: K=2, E=10',)], 'time to target (s)')
    """
    if not points:
        raise InputError(
            "a frontier needs at least one point, but there is none: no setting meets the limits. "
            "Raise the deadline, the energy budget or max_rounds."
        )
    ends = {"fastest": points[0], "least energy": points[-1]}
    if len(points) == 1:
        ends = {"fastest, and least energy": points[0]}
    panel = frontier_panel(
        points, [Mark(point, name) for name, point in ends.items()], relative=relative
    )
    return replace(alone(panel), note=frontier_note(points, relative))


def frontier_panel(
    points: Sequence[FrontierPoint],
    marks: Sequence[Mark],
    *,
    relative: str = "",
    constraints: Constraints | None = None,
    met: NDArray[np.bool_] | None = None,
) -> Panel:
    """The frontier, limits and marks, on axes that fit the frontier and the chosen setting first.

    points : by rising time; those that no energy weight selects are drawn lighter.
    marks : settings pointed out, the plan first; one beyond the axes says where it is.
    met : which of the points keep to all limits; all do where it is None.
    """
    limits = constraints or Constraints()
    time, energy = _axes(points, marks, relative, limits)
    parts = [*_frontier(points, met), *_limits(time, energy, limits)]
    labels: dict[Place, list[str]] = {}
    chosen: list[Place] = []
    for mark, look in zip(marks, looks(marks), strict=True):
        time_s, energy_j = mark.place.time_s, mark.place.energy_j
        place, words = (time.kept(time_s), energy.kept(energy_j)), totals(time_s, energy_j)
        hover = f"<b>{mark.legend}</b>\n{words}"
        parts.append(spot(*place, look, name=mark.legend, hover=hover))
        arrow = _ARROWS[energy.side(energy_j)][time.side(time_s)]
        label = f"{arrow} {words}" if arrow else "" if mark.remark else mark.label
        if label:
            labels.setdefault(place, []).append(label)
        if mark.role == "chosen":
            chosen.append(place)
    parts += [
        _label(time, energy, place, "\n".join(texts), bold=place in chosen)
        for place, texts in labels.items()
    ]
    return Panel(title=TITLE, x=time, y=energy, parts=tuple(parts), height=4.6)


def _axes(
    points: Sequence[FrontierPoint], marks: Sequence[Mark], relative: str, limits: Constraints
) -> tuple[Axis, Axis]:
    chosen = [mark.place for mark in marks if mark.role == "chosen"]
    core, typical = [*points, *chosen], chosen or points
    cores = {key: [getattr(one, key) for one in core] for key in ("time_s", "energy_j")}
    # A frontier that is all but a point cannot be squashed: then every mark is shown.
    is_point = all(max(values) <= _POINT * min(values) for values in cores.values())
    shown = [
        mark.place
        for mark in marks
        if is_point or all(near(cores[key], getattr(mark.place, key)) for key in cores)
    ]

    def axis(what: str, key: str, unit_of: Callable[[float], Unit], limit: float | None) -> Axis:
        values = [*cores[key], *(getattr(place, key) for place in shown)]
        if limit is not None and near(cores[key], limit):
            values.append(limit)
        unit = unit_of(median(getattr(one, key) for one in typical))
        return fit_axis(axis_name(what, relative), unit, values)

    return (
        axis("time", "time_s", time_unit, limits.deadline_s),
        axis("energy", "energy_j", energy_unit, limits.energy_budget_j),
    )


def _frontier(points: Sequence[FrontierPoint], met: NDArray[np.bool_] | None) -> list[Part]:
    x = np.array([point.time_s for point in points])
    y = np.array([point.energy_j for point in points])
    allowed = np.full(x.size, fill_value=True) if met is None else met
    selected = np.array([point.energy_weight_from is not None for point in points], dtype=bool)
    size = 4.5 if len(points) < _MANY else 3.0
    parts: list[Part] = [Line(x=x, y=y, colour=PALE, width=1.4)]
    for colour, chosen, name in (
        (BLUE, selected & allowed, "frontier"),
        (PALE, ~selected & allowed, "frontier, selected by no energy weight"),
        (GREY, ~allowed, "over a limit"),
    ):
        if chosen.any():
            some = [points[place] for place in np.flatnonzero(chosen).tolist()]
            parts.append(
                Points(
                    x=x[chosen],
                    y=y[chosen],
                    look=Look(colour=colour, symbol="circle", size=size),
                    hollow=colour != BLUE,
                    name=name,
                    layer=1 + (colour == BLUE),
                    hover=tuple(_point_text(point) for point in some),
                    keys=tuple(point.pair for point in some),
                )
            )
    return parts


def _limits(time: Axis, energy: Axis, limits: Constraints) -> list[Part]:
    found: list[Part] = []
    if limits.deadline_s is not None and time.has(limits.deadline_s):
        name = f"deadline: {quantity(limits.deadline_s, time.unit)}"
        found.append(rule(limits.deadline_s, energy, name, "dash"))
    if limits.energy_budget_j is not None and energy.has(limits.energy_budget_j):
        name = f"energy budget: {quantity(limits.energy_budget_j, energy.unit)}"
        found.append(rule(time, limits.energy_budget_j, name))
    return found


def _setting(place: FrontierPoint | Prediction) -> str:
    groups = place.groups if isinstance(place, FrontierPoint) else None
    return setting_label("uniform", place.clients_per_round, groups, place.local_steps)


def _point_text(point: FrontierPoint) -> str:
    weights = "selected by no energy weight"
    if point.energy_weight_from is not None and point.energy_weight_to is not None:
        ends = f"{point.energy_weight_from:.3g} to {point.energy_weight_to:.3g}"
        weights = f"cheapest for energy weights {ends}"
    return f"<b>{_setting(point)}</b>\n{totals(point.time_s, point.energy_j)}\n{weights}"


def axis_name(what: str, relative: str) -> str:
    """The name of an axis of time or energy, to the target or relative to something else.

    >>> axis_name("time", ""), axis_name("time", DESCENT), axis_name("energy", "b0 = 1")
    ('time to target', "time of the pilots' descent", 'relative energy')
    """
    if not relative:
        return f"{what} to target"
    return f"{what} of the pilots' descent" if relative == DESCENT else f"relative {what}"


def frontier_note(places: Sequence[FrontierPoint | Prediction], relative: str) -> str:
    """A note on time and energy that are relative, or on energy that is 0."""
    notes = []
    if relative == DESCENT:
        notes.append(f"Time and energy are those of {DESCENT}, not to a target.")
    elif relative:
        notes.append(f"Relative units: time and energy are for {relative}.")
    if not any(place.energy_j for place in places):
        notes.append("No device reports any energy, so settings differ in time alone.")
    return " ".join(notes)


def _label(time: Axis, energy: Axis, place: Place, text: str, *, bold: bool) -> Texts:
    """A text on the side where a falling frontier leaves room: above, and towards the middle."""
    (across,), (up,) = time.shares([place[0]]), energy.shares([place[1]])
    side = (1 if across < _MIDDLE else -1, 1 if up < _NEAR_TOP else 0)
    x, y = np.array([place[0]]), np.array([place[1]])
    return Texts(x=x, y=y, texts=(text,), side=side, bold=bold, layer=10)
