"""Live Flower federations: the only package that imports flwr, and only its public API."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from fedplan.errors import MissingExtraError
from fedplan.lazy import lazy_names

if find_spec("flwr") is None:
    raise MissingExtraError("fedplan.flower", "flower", package="flwr")

if TYPE_CHECKING:
    from fedplan.flower.client import MeasuredClientApp as MeasuredClientApp
    from fedplan.flower.client import local_steps as local_steps
    from fedplan.flower.client import steps as steps
    from fedplan.flower.epochs import Epochs as Epochs
    from fedplan.flower.rules import RoundRules as RoundRules
    from fedplan.flower.runner import FlowerRunner as FlowerRunner
    from fedplan.flower.strategy import Planned as Planned
    from fedplan.flower.strategy import PlannedFedAvg as PlannedFedAvg

# On first use: a deployed client is a new process for every message, and importing the planner,
# which it does not use, would be a third of its work.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "client": "MeasuredClientApp local_steps steps",
        "epochs": "Epochs",
        "rules": "RoundRules",
        "runner": "FlowerRunner",
        "strategy": "Planned PlannedFedAvg",
    },
)
