"""The frontier figure's data: the points nothing beats on both time and energy, and the marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from fedplan.errors import InputError
from fedplan.figures.units import Axis, energy_unit, fit_axis, near, quantity, time_unit
from fedplan.theory.constraints import Constraints
from fedplan.theory.pilots import DESCENT

if TYPE_CHECKING:
    from fedplan.theory.cost import Prediction
    from fedplan.theory.frontier import FrontierPoint

Role = Literal["chosen", "paper", "lowest", "pilot", "current", "other"]

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
        return cls(
            name=name,
            role=role,
            clients_per_round=place.clients_per_round,
            local_steps=place.local_steps,
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
class FrontierFigure:
    """The time-energy frontier, ready to be drawn.

    points : by rising time; those with `energy_weight_from` None are drawn lighter.
    marks : settings pointed out, the plan first; those an axis does not reach are pinned to it.
    deadline_s, energy_budget_j : limits to draw, if any.
    note : what the reader must know of the units, or an empty string.
    """

    title: str
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
        time = quantity(mark.time_s, time_unit(mark.time_s))
        return f"{arrow} {time}, {quantity(mark.energy_j, energy_unit(mark.energy_j))}"


def frontier_figure_data(
    points: Sequence[FrontierPoint], *, relative: bool | str = False
) -> FrontierFigure:
    """Data of the frontier alone, its two ends marked.

    relative : whether seconds and joules are relative, or the words for what they are for.

    >>> from fedplan import Bound, Fleet, compute_frontier
    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0)
    >>> data = frontier_figure_data(compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)))
    >>> [mark.label for mark in data.marks], data.time.label
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
    return frontier_panel(points, marks, relative=relative)


def frontier_panel(
    points: Sequence[FrontierPoint],
    marks: Sequence[Mark],
    *,
    relative: bool | str = False,
    constraints: Constraints | None = None,
) -> FrontierFigure:
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
    return FrontierFigure(
        title="Time-energy frontier",
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
