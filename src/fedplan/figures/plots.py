"""Plots in one call, for a notebook or a paper.

All take computed results first, options by name, and `backend`: "plotly" gives an interactive
figure, "matplotlib" one for print. `figure.write_html` or `figure.savefig` saves it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fedplan.convergence.bound import Bound
from fedplan.convergence.estimation import Estimate
from fedplan.convergence.pilots import Pilot
from fedplan.core.plan import Plan
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord
from fedplan.errors import InputError
from fedplan.figures.fit import fit_figure_data
from fedplan.figures.frontier import frontier_figure_data
from fedplan.figures.losses import convergence_data
from fedplan.figures.plan import plan_figure_data
from fedplan.figures.save import draw_print, draw_screen
from fedplan.figures.spec import Figure
from fedplan.figures.sweep import sweep_figure_data
from fedplan.planning.frontier import FrontierPoint

Backend = Literal["plotly", "matplotlib"]


def plot_plan(
    plan: Plan,
    problem: Problem,
    bound: Bound | Estimate,
    *,
    target_gap: float = 1.0,
    backend: Backend = "plotly",
) -> Any:
    """The plan on the time-energy frontier, and how much more every other (K, E) costs.

    Pass what `make_plan` was given.

    >>> from fedplan import Bound, Fleet, Objective, Problem, make_plan
    >>> from fedplan.figures import plot_plan
    >>> fleet = Fleet(step_time_s=[0.1, 0.2, 0.4], comm_time_s=2.0, step_energy_j=0.5)
    >>> bound = Bound(a0=1000.0, b0=1.0, c0=10.0)
    >>> problem = Problem(fleet=fleet, objective=Objective.weighted(0.2))
    >>> figure = plot_plan(make_plan(problem, bound), problem, bound, backend="matplotlib")
    >>> type(figure).__name__
    'Figure'
    """
    return _draw(plan_figure_data(plan, problem, bound, target_gap=target_gap), backend)


def plot_frontier(points: Sequence[FrontierPoint], *, backend: Backend = "plotly") -> Any:
    """Every (K, E) that nothing beats on both time and energy, from `compute_frontier`.

    >>> from fedplan import Bound, Fleet, compute_frontier
    >>> from fedplan.figures import plot_frontier
    >>> fleet = Fleet(step_time_s=[0.1, 0.2], comm_time_s=1.0, comm_energy_j=2.0)
    >>> figure = plot_frontier(compute_frontier(fleet, Bound(a0=100.0, b0=1.0, c0=9.0)))
    >>> figure.layout.xaxis.title.text
    'time to target (s)'
    """
    return _draw(frontier_figure_data(points), backend)


def plot_fit(
    estimate: Estimate, pilots: Sequence[Pilot], num_clients: int, *, backend: Backend = "plotly"
) -> Any:
    """The pilots with the bound that `estimate_bound` fitted to them, and its intervals.

    >>> from fedplan import Pilot, estimate_bound
    >>> from fedplan.figures import plot_fit
    >>> runs = [(3, 30, 40, 70), (20, 20, 60, 98), (20, 45, 40, 66), (3, 70, 30, 62)]
    >>> pilots = [Pilot(clients_per_round=k, local_steps=e, upper_loss=1.5, lower_loss=1.3,
    ...     rounds_to_upper=a, rounds_to_lower=b) for k, e, a, b in runs]
    >>> figure = plot_fit(estimate_bound(pilots, 100), pilots, 100)
    >>> len(figure.data) > 4
    True
    """
    return _draw(fit_figure_data(pilots, estimate, num_clients), backend)


def plot_convergence(
    runs: Sequence[RunRecord],
    *,
    title: str = "Convergence",
    target_loss: float | None = None,
    backend: Backend = "plotly",
) -> Any:
    """Loss, and accuracy if there is any, over rounds and seconds: one line per (K, E).

    >>> from fedplan.figures import plot_convergence
    >>> from fedplan.core.records import RoundRecord, RunRecord
    >>> from fedplan.participation import uniform
    >>> end = RoundRecord(round=1, loss=2.0, accuracy=None, cohort=(), seconds=9.0, joules=0.0)
    >>> run = RunRecord(setting=uniform(2, 5), seed=0, status="rounds", rounds=(end,))
    >>> plot_convergence([run], target_loss=0.6).layout.title.text
    '<b>Convergence</b>'
    """
    return _draw(convergence_data(runs, title=title, target_loss=target_loss), backend)


def plot_costs(
    costs: Mapping[tuple[int, int], float], *, title: str = "Sweep", backend: Backend = "plotly"
) -> Any:
    """A heat map of the cost of every (K, E) of a grid, relative to the cheapest.

    costs : infinite if a setting did not reach the target.

    >>> from fedplan.figures import plot_costs
    >>> plot_costs({(1, 5): 3.0, (1, 9): 2.0}).layout.title.text
    '<b>Sweep: mean cost against the best</b>'
    """
    finite = {setting: cost for setting, cost in costs.items() if cost < float("inf")}
    best = min(finite, key=lambda setting: finite[setting], default=None)
    return _draw(sweep_figure_data(costs, best=best, name=title), backend)


def _draw(data: Figure, backend: Backend) -> Any:
    if backend not in ("plotly", "matplotlib"):
        raise InputError(f"backend must be 'plotly' or 'matplotlib', but got {backend!r}.")
    return draw_screen(data) if backend == "plotly" else draw_print(data)
