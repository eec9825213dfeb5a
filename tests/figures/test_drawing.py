"""Both drawings show the data, warn about nothing, and leave no trace."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from matplotlib.figure import Figure
from planned import make_plan, problem_of

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, draw_fleet
from fedplan.figures import Figure as Data
from fedplan.figures import draw_print, draw_screen, fit_figure_data, plan_figure_data
from fedplan.figures.spec import Points
from fedplan.figures.style import band_colours, series_looks
from fedplan.planning.frontier import compute_frontier


@pytest.fixture(scope="module")
def printed(plan_data: Data) -> Figure:
    figure = draw_print(plan_data)
    figure.draw_without_rendering()
    return figure


@pytest.fixture(scope="module")
def on_screen(plan_data: Data) -> Any:
    return draw_screen(plan_data)


def figure_of(fleet: Fleet, bound: Bound, **request: Any) -> Data:
    plan = make_plan(fleet, bound, **request)
    return plan_figure_data(plan, problem_of(fleet, **request), bound)


@cache
def unusual() -> dict[str, Data]:
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


def marks_of(data: Data) -> list[Points]:
    """The plan and other settings, on the frontier."""
    points = [part for part in data.panels[0].parts if isinstance(part, Points)]
    return [part for part in points if not part.name.startswith("frontier")]


def test_the_print_names_the_plan_and_explains_every_mark(plan_data: Data, printed: Figure) -> None:
    left, right, _ = printed.axes
    assert [text.get_text() for text in left.texts] == ["fedplan: K=24, E=24", "↗ 3.66 h, 7.83 kJ"]
    assert left.get_xlabel() == "time to target (min)"
    assert right.get_xlabel() == "local steps E"
    explained = [text.get_text() for text in printed.legends[0].get_texts()]
    assert set(explained) >= {mark.name for mark in marks_of(plan_data)}
    assert printed.get_suptitle() == plan_data.title


def test_labels_of_the_print_overlap_nothing(plan_data: Data, printed: Figure) -> None:
    axes, panel = printed.axes[0], plan_data.panels[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for mark in marks_of(plan_data):
        place = mark.x[0] / panel.x.unit.size, mark.y[0] / panel.y.unit.size
        x, y = axes.transData.transform(place)
        assert not any(box.contains(x, y) for box in boxes)


def test_points_no_weight_selects_are_hollow(
    fleet: Fleet, bound: Bound, printed: Figure, on_screen: Any
) -> None:
    hollow = [p for p in compute_frontier(fleet, bound) if p.energy_weight_from is None]
    axes = printed.axes[0]
    drawn = next(line for line in axes.lines if "no energy weight" in str(line.get_label()))
    assert len(drawn.get_xdata()) == len(hollow) > 0
    assert drawn.get_markerfacecolor() == "white"
    trace = next(t for t in on_screen.data if "no energy weight" in str(t.name))
    assert len(trace.x) == len(hollow) and trace.marker.color == "white"


def test_the_screen_has_the_same_marks_in_both_panels(plan_data: Data, on_screen: Any) -> None:
    names = {mark.name for mark in marks_of(plan_data)}
    for axis in ("x", "x2"):
        assert {t.legendgroup for t in on_screen.data if t.xaxis == axis} >= names
    assert "<b>fedplan: K=24, E=24</b>" in [note.text for note in on_screen.layout.annotations]
    shown = [t.legendgroup for t in on_screen.data if t.showlegend]
    assert len(shown) == len(set(shown)) and set(shown) >= names


def test_a_far_mark_says_where_it_is_on_the_screen(on_screen: Any) -> None:
    assert "↗ 3.66 h, 7.83 kJ" in [note.text for note in on_screen.layout.annotations]


def test_frontier_and_fit_have_their_own_drawings(frontier_data: Data, fit_data: Data) -> None:
    labels = [text.get_text() for text in draw_print(frontier_data).axes[0].texts]
    assert [label.split(":")[0] for label in labels] == ["fastest", "least energy"]
    left, right = draw_print(fit_data).axes
    assert [tick.get_text() for tick in right.get_yticklabels()] == [*fit_data.panels[1].y.names]
    assert len(left.collections) == 2  # one band for each K
    screen = draw_screen(fit_data)
    assert [t.name for t in screen.data if t.showlegend] == ["K=3", "K=20"]


def test_marks_differ_in_colour_and_shape(plan_data: Data) -> None:
    found = [mark.look for mark in marks_of(plan_data)]
    assert len({look.colour for look in found}) == len({look.symbol for look in found}) == 5
    assert len({look.colour for look in series_looks(range(1, 9)).values()}) == 8


def test_a_band_keeps_its_colour_whatever_else_is_drawn() -> None:
    assert band_colours((0.01, 0.05, 0.2, 1.0))[2:] == band_colours((0.2, 1.0))
    assert band_colours(()) == band_colours((0.01,))[:1]


def test_the_user_s_matplotlib_settings_are_neither_used_nor_changed(frontier_data: Data) -> None:
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
