"""The plan figure's data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned import make_plan, problem_of

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate, estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, draw_fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.plan import Plan
from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print, draw_screen, plan_figure_data
from fedplan.figures.cost_map import grid_surface
from fedplan.figures.spec import Line, Map, Panel, Points, Shaded, Texts
from fedplan.planning.frontier import compute_frontier
from fedplan.planning.predict import predict
from fedplan.planning.surface import cost_surface


def figure_of(fleet: Fleet, bound: Bound | Estimate, **request: Any) -> Figure:
    plan = make_plan(fleet, bound, **request)
    return plan_figure_data(plan, problem_of(fleet, **request), bound)


def marks_of(panel: Panel) -> dict[str, Points]:
    """Settings that are pointed out, by name; the plan first."""
    points = [part for part in panel.parts if isinstance(part, Points)]
    return {part.name: part for part in points if not part.name.startswith("frontier")}


def map_of(data: Figure) -> Map:
    (found,) = [part for part in data.panels[1].parts if isinstance(part, Map)]
    return found


def test_the_frontier_and_the_cost_are_the_library_s_own(
    fleet: Fleet, bound: Bound, plan: Plan, plan_data: Figure
) -> None:
    frontier, cost, _ = plan_data.panels
    line = next(part for part in frontier.parts if isinstance(part, Line))
    points = compute_frontier(fleet, bound)
    assert line.x.tolist() == [point.time_s for point in points]
    drawn, ends = map_of(plan_data), (0, -1)
    ks, es = ([round(axis[end]) for end in ends] for axis in (drawn.y, drawn.x))
    surface = cost_surface(fleet, bound, Objective.weighted(0.3), ks, es)
    assert plan.prediction is not None
    extra = surface.cost / plan.prediction.cost - 1
    np.testing.assert_allclose(drawn.values[np.ix_(ends, ends)], extra, rtol=1e-6)
    assert abs(drawn.values.min()) < 1e-3
    assert not [part for part in cost.parts if isinstance(part, Shaded)]


def test_marks_are_the_plan_and_its_alternatives(plan: Plan, plan_data: Figure) -> None:
    frontier, cost, _ = plan_data.panels
    (name, chosen), *others = marks_of(frontier).items()
    assert plan.prediction is not None
    assert name == "fedplan: K=24, E=24"
    assert (chosen.x[0], chosen.y[0]) == (plan.prediction.time_s, plan.prediction.energy_j)
    names = [other.name for other in plan.alternatives]
    assert [name.partition(":")[0] for name, _ in others] == names
    assert others[0][0] == "the paper's method: K=7, E=29 (+26%)"
    assert [*marks_of(cost)] == [*marks_of(frontier)]


def test_titles_say_what_was_chosen_and_by_which_cost(plan_data: Figure) -> None:
    assert plan_data.title == "24 of 100 clients per round, 24 local steps: 20.6 min, 213 J"
    assert plan_data.panels[1].title == "Extra cost of other settings (energy weight 0.3)"


def test_an_alternative_ten_times_out_does_not_squash_the_frontier(plan_data: Figure) -> None:
    panel = plan_data.panels[0]
    labels = [part.texts[0] for part in panel.parts if isinstance(part, Texts)]
    assert labels == ["fedplan: K=24, E=24", "↗ 3.66 h, 7.83 kJ"]
    line = next(part for part in panel.parts if isinstance(part, Line))
    for axis, values in ((panel.x, line.x), (panel.y, line.y)):
        assert np.ptp(axis.shares(values)) > 0.4


def test_contours_are_those_that_the_costs_cross(plan_data: Figure) -> None:
    drawn, scale = map_of(plan_data), plan_data.panels[2]
    assert scale.y.names == ("+1%", "+5%", "+20%", "+100%")
    assert scale.parts[0].colours == drawn.colours and len(drawn.colours) == 5
    for place, level in enumerate((0.01, 0.05, 0.2, 1.0)):
        np.testing.assert_array_equal(drawn.steps >= place, drawn.values >= level)


def test_the_smooth_map_goes_through_the_computed_costs(plan_data: Figure) -> None:
    drawn = map_of(plan_data)
    near_plan = np.abs(drawn.y - 24).argmin(), np.abs(drawn.x - 24).argmin()
    assert abs(drawn.values[near_plan]) < 0.002


def test_the_paper_s_plan_is_priced_like_the_others(fleet: Fleet, bound: Bound) -> None:
    plan = make_plan(fleet, bound, energy_weight=0.3, method="paper")
    data = plan_figure_data(plan, problem_of(fleet, 0.3), bound)
    (name, chosen), *others = marks_of(data.panels[0]).items()
    exact = predict(fleet, bound, Objective.weighted(0.3), 7, 29)
    assert (chosen.x[0], name) == (exact.time_s, "the paper's method: K=7, E=29")
    assert not [name for name, _ in others if name.startswith("the paper's method")]
    assert data.panels[2].y.names[0] == "-20%"  # the optimum is 21% cheaper


def test_an_estimate_stands_for_its_bound_and_reach(fleet: Fleet, pilots: list[Pilot]) -> None:
    estimate = estimate_bound(pilots, 100)
    data = figure_of(fleet, estimate)
    reach = estimate.within_reach(Constraints()).max_local_steps
    assert reach is not None and data.panels[1].x.high <= reach
    assert "the pilots' descent" in data.note and data.title.endswith("(pilots' descent)")
    assert data.panels[0].x.label.startswith("time of the pilots' descent")
    names = [name.partition(":")[0] for name in marks_of(data.panels[0])]
    assert "exact optimum" in names


def test_a_robust_choice_past_the_predicting_bound_s_steps_is_on_the_grid(fleet: Fleet) -> None:
    bound, other = Bound(a0=9.0, b0=1.0), Bound(a0=40_000.0, b0=1.0)
    plan = make_plan(fleet, bound, plausible=[bound, other])
    data = plan_figure_data(plan, problem_of(fleet), bound)
    clients, steps = plan.setting.pair
    assert steps > bound.fewest_rounds_steps()
    chosen = next(iter(marks_of(data.panels[1]).values()))
    assert (chosen.x[0], chosen.y[0]) == (steps, clients)


def test_a_robust_choice_may_leave_no_frontier(fleet: Fleet) -> None:
    likely, hopeful = Bound(a0=3750.0, b0=1.0), Bound(a0=37.5, b0=0.01)
    limits = Constraints(deadline_s=100.0)
    request = {"plausible": [likely, hopeful], "regret_quantile": 0.5, "constraints": limits}
    plan = make_plan(fleet, likely, **request)
    data = plan_figure_data(plan, problem_of(fleet, constraints=limits), likely)
    line = next(part for part in data.panels[0].parts if isinstance(part, Line))
    (over,) = [part for part in data.panels[1].parts if isinstance(part, Shaded)]
    assert line.x.size == 0 and over.inside.all()
    draw_print(data)
    draw_screen(data)


def test_prices_and_carbon_name_their_unit(fleet: Fleet, bound: Bound) -> None:
    for prices, unit in (
        (Prices(per_hour=2.0, per_kwh=0.3), "money"),
        (Prices(co2_g_per_kwh=400.0), "g CO2"),
    ):
        data = figure_of(fleet, bound, prices=prices)
        assert data.panels[1].title == f"Extra cost of other settings ({unit})"
        assert abs(map_of(data).values.min()) < 5e-3  # between whole numbers


def test_settings_over_a_limit_are_marked(fleet: Fleet, bound: Bound) -> None:
    limits = Constraints(deadline_s=1300.0)
    data = figure_of(fleet, bound, energy_weight=0.9, constraints=limits)
    frontier, cost, _ = data.panels
    (over,) = [part for part in cost.parts if isinstance(part, Shaded)]
    objective = Objective.weighted(0.9)
    surface = cost_surface(fleet, bound, objective, over.y.astype(int), over.x.astype(int))
    np.testing.assert_array_equal(over.inside, surface.time_s > 1300.0)
    line, limit = (part for part in frontier.parts if isinstance(part, Line))
    assert limit.name == "deadline: 21.7 min" and set(limit.x) == {1300.0}
    assert line.x.max() <= 1300.0
    assert [*marks_of(frontier)][1].endswith("over a limit)")


def test_without_energies_only_time_differs(bound: Bound) -> None:
    fleet = draw_fleet(50, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    data = figure_of(fleet, bound, energy_weight=1.0)
    assert data.panels[0].y.all_zero
    assert data.panels[1].title == "Extra time of other settings (cost is 0)"
    assert map_of(data).values.max() > 1


def test_a_fleet_of_one_has_a_curve(bound: Bound) -> None:
    fleet = Fleet(step_time_s=0.1, comm_time_s=2.0, step_energy_j=1.0)
    plan = make_plan(fleet, bound, energy_weight=0.3)
    _, panel = plan_figure_data(plan, problem_of(fleet, 0.3), bound).panels
    curve, chosen = panel.parts[:2]
    assert isinstance(curve, Line) and isinstance(chosen, Points)
    assert panel.x.label == "local steps E"
    assert (chosen.x[0], chosen.y[0]) == (plan.setting.pair[1], 1.0)
    assert curve.y.min() == 1.0


@pytest.mark.parametrize(("size", "most"), [(20_001, (41, 40)), (100, (100, 64))])
def test_grids_stay_small_and_have_the_plan(bound: Bound, size: int, most: tuple[int, int]) -> None:
    fleet = draw_fleet(size, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    chosen = make_plan(fleet, bound).setting.pair
    surface = grid_surface(problem_of(fleet), bound, [chosen])
    rows, columns = surface.cost.shape
    assert rows <= most[0] and columns <= most[1]
    assert chosen[0] in surface.clients_per_round and chosen[1] in surface.local_steps


def test_a_hundred_devices_take_less_than_a_second(fleet: Fleet, bound: Bound, plan: Plan) -> None:
    start = time.process_time()  # of this process: other work may be going on
    plan_figure_data(plan, problem_of(fleet, 0.3), bound)
    assert time.process_time() - start < 1.0


def test_an_infeasible_plan_cannot_be_drawn(fleet: Fleet, bound: Bound) -> None:
    limits = Constraints(deadline_s=1.0)
    plan = make_plan(fleet, bound, constraints=limits)
    with pytest.raises(InputError, match="infeasible plan has no setting"):
        plan_figure_data(plan, problem_of(fleet, constraints=limits), bound)


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 30),
    step=st.floats(1e-6, 1e6),
    comm=st.just(0.0) | st.floats(1e-6, 1e6),
    joules=st.sampled_from([0.0, 1e-9, 1.0, 1e9]),
    ratio=st.floats(1e-3, 1e6),
    sampling=st.sampled_from([0.0, 1.0, 40.0]),
    weight=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_any_plan_has_a_figure(
    size: int, step: float, comm: float, joules: float, ratio: float, sampling: float, weight: float
) -> None:
    fleet = Fleet(
        step_time_s=np.linspace(step, 3 * step, size), comm_time_s=comm, step_energy_j=joules
    )
    bound = Bound(a0=ratio, b0=1.0, c0=sampling)
    plan = make_plan(fleet, bound, energy_weight=weight)
    frontier, cost, *_ = plan_figure_data(plan, problem_of(fleet, weight), bound).panels
    chosen = next(iter(marks_of(frontier).values()))
    assert frontier.x.has(chosen.x[0]) and frontier.y.has(chosen.y[0])
    for part in cost.parts:
        if isinstance(part, Map):
            assert np.isfinite(part.values).all() and part.values.min() > -0.1
