"""The fleet, plan and pilots that the figures' tests draw."""

from __future__ import annotations

import pytest
from planned import make_plan, problem_of

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import estimate_bound
from fedplan.convergence.pilots import Pilot
from fedplan.core.fleet import Fleet, draw_fleet
from fedplan.core.plan import Plan
from fedplan.figures import Figure, fit_figure_data, frontier_figure_data, plan_figure_data
from fedplan.planning.frontier import compute_frontier


@pytest.fixture(scope="session")
def fleet() -> Fleet:
    return draw_fleet(
        100,
        step_time_s=(0.1, 0.1 / 3),
        comm_time_s=(2.0, 2.0 / 3),
        step_energy_j=(1e-3, 1e-3 / 3),
        comm_energy_j=(2e-2, 2e-2 / 3),
        seed=1,
    )


@pytest.fixture(scope="session")
def bound() -> Bound:
    return Bound(a0=3750.0, b0=1.0, c0=26.0)


@pytest.fixture(scope="session")
def plan(fleet: Fleet, bound: Bound) -> Plan:
    return make_plan(fleet, bound, energy_weight=0.3)


@pytest.fixture(scope="session")
def plan_data(fleet: Fleet, bound: Bound, plan: Plan) -> Figure:
    return plan_figure_data(plan, problem_of(fleet, 0.3), bound)


@pytest.fixture(scope="session")
def frontier_data(fleet: Fleet, bound: Bound) -> Figure:
    return frontier_figure_data(compute_frontier(fleet, bound))


@pytest.fixture(scope="session")
def pilots() -> list[Pilot]:
    runs = [(3, 30, 40, 70), (20, 20, 60, 98), (20, 45, 40, 66), (3, 70, 30, 62)]
    return [
        Pilot(
            clients_per_round=k,
            local_steps=e,
            upper_loss=1.5,
            lower_loss=1.3,
            rounds_to_upper=a,
            rounds_to_lower=b,
        )
        for k, e, a, b in runs
    ]


@pytest.fixture(scope="session")
def fit_data(pilots: list[Pilot]) -> Figure:
    return fit_figure_data(pilots, estimate_bound(pilots, 100), 100)
