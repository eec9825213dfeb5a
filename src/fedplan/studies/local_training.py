"""One client's training, as its device would do it: what a profile measures."""

from __future__ import annotations

from itertools import count

import numpy as np

from fedplan.models import LeNet5, Logistic
from fedplan.studies.building import build_data, build_learner
from fedplan.studies.config import Study


class LocalTraining:
    """The client whose number of samples is the median, and its local steps.

    Called with a number of local steps it trains the model so far, from its first weights, in one
    thread: the work of this client in a round with one client, without evaluation.
    """

    def __init__(self, learner: Logistic | LeNet5, rate: float) -> None:
        order = np.argsort(learner.sizes, kind="stable")
        self.client = int(order[(order.size - 1) // 2])
        self.num_samples = int(learner.sizes[self.client])
        self.num_clients = order.size
        self.num_parameters = learner.num_parameters
        self._learner = learner
        self._rate = rate
        self._initial = learner.initial(0)
        self._rounds = count(1)  # each call has batches of its own

    def __call__(self, local_steps: int) -> None:
        """Train."""
        cohort, shares = np.array([self.client]), np.ones(1)
        self._learner.train_round(
            self._initial.copy(), cohort, shares, local_steps, self._rate, 0, next(self._rounds)
        )


def build_local_training(study: Study) -> LocalTraining:
    """The median client of a study.

    >>> from fedplan.studies import read_study
    >>> training = build_local_training(read_study("demo"))
    >>> training.num_clients, training.num_parameters
    (20, 610)
    """
    learner = build_learner(study.task, study.training, build_data(study.task))
    return LocalTraining(learner, study.training.learning_rate)
