"""TorchLearner: any torch module on any client datasets, for the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import local

import numpy as np
from numpy.typing import NDArray

from fedplan.errors import Collector, MissingExtraError
from fedplan.models.draws import draw_batches
from fedplan.models.learner import FloatArray, IntArray, check_batch_size
from fedplan.tasks.dataset import FederatedData

try:
    import torch
except ModuleNotFoundError as error:
    raise MissingExtraError("TorchLearner", "torch") from error

from torch import nn
from torch.utils.data import TensorDataset

from fedplan.models.torch_module import (
    BuildModule,
    FlatModule,
    KeyedDraws,
    Loss,
    build,
    check_module,
    one_thread,
    try_out,
)
from fedplan.models.torch_samples import Dataset, Samples, read_samples

BATCH = 64  # samples of a step
EVALUATED = 512  # samples that are evaluated at a time


class TorchLearner:
    """A torch module that classifies, bound to one dataset per client, trained by plain SGD.

    build_module : returns a new module on each call, such as its class; its initial
        weights are those it has after `torch.manual_seed(seed)`.
    clients : one map-style dataset of pairs (x, label) per client; every sample is read once, so
        a random transform is applied only once.
    test : a dataset no client trains on.
    loss : of scores, shape (samples, classes), and labels, shape (samples,): their mean.
    batch_size : samples of a step; a client with fewer takes all of them.

    It runs operation by operation, on the CPU, one torch thread per run: slower than a model with a
    kernel of its own, such as `Logistic`, especially if it is small. Batches are those
    that `Logistic` draws for the same seed.

    Weights are the parameters and, averaged like them, the floating-point buffers of the
    `state_dict`, such as the running statistics of batch normalisation. All other buffers, such as
    its count of batches, start every local run from the values that `torch.manual_seed(0);
    build_module()` gives them. Anything else a module remembers from batch to batch, and random
    numbers that are not torch's, are not handled.

    Dropout and the like draw by (seed, round, client) too; whether a module draws at all is found
    out by trying it on one batch. Recomputing such a module's activations in the backward pass
    (`torch.utils.checkpoint`) would draw again: do without.

    >>> from fedplan.tasks import synthetic
    >>> data = synthetic(1, 1, num_clients=5)
    >>> learner = TorchLearner.from_data(lambda: torch.nn.Linear(60, 10), data)
    >>> learner.initial(seed=1).size, len(learner.sizes)
    (610, 5)
    """

    def __init__(
        self,
        build_module: BuildModule,
        clients: Sequence[Dataset],
        *,
        test: Dataset | None = None,
        loss: Loss = nn.functional.cross_entropy,
        batch_size: int = BATCH,
    ) -> None:
        collector = Collector()
        collector.attempt(lambda: check_batch_size(batch_size))
        with one_thread():
            collector.attempt(lambda: check_module(build_module))
        read = collector.attempt(lambda: read_samples(clients, test))
        parts, test_samples = collector.finished(read)
        self._build_module = build_module
        self._loss = loss
        self._batch_size = batch_size
        self._train = Samples(
            torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts])
        )
        self._test = test_samples
        self.labels: IntArray = self._train.y.numpy()
        self.sizes: IntArray = np.array([len(part) for part in parts], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self._mine = local()
        self.num_parameters = self.initial(0).size
        tops = [int(part.y.max()) for part in (self._train, test_samples) if part is not None]
        with one_thread():
            self._trains_at_random, self._evaluates_at_random = try_out(
                build(build_module, 0), loss, min(parts, key=len), batch_size, max(tops)
            )

    @classmethod
    def from_data(
        cls,
        build_module: BuildModule,
        data: FederatedData,
        *,
        loss: Loss = nn.functional.cross_entropy,
        batch_size: int = BATCH,
    ) -> TorchLearner:
        """The module on fedplan's own data; images (height, width) get a channel axis."""
        shape = data.image_shape or (data.num_features,)
        if len(shape) == 2:
            shape = (1, *shape)

        def dataset(x: FloatArray, y: IntArray) -> TensorDataset:
            return TensorDataset(torch.tensor(x).view(-1, *shape), torch.tensor(y))

        rows = [data.client_rows(client) for client in range(data.num_clients)]
        test = None
        if data.test_x is not None and data.test_y is not None:
            test = dataset(data.test_x, data.test_y)
        return cls(
            build_module,
            [dataset(data.x[part], data.y[part]) for part in rows],
            test=test,
            loss=loss,
            batch_size=batch_size,
        )

    def initial(self, seed: int) -> FloatArray:
        """The weights of a module built after `torch.manual_seed(seed)`."""
        with one_thread():
            return FlatModule(build(self._build_module, seed)).weights().numpy()

    def module(self, weights: FloatArray) -> nn.Module:
        """A new module with these weights, ready to evaluate."""
        flat = FlatModule(build(self._build_module, 0))
        flat.load(weights, training=False)
        return flat.module

    def train_round(
        self,
        weights: FloatArray,
        cohort: IntArray,
        shares: NDArray[np.float64],
        local_steps: int,
        rate: float,
        seed: int,
        round_: int,
        halfway: FloatArray | None = None,
    ) -> None:
        """One round of FedAvg, in place."""
        flat = self._my_module()
        with one_thread(), torch.enable_grad():
            total = torch.from_numpy(weights).double() * (1.0 - float(shares.sum()))
            middle = None if halfway is None else total.clone()
            for client, share in zip(cohort.tolist(), shares.tolist(), strict=True):
                flat.load(weights, training=True)
                with self._keyed(self._trains_at_random, seed, round_, client):
                    batches = self._batches(client, local_steps, seed, round_)
                    self._follow(flat, batches[: local_steps // 2], rate)
                    if middle is not None:
                        middle.add_(flat.weights(), alpha=share)
                    self._follow(flat, batches[local_steps // 2 :], rate)
                total.add_(flat.weights(), alpha=share)
            torch.from_numpy(weights).copy_(total)
            if halfway is not None and middle is not None:
                torch.from_numpy(halfway).copy_(middle)

    def _batches(self, client: int, steps: int, seed: int, round_: int) -> torch.Tensor:
        """The rows of each local step."""
        size = int(self.sizes[client])
        batch = min(self._batch_size, size)
        rows = draw_batches(seed, round_, client, size, batch, steps) + self._starts[client]
        return torch.from_numpy(rows)

    def _follow(self, flat: FlatModule, batches: torch.Tensor, rate: float) -> None:
        for rows in batches:
            flat.step(self._train.x[rows], self._train.y[rows], self._loss, rate)

    def samples(self, rows: IntArray | None = None) -> Samples:
        """All training samples, or these rows of them."""
        if rows is None:
            return self._train
        chosen = torch.from_numpy(rows)
        return Samples(self._train.x[chosen], self._train.y[chosen])

    def test_samples(self) -> Samples | None:
        """The samples no client trains on."""
        return self._test

    def evaluate(self, weights: FloatArray, samples: Samples) -> tuple[float, float]:
        """Mean loss, and the share of samples whose highest score is their label's."""
        flat = self._my_module()
        total, right = 0.0, 0
        with one_thread(), torch.no_grad(), self._keyed(self._evaluates_at_random):
            flat.load(weights, training=False)
            for x, y in zip(samples.x.split(EVALUATED), samples.y.split(EVALUATED), strict=True):
                scores = flat.module(x)
                total += float(self._loss(scores, y)) * len(y)
                right += int((scores.argmax(dim=1) == y).sum())
        return total / len(samples), right / len(samples)

    def _my_module(self) -> FlatModule:
        """The calling thread's own module."""
        if not hasattr(self._mine, "flat"):
            self._mine.flat = FlatModule(build(self._build_module, 0))
        flat: FlatModule = self._mine.flat
        return flat

    @staticmethod
    def _keyed(at_random: bool, *key: int) -> AbstractContextManager[object]:
        return KeyedDraws(*key) if at_random else nullcontext()
