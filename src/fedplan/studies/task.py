"""The task of a study: its data, its model, and one client's training."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from fedplan import models
from fedplan.studies.keys import TaskTable, TrainingTable
from fedplan.tasks import (
    FederatedData,
    by_sizes,
    dirichlet,
    federate,
    iid,
    load_mnist,
    mnist_mini,
    power_law_sizes,
    read_data,
    synthetic,
    two_labels_balanced,
    two_labels_shards,
)
from fedplan.tasks.mnist import IMAGE_SHAPE, NUM_DIGITS

if TYPE_CHECKING:
    from fedplan.models import Learner
    from fedplan.studies.study import Study
    from fedplan.tasks import Assignment, Digits

_DIGITS = {"mnist": load_mnist, "mnist-mini": mnist_mini}


def build_data(task: TaskTable) -> FederatedData:
    """The clients' data."""
    if task.data == "synthetic":
        return synthetic(task.alpha, task.beta, num_clients=task.num_clients, seed=task.data_seed)
    if task.data not in _DIGITS:
        return read_data(task.data)
    digits = _DIGITS[task.data]()
    return federate(
        digits.x,
        digits.y,
        _assign(digits, task),
        num_classes=NUM_DIGITS,
        test_x=digits.test_x,
        test_y=digits.test_y,
        image_shape=IMAGE_SHAPE,
        name=digits.name,
    )


def _assign(digits: Digits, task: TaskTable) -> Assignment:
    labels, clients, seed = digits.y, task.num_clients, task.data_seed
    match task.partition:
        case "iid":
            return iid(len(labels), clients, seed)
        case "dirichlet":
            return dirichlet(labels, clients, task.concentration, seed)
        case "power-law":
            sizes = power_law_sizes(
                clients, len(labels), exponent=task.exponent, min_size=task.min_size, seed=seed
            )
            return by_sizes(len(labels), sizes, seed)
        case "two-labels-balanced":
            return two_labels_balanced(labels, clients, task.samples_per_client, seed)
        case "two-labels-shards":
            return two_labels_shards(labels, clients, task.shards_per_label, seed)


def build_learner(task: TaskTable, training: TrainingTable, data: FederatedData) -> Learner:
    """The model, bound to the data."""
    model = getattr(models, models.MODELS[task.model].learner)
    learner: Learner = model(data, batch_size=training.batch_size)
    return learner


class LocalTraining:
    """The client with the median number of samples, and its local steps.

    Called with a number of local steps, it makes that many from the initial weights, in one
    thread: the work of this client in a round with one client, without evaluation. This is what a
    profile measures.
    """

    def __init__(self, learner: Learner, rate: float) -> None:
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
