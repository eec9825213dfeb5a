"""Fast FedAvg: many runs at once, one thread each, on a virtual clock."""

from fedplan.simulation.clock import Clock
from fedplan.simulation.fedavg import Evaluation, Job, Simulator
from fedplan.theory.learning_rate import LearningRate

__all__ = ["Clock", "Evaluation", "Job", "LearningRate", "Simulator"]
