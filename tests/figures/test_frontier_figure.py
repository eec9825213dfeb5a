"""The frontier figure's data."""

from __future__ import annotations

import pytest

from fedplan.errors import InputError
from fedplan.figures import FrontierFigure, frontier_figure_data
from fedplan.figures.frontier import Mark, frontier_panel
from fedplan.theory.constraints import Constraints
from fedplan.theory.convergence import Bound
from fedplan.theory.fleet import Fleet
from fedplan.theory.frontier import FrontierPoint, compute_frontier


def point(time_s: float, energy_j: float) -> FrontierPoint:
    return FrontierPoint(
        clients_per_round=2,
        local_steps=3,
        time_s=time_s,
        energy_j=energy_j,
        energy_weight_from=0.0,
        energy_weight_to=1.0,
    )


def test_it_holds_the_library_s_own_points(
    fleet: Fleet, bound: Bound, frontier_data: FrontierFigure
) -> None:
    assert list(frontier_data.points) == compute_frontier(fleet, bound)


def test_its_ends_are_marked(frontier_data: FrontierFigure) -> None:
    first, last = frontier_data.points[0], frontier_data.points[-1]
    fastest, least = frontier_data.marks
    assert fastest.label == f"fastest: K={first.clients_per_round}, E={first.local_steps}"
    assert (least.time_s, least.energy_j) == (last.time_s, last.energy_j)
    assert least.name == "least energy"


def test_axes_say_their_units_and_are_logarithmic_only_where_needed(
    frontier_data: FrontierFigure,
) -> None:
    assert frontier_data.time.label == "time to target (min)"
    assert frontier_data.energy.label == "energy to target (J)"
    assert (frontier_data.time.log, frontier_data.energy.log) == (False, True)


def test_a_single_point_is_fastest_and_least_energy() -> None:
    data = frontier_figure_data([point(5.0, 1.0)])
    assert [mark.label for mark in data.marks] == ["fastest, and least energy: K=2, E=3"]


def test_no_points_is_an_input_error_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r"no setting meets the limits\. Raise the deadline"):
        frontier_figure_data([])


@pytest.mark.parametrize(
    ("relative", "note"),
    [
        (False, ""),
        ("", ""),
        (True, "Relative units: only ratios mean something."),
        ("a gap of 1", "Relative units: time and energy are for a gap of 1."),
    ],
)
def test_relative_units_are_noted_when_asked(relative: bool | str, note: str) -> None:
    assert frontier_figure_data([point(5.0, 1.0)], relative=relative).note == note


def test_missing_energies_are_noted() -> None:
    assert "No device reports any energy" in frontier_figure_data([point(5.0, 0.0)]).note


def test_a_far_mark_is_pinned_and_says_where_it_is() -> None:
    far = Mark.at(point(5000.0, 9.0), "far", remark="+1%")
    data = frontier_panel([point(100.0, 50.0), point(150.0, 2.0)], [far])
    assert not data.shows(far)
    assert data.time.high < 300
    assert data.whereabouts(far) == "→ 83.3 min, 9 J"


def test_nothing_is_pinned_where_there_is_no_frontier_to_squash() -> None:
    far = Mark.at(point(5000.0, 900.0), "far", remark="+1%")
    data = frontier_panel([point(100.0, 2.0)], [far])
    assert data.shows(far)
    assert data.time.log and data.energy.log


def test_limits_near_the_frontier_are_on_the_axes() -> None:
    points = [point(100.0, 50.0), point(150.0, 2.0)]
    limits = Constraints(deadline_s=160.0, energy_budget_j=1e6)
    data = frontier_panel(points, [], constraints=limits)
    assert data.time.has(160.0)
    assert not data.energy.has(1e6)
