"""Apple's pfl: its FederatedAveraging on its SimulatedBackend, with PyTorch models.

One process a core, each with a federation (a seed) and one thread of its own; pfl could also share
one cohort out over the processes, but would then wait for the slower of them in every round. Its
evaluation of every user, which the other engines do not make, is off. Users' tensors are indexed
directly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from common import A_CORE, Share, Task, main, work
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDatasetBase
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_model import BLOCK, make_model, mean_loss, set_weights, tensors

ENDLESS = 10**9


class Classifier(nn.Module):
    """A model with the two methods pfl asks for."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy of a batch."""
        return cross_entropy(self.network(x), y)

    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:
        """What pfl would report of every user; not used."""
        raise NotImplementedError


class User(PyTorchTensorDataset):
    """One client's samples; every batch is a fresh uniform draw."""

    def __init__(self, x: Tensor, y: Tensor, steps: int) -> None:
        super().__init__((x, y))
        self._steps = steps

    def iter(self, batch_size: int | None) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of a local run."""
        x, y = self.raw_data
        for _ in range(self._steps):
            rows = torch.randperm(len(y))[:batch_size]
            yield x[rows], y[rows]


class Cohorts(FederatedDatasetBase):
    """Yields the clients of one round after the other."""

    def __init__(self, task: Task, users: list[User], seed: int) -> None:
        super().__init__()
        self._task, self._users, self._seed = task, users, seed
        self._round = 0

    def __next__(self) -> tuple[User, int]:
        raise NotImplementedError

    def get_cohort(self, cohort_size: int) -> Iterable[tuple[User, int]]:
        """All users of the next round."""
        self._round += 1
        cohort = self._task.cohort(self._seed, self._round)
        assert len(cohort) == cohort_size
        for client in cohort:
            yield self._users[client], client


class Averaging(FederatedAveraging):
    """FedAvg without the evaluation of every user before and after its local run."""

    def get_next_central_contexts(self, *args: Any) -> Any:
        """What to do next: train, and nothing else."""
        contexts, model, metrics = super().get_next_central_contexts(*args)
        plain = tuple(dataclasses.replace(context, do_evaluation=False) for context in contexts)
        return plain, model, metrics


class AfterRound(TrainingProcessCallback):
    """Calls `after_round`, and ends the training when it says so."""

    def __init__(self, after_round: Callable[[], bool]) -> None:
        self._after_round = after_round

    def after_central_iteration(self, *_: Any, **__: Any) -> tuple[bool, Metrics]:
        """At the end of a round, the model updated."""
        return self._after_round(), Metrics()


class Pfl:
    """FedAvg by pfl on one thread."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._x, self._y = tensors(task)
        steps = task.workload.local_steps
        self._users = [
            User(self._x[start:end], self._y[start:end], steps)
            for start, end in zip(task.starts[:-1], task.starts[1:], strict=True)
        ]
        self._network = make_model(task)

    def warm_up(self) -> None:
        """One round and one loss."""
        self.run(self._task.workload.seeds[0], lambda: True)
        self.evaluate()

    def run(self, seed: int, after_round: Callable[[], bool]) -> None:
        """The training loop is pfl's own."""
        torch.manual_seed(seed)
        workload = self._task.workload
        set_weights(self._network, self._task.initial(seed))
        module = Classifier(self._network)
        model = PyTorchModel(
            model=module,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        )
        cohorts = Cohorts(self._task, self._users, seed)
        backend = SimulatedBackend(
            training_data=cohorts, val_data=cohorts, postprocessors=[WeightByDatapoints()]
        )
        Averaging().run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=ENDLESS,
                evaluation_frequency=ENDLESS,
                train_cohort_size=workload.clients_per_round,
                val_cohort_size=None,
            ),
            backend=backend,
            model=model,
            model_train_params=NNTrainHyperParams(
                local_batch_size=workload.batch_size,
                local_num_epochs=None,
                local_num_steps=workload.local_steps,
                local_learning_rate=workload.learning_rate,
            ),
            callbacks=[AfterRound(after_round)],
            send_metrics_to_platform=False,
        )

    def evaluate(self) -> float:
        """Loss of the averaged weights."""
        return mean_loss(self._network, self._x, self._y, BLOCK[self._task.workload.model])


def run_worker(task: Task, seed: int, share: Share) -> None:
    """One seed on one thread."""
    torch.set_num_threads(share.cores)
    work(Pfl(task), task, seed)


if __name__ == "__main__":
    settings = {A_CORE: "a process a core, one thread each"}
    main("pfl", ["pfl", "torch"], settings, run_worker)
