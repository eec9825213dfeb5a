"""Fast FedAvg: many runs at once, one thread each, on a virtual clock."""

from fedplan.core.learning_rate import LearningRate
from fedplan.simulation.clock import Clock
from fedplan.simulation.fedavg import Evaluation, Job, Simulator

__all__ = ["Clock", "Evaluation", "Job", "LearningRate", "Simulator"]
