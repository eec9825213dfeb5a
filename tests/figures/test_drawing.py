"""Both drawings show the data, warn about nothing, and leave no trace."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from matplotlib.figure import Figure

from fedplan.figures import (
    FitFigure,
    FrontierFigure,
    PlanFigure,
    draw_print,
    draw_screen,
    fit_figure_data,
    plan_figure_data,
)
from fedplan.figures.style import band_colours, looks, series_looks
from fedplan.theory.constraints import Constraints
from fedplan.theory.convergence import Bound
from fedplan.theory.estimation import estimate_bound
from fedplan.theory.fleet import Fleet, draw_fleet
from fedplan.theory.pilots import Pilot
from fedplan.theory.planning import make_plan


@pytest.fixture(scope="module")
def printed(plan_data: PlanFigure) -> Figure:
    figure = draw_print(plan_data)
    figure.draw_without_rendering()
    return figure


@pytest.fixture(scope="module")
def on_screen(plan_data: PlanFigure) -> Any:
    return draw_screen(plan_data)


def figure_of(fleet: Fleet, bound: Bound, **request: Any) -> PlanFigure:
    return plan_figure_data(fleet, bound, make_plan(fleet, bound, **request), **request)


@cache
def unusual() -> dict[str, PlanFigure | FitFigure]:
    bound = Bound(a0=3750.0, b0=1.0, c0=26.0)
    fleet = draw_fleet(
        20, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7), step_energy_j=(1.0, 0.3)
    )
    mute = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0)
    alone = Fleet(step_time_s=0.1, comm_time_s=2.0, step_energy_j=1.0)
    pilot = Pilot(
        clients_per_round=3,
        local_steps=10,
        upper_loss=2.0,
        lower_loss=1.0,
        rounds_to_upper=1,
        rounds_to_lower=9,
    )
    return {
        "one device": figure_of(alone, bound),
        "one device, one step": figure_of(alone, bound, constraints=Constraints(max_local_steps=1)),
        "one step": figure_of(fleet, bound, constraints=Constraints(max_local_steps=1)),
        "no energy": figure_of(mute, bound, energy_weight=1.0),
        "limits": figure_of(
            fleet, bound, constraints=Constraints(deadline_s=1500.0, max_rounds=300)
        ),
        "equal costs": figure_of(
            fleet,
            bound,
            constraints=Constraints(
                min_clients_per_round=19, min_local_steps=27, max_local_steps=28
            ),
        ),
        "no fit": fit_figure_data([pilot] * 2, estimate_bound([pilot] * 2, 20), 20),
    }


@pytest.mark.parametrize("name", unusual())
def test_unusual_figures_are_drawn_for_print_and_for_the_screen(name: str) -> None:
    data = unusual()[name]
    draw_print(data).draw_without_rendering()
    assert len(draw_screen(data).data) > 0


def test_the_print_names_the_plan_and_explains_the_rest(
    plan_data: PlanFigure, printed: Figure
) -> None:
    figure = printed
    left, right, _ = figure.axes
    assert [text.get_text() for text in left.texts] == ["fedplan: K=24, E=24", "↗ 3.66 h, 7.83 kJ"]
    assert left.get_xlabel() == "time to target (min)"
    assert right.get_xlabel() == "local steps E"
    explained = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(explained) >= {mark.legend for mark in plan_data.frontier.marks[1:]}
    assert figure.get_suptitle() == plan_data.title


def test_labels_of_the_print_overlap_nothing(plan_data: PlanFigure, printed: Figure) -> None:
    axes = printed.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for mark in plan_data.frontier.marks:
        place = (
            plan_data.frontier.time.pinned(mark.time_s),
            plan_data.frontier.energy.pinned(mark.energy_j),
        )
        x, y = axes.transData.transform(place)
        text_only = [super(type(text), text).get_window_extent() for text in axes.texts]
        assert not any(box.contains(x, y) for box in text_only)


def test_points_no_weight_selects_are_hollow(
    plan_data: PlanFigure, printed: Figure, on_screen: Any
) -> None:
    hollow = [p for p in plan_data.frontier.points if p.energy_weight_from is None]
    axes = printed.axes[0]
    drawn = next(line for line in axes.lines if "no energy weight" in str(line.get_label()))
    assert len(drawn.get_xdata()) == len(hollow) > 0
    assert drawn.get_markerfacecolor() == "white"
    trace = next(t for t in on_screen.data if "no energy weight" in str(t.name))
    assert len(trace.x) == len(hollow) and trace.marker.color == "white"


def test_the_screen_has_the_same_marks_in_both_panels(
    plan_data: PlanFigure, on_screen: Any
) -> None:
    traces = [t for t in on_screen.data if t.legendgroup]
    names = [mark.name for mark in plan_data.frontier.marks]
    for axis in ("x", "x2"):
        assert sorted(t.legendgroup for t in traces if t.xaxis == axis) == sorted(names)
    chosen = next(t for t in traces if t.legendgroup == "fedplan" and t.xaxis == "x")
    assert chosen.text == ("<b>fedplan: K=24, E=24</b>",)


def test_a_far_mark_says_where_it_is_on_the_screen(on_screen: Any) -> None:
    names = [t.name for t in on_screen.data if t.legendgroup and t.xaxis == "x"]
    assert "all clients, one step: K=100, E=1 (12x the cost) ↗ 3.66 h, 7.83 kJ" in names


def test_frontier_and_fit_have_their_own_drawings(
    frontier_data: FrontierFigure, fit_data: FitFigure
) -> None:
    assert [t.get_text() for t in draw_print(frontier_data).axes[0].texts] == [
        mark.label for mark in frontier_data.marks
    ]
    left, right = draw_print(fit_data).axes
    assert [tick.get_text() for tick in right.get_yticklabels()] == [
        interval.label for interval in fit_data.intervals
    ]
    assert len(left.collections) == len(fit_data.curves)
    named = [t.name for t in draw_screen(fit_data).data if t.name]
    assert named == ["K=3", "K=20"]


def test_marks_differ_in_colour_and_shape(plan_data: PlanFigure) -> None:
    found = looks(plan_data.frontier.marks)
    assert len({look.colour for look in found}) == len({look.marker for look in found}) == 5
    assert len({look.colour for look in series_looks(range(1, 9)).values()}) == 8


def test_a_band_keeps_its_colour_whatever_else_is_drawn() -> None:
    assert band_colours((0.01, 0.05, 0.2, 1.0))[2:] == band_colours((0.2, 1.0))
    assert band_colours(()) == band_colours((0.01,))[:1]


def test_the_user_s_matplotlib_settings_are_neither_used_nor_changed(
    frontier_data: FrontierFigure,
) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 3.0, "axes.facecolor": "black"}):
        figure = draw_print(frontier_data)
        assert mpl.rcParams["font.size"] == 3.0
    assert figure.axes[0].get_facecolor() == (1.0, 1.0, 1.0, 1.0)


def test_importing_figures_imports_no_plotting_library() -> None:
    code = (
        "import sys, fedplan.figures; "
        "print([name for name in ('matplotlib', 'plotly') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_drawing_needs_no_pyplot(tmp_path: Any) -> None:
    code = (
        "import sys; from fedplan import *; from fedplan.figures import *; "
        "fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0); "
        "points = compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)); "
        f"save_figure(frontier_figure_data(points), {str(tmp_path / 'f.svg')!r}); "
        "print('matplotlib.pyplot' in sys.modules, 'plotly' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
