"""The plan figure's data."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned import make_plan

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet, draw_fleet
from fedplan.core.objective import Objective, Prices
from fedplan.core.plan import Plan
from fedplan.errors import InputError
from fedplan.figures import Figure, draw_print, draw_screen, plan_figure_data
from fedplan.figures.cost_view import CostView
from fedplan.figures.frontier import FrontierView
from fedplan.figures.plan import plan_views
from fedplan.figures.spec import Contours, Line, Shaded
from fedplan.figures.style import LEVELS
from fedplan.planning.frontier import compute_frontier
from fedplan.planning.predict import predict
from fedplan.planning.surface import cost_surface

Views = tuple[FrontierView, CostView]


def views_of(
    fleet: Fleet, bound: Bound, plan: Plan, *, energy_weight: float = 0.0, **limits: Constraints
) -> Views:
    return plan_views(fleet, bound, plan, Objective.weighted(energy_weight), **limits)


def test_the_frontier_and_the_cost_are_the_library_s_own(
    fleet: Fleet, bound: Bound, plan: Plan, views: Views
) -> None:
    frontier, cost = views
    assert list(frontier.points) == compute_frontier(fleet, bound)
    surface = cost_surface(
        fleet, bound, Objective.weighted(0.3), cost.clients_per_round, cost.local_steps
    )
    assert plan.prediction is not None
    np.testing.assert_allclose(cost.extra_cost + 1, surface.cost / plan.prediction.cost)
    assert cost.extra_cost.min() == 0.0
    assert cost.allowed.all()


def test_marks_are_the_plan_and_its_alternatives(plan: Plan, views: Views) -> None:
    frontier, cost = views
    chosen, *others = frontier.marks
    assert plan.prediction is not None
    assert chosen.label == "fedplan: K=24, E=24"
    assert (chosen.time_s, chosen.energy_j) == (plan.prediction.time_s, plan.prediction.energy_j)
    assert [mark.name for mark in others] == [other.name for other in plan.alternatives]
    assert others[0].role == "paper"
    assert others[0].legend == "the paper's method: K=7, E=29 (+26%)"
    assert cost.marks == frontier.marks


def test_titles_say_what_was_chosen_and_by_which_cost(plan_data: Figure) -> None:
    assert plan_data.title == "24 of 100 clients per round, 24 local steps: 20.6 min, 213 J"
    assert plan_data.panels[1].title == "Extra cost of other settings (energy weight 0.3)"


def test_an_alternative_ten_times_out_does_not_squash_the_frontier(views: Views) -> None:
    frontier, _ = views
    hidden = [mark.name for mark in frontier.marks if not frontier.shows(mark)]
    assert hidden == ["all clients, one step"]
    for axis, values in (
        (frontier.time, [point.time_s for point in frontier.points]),
        (frontier.energy, [point.energy_j for point in frontier.points]),
    ):
        assert axis.share(max(values)) - axis.share(min(values)) > 0.4


def test_contours_are_those_that_the_costs_cross(views: Views) -> None:
    _, cost = views
    assert cost.levels == (0.01, 0.05, 0.2, 1.0)
    bands = cost.bands(cost.extra_cost)
    for place, level in enumerate(cost.levels):
        np.testing.assert_array_equal(bands >= place, cost.extra_cost >= level)


def test_the_smooth_map_goes_through_the_computed_costs(views: Views) -> None:
    _, cost = views
    clients, steps, extra_cost = cost.smooth(points=300)
    near_plan = np.abs(clients - 24).argmin(), np.abs(steps - 24).argmin()
    assert abs(extra_cost[near_plan]) < 0.002
    assert extra_cost.max() == pytest.approx(cost.extra_cost.max())


def test_the_paper_s_plan_is_priced_like_the_others(fleet: Fleet, bound: Bound) -> None:
    plan = make_plan(fleet, bound, energy_weight=0.3, method="paper")
    frontier, cost = views_of(fleet, bound, plan, energy_weight=0.3)
    chosen, *others = frontier.marks
    exact = predict(fleet, bound, Objective.weighted(0.3), *plan.setting.pair)
    assert (chosen.time_s, chosen.label) == (exact.time_s, "the paper's method: K=7, E=29")
    assert [mark.name for mark in others].count("the paper's method") == 0
    assert min(cost.levels) == -0.2  # the optimum is 21% cheaper


def test_an_estimate_stands_for_its_bound_and_reach(fleet: Fleet, pilots: list[Pilot]) -> None:
    estimate = estimate_bound(pilots, 100)
    plan = make_plan(fleet, estimate)
    data = plan_figure_data(fleet, estimate, plan)
    frontier, cost = views_of(fleet, estimate, plan)
    reach = estimate.within_reach(Constraints()).max_local_steps
    assert reach is not None and cost.local_steps[-1] <= reach
    assert "the pilots' descent" in data.note and data.title.endswith("(pilots' descent)")
    assert data.panels[0].x.label.startswith("time of the pilots' descent")
    assert "exact optimum" in [mark.name for mark in frontier.marks]


def test_a_robust_choice_past_the_predicting_bound_s_steps_is_on_the_grid(fleet: Fleet) -> None:
    bound, other = Bound(a0=9.0, b0=1.0), Bound(a0=40_000.0, b0=1.0)
    plan = make_plan(fleet, bound, plausible=[bound, other])
    _, cost = views_of(fleet, bound, plan)
    assert plan.setting.pair[1] > bound.fewest_rounds_steps()
    assert cost.has(cost.marks[0])
    assert 0.0 in cost.extra_cost


def test_a_robust_choice_may_leave_no_frontier(fleet: Fleet) -> None:
    likely, hopeful = Bound(a0=3750.0, b0=1.0), Bound(a0=37.5, b0=0.01)
    limits = Constraints(deadline_s=100.0)
    request = {"plausible": [likely, hopeful], "regret_quantile": 0.5, "constraints": limits}
    plan = make_plan(fleet, likely, **request)
    frontier, cost = views_of(fleet, likely, plan, constraints=limits)
    assert frontier.points == () and not cost.allowed.any()
    data = plan_figure_data(fleet, likely, plan, constraints=limits)
    draw_print(data)
    draw_screen(data)


def test_prices_and_carbon_name_their_unit(fleet: Fleet, bound: Bound) -> None:
    for prices, unit in (
        (Prices(per_hour=2.0, per_kwh=0.3), "money"),
        (Prices(co2_g_per_kwh=400.0), "g CO2"),
    ):
        plan = make_plan(fleet, bound, prices=prices)
        data = plan_figure_data(fleet, bound, plan, prices=prices)
        assert data.panels[1].title == f"Extra cost of other settings ({unit})"
        _, cost = plan_views(fleet, bound, plan, prices.objective())
        assert cost.extra_cost.min() == 0.0


def test_settings_over_a_limit_are_marked(fleet: Fleet, bound: Bound) -> None:
    limits = Constraints(deadline_s=1300.0)
    plan = make_plan(fleet, bound, energy_weight=0.9, constraints=limits)
    frontier, cost = views_of(fleet, bound, plan, energy_weight=0.9, constraints=limits)
    assert not cost.allowed.all()
    (over,) = [part for part in cost.panel().parts if isinstance(part, Shaded)]
    np.testing.assert_array_equal(over.inside, ~cost.allowed)
    assert frontier.limits() == [("x", 1300.0, "deadline: 21.7 min")]
    assert max(point.time_s for point in frontier.points) <= 1300.0
    assert frontier.marks[1].legend.endswith("over a limit)")


def test_without_energies_only_time_differs(bound: Bound) -> None:
    fleet = draw_fleet(50, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    plan = make_plan(fleet, bound, energy_weight=1.0)
    frontier, cost = views_of(fleet, bound, plan, energy_weight=1.0)
    assert frontier.energy.all_zero
    assert cost.title == "Extra time of other settings (cost is 0)"
    assert cost.extra_cost.max() > 1


def test_a_fleet_of_one_has_a_curve(bound: Bound) -> None:
    fleet = Fleet(step_time_s=0.1, comm_time_s=2.0, step_energy_j=1.0)
    plan = make_plan(fleet, bound, energy_weight=0.3)
    _, cost = views_of(fleet, bound, plan, energy_weight=0.3)
    panel = cost.panel()
    curve, chosen = panel.parts[:2]
    assert not cost.is_map and isinstance(curve, Line)
    assert panel.x.label == "local steps E"
    assert (chosen.x[0], chosen.y[0]) == (plan.setting.pair[1], 1.0)
    assert curve.y.min() == 1.0


def test_the_map_and_its_scale_are_the_costs(views: Views, plan_data: Figure) -> None:
    _, cost = views
    contours = plan_data.panels[1].parts[0]
    assert isinstance(contours, Contours)
    assert contours.levels == ("+1%", "+5%", "+20%", "+100%")
    assert len(contours.colours) == len(contours.levels) + 1
    assert contours.steps.shape == (contours.y.size, contours.x.size)
    assert (contours.x[[0, -1]].round() == cost.local_steps[[0, -1]]).all()


def test_grids_stay_small(bound: Bound) -> None:
    large = draw_fleet(20_001, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    plan = make_plan(large, bound)
    rows, columns = views_of(large, bound, plan)[1].extra_cost.shape
    assert rows <= 24 and columns <= 16
    fleet = draw_fleet(5_000, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7))
    _, cost = views_of(fleet, bound, make_plan(fleet, bound))
    assert max(cost.extra_cost.shape) <= 60
    assert make_plan(fleet, bound).setting.pair[0] in cost.clients_per_round


def test_a_hundred_devices_take_less_than_a_second(fleet: Fleet, bound: Bound, plan: Plan) -> None:
    start = time.perf_counter()
    plan_figure_data(fleet, bound, plan, energy_weight=0.3)
    assert time.perf_counter() - start < 1.0


def test_an_infeasible_plan_cannot_be_drawn(fleet: Fleet, bound: Bound) -> None:
    limits = Constraints(deadline_s=1.0)
    plan = make_plan(fleet, bound, constraints=limits)
    with pytest.raises(InputError, match="infeasible plan has no setting"):
        plan_figure_data(fleet, bound, plan, constraints=limits)


def test_weight_and_prices_together_are_refused(fleet: Fleet, bound: Bound, plan: Plan) -> None:
    with pytest.raises(InputError, match="not both"):
        plan_figure_data(fleet, bound, plan, energy_weight=0.3, prices=Prices(per_hour=1.0))


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 30),
    step=st.floats(1e-6, 1e6),
    comm=st.floats(0, 1e6),
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
    assert plan_figure_data(fleet, bound, plan, energy_weight=weight).panels
    frontier, cost = views_of(fleet, bound, plan, energy_weight=weight)
    assert frontier.shows(frontier.marks[0])
    assert cost.extra_cost.min() >= -1e-9
    assert set(cost.levels) <= set(LEVELS)
    assert np.isfinite(cost.extra_cost).all()
