"""fedplan: how many clients per round and how many local steps train at the lowest cost.

>>> import fedplan
>>> fleet = fedplan.draw_fleet(100, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7), seed=1)
>>> plan = fedplan.make_plan(fleet, fedplan.Bound(a0=3750.0, b0=1.0, c0=26.0))
>>> plan.success, plan.certificate.gap
(True, 0.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedplan.errors import FedplanError as FedplanError
    from fedplan.errors import InputError as InputError
    from fedplan.figures.plots import plot_convergence as plot_convergence
    from fedplan.figures.plots import plot_costs as plot_costs
    from fedplan.figures.plots import plot_fit as plot_fit
    from fedplan.figures.plots import plot_frontier as plot_frontier
    from fedplan.figures.plots import plot_plan as plot_plan
    from fedplan.tables import read_fleet as read_fleet
    from fedplan.tables import read_pilots as read_pilots
    from fedplan.tables import write_fleet as write_fleet
    from fedplan.theory.constraints import Constraints as Constraints
    from fedplan.theory.convergence import Bound as Bound
    from fedplan.theory.cost import Objective as Objective
    from fedplan.theory.cost import Prices as Prices
    from fedplan.theory.cost import predict as predict
    from fedplan.theory.estimation import Estimate as Estimate
    from fedplan.theory.estimation import estimate_bound as estimate_bound
    from fedplan.theory.fleet import Fleet as Fleet
    from fedplan.theory.fleet import draw_fleet as draw_fleet
    from fedplan.theory.fleet import with_stragglers as with_stragglers
    from fedplan.theory.frontier import compute_frontier as compute_frontier
    from fedplan.theory.grid import cost_surface as cost_surface
    from fedplan.theory.pilots import Pilot as Pilot
    from fedplan.theory.plan import Plan as Plan
    from fedplan.theory.planning import make_plan as make_plan
    from fedplan.theory.sensitivity import sensitivity as sensitivity

__version__ = "0.1.0"

# Where each public name lives; it is imported on first use, so that `fedplan --help` and
# `import fedplan` cost nothing.
_HOMES = {
    "errors": ("FedplanError", "InputError"),
    "figures.plots": (
        "plot_convergence",
        "plot_costs",
        "plot_fit",
        "plot_frontier",
        "plot_plan",
    ),
    "tables": ("read_fleet", "read_pilots", "write_fleet"),
    "theory.constraints": ("Constraints",),
    "theory.convergence": ("Bound",),
    "theory.cost": ("Objective", "Prices", "predict"),
    "theory.estimation": ("Estimate", "estimate_bound"),
    "theory.fleet": ("Fleet", "draw_fleet", "with_stragglers"),
    "theory.frontier": ("compute_frontier",),
    "theory.grid": ("cost_surface",),
    "theory.pilots": ("Pilot",),
    "theory.plan": ("Plan",),
    "theory.planning": ("make_plan",),
    "theory.sensitivity": ("sensitivity",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fedplan' has no attribute {name!r}")
    value = getattr(import_module(f"fedplan.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
