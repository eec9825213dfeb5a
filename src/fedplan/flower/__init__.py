"""Live Flower federations: the only package that imports flwr, and only its public modules."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fedplan.errors import MissingExtraError

if find_spec("flwr") is None:
    raise MissingExtraError("fedplan.flower", "flower", package="flwr")

if TYPE_CHECKING:
    from fedplan.flower.client import MeasuredClientApp as MeasuredClientApp
    from fedplan.flower.client import local_steps as local_steps
    from fedplan.flower.client import training_steps as training_steps
    from fedplan.flower.rules import RoundRules as RoundRules
    from fedplan.flower.runner import FlowerRunner as FlowerRunner
    from fedplan.flower.strategy import PlannedFedAvg as PlannedFedAvg

# Where each public name lives; it is imported on first use. A deployed client is a new process for
# every message, and importing the planner, which it does not use, would be a third of its work.
_HOME_OF = {
    "FlowerRunner": "runner",
    "MeasuredClientApp": "client",
    "PlannedFedAvg": "strategy",
    "RoundRules": "rules",
    "local_steps": "client",
    "training_steps": "client",
}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
