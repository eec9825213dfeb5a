"""fedplan: who should train when, and for how many local steps, at the lowest cost.

>>> import fedplan
>>> fleet = fedplan.draw_fleet(100, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.7), seed=1)
>>> plan = fedplan.make_plan(fedplan.Problem(fleet=fleet))
>>> plan.participation, len(plan.groups) > 1
('turns', True)
"""

from typing import TYPE_CHECKING

from fedplan.lazy import lazy_names

if TYPE_CHECKING:
    from fedplan.convergence.bound import Bound as Bound
    from fedplan.convergence.estimation import Estimate as Estimate
    from fedplan.convergence.estimation import estimate_bound as estimate_bound
    from fedplan.convergence.pilots import Pilot as Pilot
    from fedplan.convergence.saturation import Saturation as Saturation
    from fedplan.core.constraints import Constraints as Constraints
    from fedplan.core.fleet import Fleet as Fleet
    from fedplan.core.fleet import draw_fleet as draw_fleet
    from fedplan.core.fleet import with_stragglers as with_stragglers
    from fedplan.core.objective import Objective as Objective
    from fedplan.core.objective import Prices as Prices
    from fedplan.core.plan import Plan as Plan
    from fedplan.core.problem import Problem as Problem
    from fedplan.core.setting import Setting as Setting
    from fedplan.errors import FedplanError as FedplanError
    from fedplan.errors import InputError as InputError
    from fedplan.participation import uniform as uniform
    from fedplan.planning.frontier import compute_frontier as compute_frontier
    from fedplan.planning.planner import make_plan as make_plan
    from fedplan.planning.predict import predict as predict
    from fedplan.planning.sensitivity import sensitivity as sensitivity
    from fedplan.planning.surface import cost_surface as cost_surface
    from fedplan.tables import read_fleet as read_fleet
    from fedplan.tables import read_pilots as read_pilots
    from fedplan.tables import write_fleet as write_fleet

__version__ = "0.1.0"

# Where each public name lives.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "convergence.bound": "Bound",
        "convergence.estimation": "Estimate estimate_bound",
        "convergence.pilots": "Pilot",
        "convergence.saturation": "Saturation",
        "core.constraints": "Constraints",
        "core.fleet": "Fleet draw_fleet with_stragglers",
        "core.objective": "Objective Prices",
        "core.plan": "Plan",
        "core.problem": "Problem",
        "core.setting": "Setting",
        "errors": "FedplanError InputError",
        "participation": "uniform",
        "planning.frontier": "compute_frontier",
        "planning.planner": "make_plan",
        "planning.predict": "predict",
        "planning.sensitivity": "sensitivity",
        "planning.surface": "cost_surface",
        "tables": "read_fleet read_pilots write_fleet",
    },
)
__all__ += ["__version__"]
