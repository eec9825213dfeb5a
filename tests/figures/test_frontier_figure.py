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
from fedplan.theory.pilots import DESCENT


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
    ("relative", "note", "labels"),
    [
        (False, "", ("time to target (s)", "energy to target (J)")),
        ("", "", ("time to target (s)", "energy to target (J)")),
        (
            True,
            "Relative units: only ratios mean something.",
            ("relative time (s)", "relative energy (J)"),
        ),
        (
            "a gap of 1",
            "Relative units: time and energy are for a gap of 1.",
            ("relative time (s)", "relative energy (J)"),
        ),
        (
            DESCENT,
            f"Time and energy are those of {DESCENT}, not to a target.",
            ("time of the pilots' descent (s)", "energy of the pilots' descent (J)"),
        ),
    ],
)
def test_what_is_not_to_a_target_is_not_said_to_be(
    relative: bool | str, note: str, labels: tuple[str, str]
) -> None:
    data = frontier_figure_data([point(5.0, 1.0)], relative=relative)
    assert data.note == note and (data.time.label, data.energy.label) == labels


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
