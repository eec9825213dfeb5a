"""The frontier: the settings that nothing beats on both time and energy, and marks among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedplan.convergence.pilots import DESCENT
from fedplan.core.constraints import Constraints
from fedplan.errors import InputError
from fedplan.figures.spec import Figure, Line, Panel, Part, Points, rule, spot
from fedplan.figures.style import BLUE, PALE, Look, looks
from fedplan.figures.units import Axis, energy_unit, fit_axis, near, quantity, time_unit

if TYPE_CHECKING:
    from fedplan.core.prediction import Prediction
    from fedplan.planning.frontier import FrontierPoint

Role = Literal["chosen", "paper", "lowest", "pilot", "current", "other"]

TITLE = "Time-energy frontier"
_MANY = 150  # points from which on smaller dots read better
_POINT = 1.25  # a frontier whose time and energy differ by no more than this is all but a point
_ARROWS = {1: {-1: "↖", 0: "↑", 1: "↗"}, 0: {-1: "←", 0: "", 1: "→"}, -1: {-1: "↙", 0: "↓", 1: "↘"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One setting to point out; `remark` compares it with the plan, and is empty for the plan."""

    name: str
    role: Role
    clients_per_round: int
    local_steps: int
    time_s: float
    energy_j: float
    remark: str = ""

    @classmethod
    def at(
        cls, place: FrontierPoint | Prediction, name: str, role: Role = "other", remark: str = ""
    ) -> Mark:
        """A mark where a frontier point or a prediction is."""
        clients, steps = place.pair
        return cls(
            name=name,
            role=role,
            clients_per_round=clients,
            local_steps=steps,
            time_s=place.time_s,
            energy_j=place.energy_j,
            remark=remark,
        )

    @property
    def label(self) -> str:
        """The name with K and E: "fedplan: K=24, E=24"."""
        return f"{self.name}: K={self.clients_per_round:,}, E={self.local_steps:,}"

    @property
    def legend(self) -> str:
        """The label with the remark: "the paper's method: K=7, E=29 (+26%)"."""
        return f"{self.label} ({self.remark})" if self.remark else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierView:
    """The time-energy frontier on axes that suit it.

    points : by rising time; those with `energy_weight_from` None are drawn lighter.
    marks : settings pointed out, the plan first; those an axis does not reach are pinned to it.
    deadline_s, energy_budget_j : limits to draw, if any.
    note : what the reader must know of the units, or an empty string.
    """

    points: tuple[FrontierPoint, ...]
    marks: tuple[Mark, ...]
    time: Axis
    energy: Axis
    deadline_s: float | None = None
    energy_budget_j: float | None = None
    note: str = ""

    def shows(self, mark: Mark) -> bool:
        """Whether a mark lies within both axes."""
        return self.time.has(mark.time_s) and self.energy.has(mark.energy_j)

    def whereabouts(self, mark: Mark) -> str:
        """Where a mark beyond the axes is: an arrow towards it, its time and its energy."""
        arrow = _ARROWS[self.energy.side(mark.energy_j)][self.time.side(mark.time_s)]
        return f"{arrow} {totals(mark)}"

    def panel(self) -> Panel:
        """The panel: the frontier, limits, and the marks; those not on it say where they are."""
        return Panel(
            title=TITLE,
            x=self.time,
            y=self.energy,
            parts=(*self._frontier(), *self._limits(), *self._mark_parts()),
            height=4.6,
        )

    def _frontier(self) -> list[Part]:
        x = np.array([point.time_s for point in self.points])
        y = np.array([point.energy_j for point in self.points])
        texts = [_point_text(point) for point in self.points]
        selected = np.array([point.energy_weight_from is not None for point in self.points], bool)
        size = 4.5 if len(self.points) < _MANY else 3.0
        parts: list[Part] = [Line(x=x, y=y, colour=PALE, width=1.4)]
        for colour, chosen, name in (
            (BLUE, selected, "frontier"),
            (PALE, ~selected, "frontier, selected by no energy weight"),
        ):
            if chosen.any():
                parts.append(
                    Points(
                        x=x[chosen],
                        y=y[chosen],
                        look=Look(colour=colour, symbol="circle", size=size),
                        hollow=colour == PALE,
                        name=name,
                        layer=1 + (colour == BLUE),
                        hover=tuple(texts[place] for place in np.flatnonzero(chosen)),
                    )
                )
        return parts

    def limits(self) -> list[tuple[str, float, str]]:
        """Limits on the axes: which of x and y, where, and what it is called."""
        found = (
            ("x", self.deadline_s, self.time, "deadline"),
            ("y", self.energy_budget_j, self.energy, "energy budget"),
        )
        return [
            (along, limit, f"{name}: {quantity(limit, axis.unit)}")
            for along, limit, axis, name in found
            if limit is not None and axis.has(limit)
        ]

    def _limits(self) -> list[Part]:
        return [
            rule(at, self.energy, name, "dash") if along == "x" else rule(self.time, at, name)
            for along, at, name in self.limits()
        ]

    def _mark_parts(self) -> list[Part]:
        """The plan is named where it stands; a mark beyond the axes says where it is."""
        parts: list[Part] = []
        for mark, look in zip(self.marks, looks(self.marks), strict=True):
            place = self.time.kept(mark.time_s), self.energy.kept(mark.energy_j)
            label = "" if mark.remark else mark.label
            if not self.shows(mark):
                label = self.whereabouts(mark)
            words = f"<b>{mark.legend}</b>\n{totals(mark)}"
            is_bold = mark.role == "chosen"
            parts.append(
                spot(*place, look, name=mark.legend, label=label, bold=is_bold, hover=words)
            )
        return parts


def frontier_figure_data(
    points: Sequence[FrontierPoint], *, relative: bool | str = False
) -> Figure:
    """Data of the frontier alone, its two ends marked.

    relative : whether seconds and joules are relative, or the words for what they are for.

    >>> from fedplan import Bound, Fleet, compute_frontier
    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0)
    >>> data = frontier_figure_data(compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)))
    >>> [part.label for part in data.panels[0].parts[-2:]], data.panels[0].x.label
    (['fastest: K=2, E=6', 'least energy: K=2, E=10'], 'time to target (s)')
    """
    if not points:
        raise InputError(
            "a frontier needs at least one point, but there is none: no setting meets the limits. "
            "Raise the deadline, the energy budget or max_rounds."
        )
    ends = {"fastest": points[0], "least energy": points[-1]}
    if len(points) == 1:
        ends = {"fastest, and least energy": points[0]}
    marks = [Mark.at(point, name) for name, point in ends.items()]
    view = frontier_view(points, marks, relative=relative)
    return Figure(title=TITLE, rows=((view.panel(),),), size=(7.0, 4.6), note=view.note)


def frontier_view(
    points: Sequence[FrontierPoint],
    marks: Sequence[Mark],
    *,
    relative: bool | str = False,
    constraints: Constraints | None = None,
) -> FrontierView:
    """A frontier and marks on axes that fit the frontier and the chosen setting first."""
    limits = constraints or Constraints()
    chosen = [mark for mark in marks if mark.role == "chosen"]
    core: list[FrontierPoint | Mark] = [*points, *chosen]
    typical: Sequence[FrontierPoint | Mark] = chosen or points
    times, energies = [item.time_s for item in core], [item.energy_j for item in core]
    # A frontier that is all but a point cannot be squashed: then every mark is shown.
    is_point = max(times) <= _POINT * min(times) and max(energies) <= _POINT * min(energies)
    shown = [
        mark
        for mark in marks
        if is_point or (near(times, mark.time_s) and near(energies, mark.energy_j))
    ]
    return FrontierView(
        points=tuple(points),
        marks=tuple(marks),
        time=fit_axis(
            axis_name("time", relative),
            time_unit(median(item.time_s for item in typical)),
            [*times, *(mark.time_s for mark in shown), *_near_limit(times, limits.deadline_s)],
        ),
        energy=fit_axis(
            axis_name("energy", relative),
            energy_unit(median(item.energy_j for item in typical)),
            [
                *energies,
                *(mark.energy_j for mark in shown),
                *_near_limit(energies, limits.energy_budget_j),
            ],
        ),
        deadline_s=limits.deadline_s,
        energy_budget_j=limits.energy_budget_j,
        note=_note(relative, energies),
    )


def totals(item: Mark | FrontierPoint) -> str:
    """Time and energy people can read."""
    time = quantity(item.time_s, time_unit(item.time_s))
    return f"{time}, {quantity(item.energy_j, energy_unit(item.energy_j))}"


def _point_text(point: FrontierPoint) -> str:
    weights = "selected by no energy weight"
    if point.energy_weight_from is not None and point.energy_weight_to is not None:
        ends = f"{point.energy_weight_from:.3g} to {point.energy_weight_to:.3g}"
        weights = f"cheapest for energy weights {ends}"
    setting = f"<b>K={point.clients_per_round:,}, E={point.local_steps:,}</b>"
    return f"{setting}\n{totals(point)}\n{weights}"


def _near_limit(core: Sequence[float], limit: float | None) -> list[float]:
    return [] if limit is None or not near(core, limit) else [limit]


def _note(relative: bool | str, energies: Sequence[float]) -> str:
    notes = [units_note(relative)]
    if not any(energies):
        notes.append("No device reports any energy, so settings differ in time alone.")
    return " ".join(note for note in notes if note)


def axis_name(what: str, relative: bool | str) -> str:
    """What an axis of time or energy shows: how much it takes to the target, or of what else.

    >>> axis_name("time", False), axis_name("time", DESCENT), axis_name("energy", "b0 = 1")
    ('time to target', "time of the pilots' descent", 'relative energy')
    """
    if not relative:
        return f"{what} to target"
    return f"{what} of the pilots' descent" if relative == DESCENT else f"relative {what}"


def units_note(relative: bool | str) -> str:
    """What must be said of time and energy that are not absolute.

    >>> units_note(True), units_note("a target gap of 1")[-18:], units_note(False)
    ('Relative units: only ratios mean something.', 'a target gap of 1.', '')
    """
    if relative == DESCENT:
        return f"Time and energy are those of {DESCENT}, not to a target."
    if isinstance(relative, str) and relative:
        return f"Relative units: time and energy are for {relative}."
    return "Relative units: only ratios mean something." if relative else ""
