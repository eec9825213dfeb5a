"""The frontier figure's data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedplan.convergence.bound import Bound
from fedplan.convergence.pilots import DESCENT
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.errors import InputError
from fedplan.figures import Figure, alone, draw_print, frontier_figure_data
from fedplan.figures.frontier import Mark, frontier_panel
from fedplan.figures.spec import Line, Panel, Points, Texts
from fedplan.planning.frontier import FrontierPoint, compute_frontier


def point(time_s: float, energy_j: float) -> FrontierPoint:
    return FrontierPoint(
        clients_per_round=2,
        local_steps=3,
        time_s=time_s,
        energy_j=energy_j,
        energy_weight_from=0.0,
        energy_weight_to=1.0,
    )


def labelled(panel: Panel) -> dict[str, tuple[float, float]]:
    """Where each label stands."""
    parts = [part for part in panel.parts if isinstance(part, Texts)]
    return {part.texts[0]: (part.x[0], part.y[0]) for part in parts}


def points_of(panel: Panel, start: str) -> list[Points]:
    """Those with such a name."""
    return [p for p in panel.parts if isinstance(p, Points) and p.name.startswith(start)]


def test_it_holds_the_library_s_own_points(
    fleet: Fleet, bound: Bound, frontier_data: Figure
) -> None:
    points = compute_frontier(fleet, bound)
    dots = points_of(frontier_data.panels[0], "frontier")
    drawn = {place for part in dots for place in zip(part.x, part.y, strict=True)}
    assert drawn == {(point.time_s, point.energy_j) for point in points}


def test_its_ends_are_labelled(fleet: Fleet, bound: Bound, frontier_data: Figure) -> None:
    points = compute_frontier(fleet, bound)
    names = ("fastest", "least energy")
    assert labelled(frontier_data.panels[0]) == {
        f"{name}: K={point.clients_per_round}, E={point.local_steps}": (
            point.time_s,
            point.energy_j,
        )
        for name, point in zip(names, (points[0], points[-1]), strict=True)
    }


def test_axes_say_their_units_and_are_logarithmic_only_where_needed(frontier_data: Figure) -> None:
    (panel,) = frontier_data.panels
    assert panel.x.label == "time to target (min)" and not panel.x.log
    assert panel.y.label == "energy to target (J)" and panel.y.log


def test_a_single_point_is_fastest_and_least_energy() -> None:
    data = frontier_figure_data([point(5.0, 1.0)])
    assert [*labelled(data.panels[0])] == ["fastest, and least energy: K=2, E=3"]


def test_points_by_turns_say_how_many_groups_they_have() -> None:
    by_turns = [replace(point(1.0, 2.0), clients_per_round=None, groups=5)]
    panel = frontier_figure_data(by_turns).panels[0]
    (dots,) = points_of(panel, "frontier")
    assert [*labelled(panel)] == ["fastest, and least energy: 5 groups, E=3"]
    assert "<b>5 groups, E=3</b>" in dots.hover[0]


def test_no_points_is_an_input_error_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r"no setting meets the limits\. Raise the deadline"):
        frontier_figure_data([])


@pytest.mark.parametrize(
    ("relative", "note", "labels"),
    [
        ("", "", ("time to target (s)", "energy to target (J)")),
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
    relative: str, note: str, labels: tuple[str, str]
) -> None:
    data = frontier_figure_data([point(5.0, 1.0)], relative=relative)
    (panel,) = data.panels
    assert data.note == note and (panel.x.label, panel.y.label) == labels


def test_missing_energies_are_noted() -> None:
    assert "No device reports any energy" in frontier_figure_data([point(5.0, 0.0)]).note


def test_a_far_mark_is_pinned_and_says_where_it_is() -> None:
    far = Mark(point(5000.0, 9.0), "far", remark="+1%")
    panel = frontier_panel([point(100.0, 50.0), point(150.0, 2.0)], [far])
    assert panel.x.high < 300
    (mark,) = points_of(panel, "far")
    assert mark.name == "far: K=2, E=3 (+1%)"
    assert labelled(panel) == {"→ 83.3 min, 9 J": (mark.x[0], mark.y[0])}
    assert panel.x.has(float(mark.x[0])) and mark.y[0] == 9.0


def test_marks_in_one_corner_share_a_label_in_print() -> None:
    far = [Mark(point(time_s, 9e5), f"far {time_s:g}", remark="+1%") for time_s in (5e3, 6e3)]
    panel = frontier_panel([point(100.0, 50.0), point(150.0, 2.0)], far)
    (text,) = draw_print(alone(panel)).axes[0].texts
    assert text.get_text() == "↗ 83.3 min, 900 kJ\n↗ 100 min, 900 kJ"


def test_nothing_is_pinned_where_there_is_no_frontier_to_squash() -> None:
    far = Mark(point(5000.0, 900.0), "far", remark="+1%")
    panel = frontier_panel([point(100.0, 2.0)], [far])
    (mark,) = points_of(panel, "far")
    assert (mark.x[0], mark.y[0]) == (5000.0, 900.0)
    assert panel.x.log and panel.y.log


def test_limits_near_the_frontier_are_on_the_axes() -> None:
    points = [point(100.0, 50.0), point(150.0, 2.0)]
    limits = Constraints(deadline_s=160.0, energy_budget_j=1e6)
    panel = frontier_panel(points, [], constraints=limits)
    assert panel.x.has(160.0)
    assert not panel.y.has(1e6)
    (limit,) = (one for one in panel.parts if isinstance(one, Line) and one.name)
    assert limit.name == "deadline: 160 s" and set(limit.x) == {160.0}


def test_points_over_a_limit_are_told_apart_and_know_their_setting() -> None:
    points = [point(100.0, 50.0), point(150.0, 2.0)]
    panel = frontier_panel(points, [], met=np.array([True, False]))
    (kept,), (over,) = points_of(panel, "frontier"), points_of(panel, "over a limit")
    assert kept.x.tolist() == [100.0] and over.x.tolist() == [150.0] and over.hollow
    assert over.keys == ((2, 3),)
