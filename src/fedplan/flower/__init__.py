"""Live Flower federations: the only package that imports flwr, and only its public modules."""

from importlib.util import find_spec

from fedplan.errors import MissingExtraError

if find_spec("flwr") is None:
    raise MissingExtraError("fedplan.flower", "flower", package="flwr")

from fedplan.flower.client import MeasuredClientApp, local_steps
from fedplan.flower.rounds import RoundRules
from fedplan.flower.runner import FlowerRunner
from fedplan.flower.strategy import PlannedFedAvg

__all__ = ["FlowerRunner", "MeasuredClientApp", "PlannedFedAvg", "RoundRules", "local_steps"]
