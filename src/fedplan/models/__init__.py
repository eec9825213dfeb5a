"""What learns: models bound to the clients' data, with compiled local training."""

from fedplan.models.learner import Learner
from fedplan.models.lenet import LeNet5
from fedplan.models.logistic import Logistic

__all__ = ["LeNet5", "Learner", "Logistic"]
