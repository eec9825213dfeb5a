"""FedJAX: FedAvg over its `for_each_client`, compiled by jax.jit, with batches drawn afresh.

Two settings are timed: a process a core, each with a federation (a seed) of its own, and one
process with XLA's own threads. Its pmap backend was tried too: it wants batches of one size, which
clients with fewer than 64 samples do not have, and was slower where it could run. Its ready-made
`federated_averaging` does the same as the few lines here, but also measures every client's update,
and was slower for it. Compilation is left out: the warm-up meets every shape a batch can have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import fedjax
import jax
import jax.numpy as jnp
import numpy as np
from common import A_CORE, ONE, Share, Task, main, work

BLOCK = {"logistic": 4096, "lenet5": 1000}  # samples of the loss at a time


def logistic(weights: list[Any], x: Any) -> Any:
    """Scores of softmax regression."""
    matrix, bias = weights
    return x @ matrix + bias


def lenet5(weights: list[Any], x: Any) -> Any:
    """Scores of LeNet-5; images are NHWC, as FedJAX's own models have them."""
    taps_1, bias_1, taps_2, bias_2, *dense = weights
    x = _pool(jax.nn.relu(_convolve(x, taps_1, "SAME") + bias_1))
    x = _pool(jax.nn.relu(_convolve(x, taps_2, "VALID") + bias_2))
    x = x.reshape(len(x), -1)
    for layer in range(0, len(dense), 2):
        x = (jax.nn.relu(x) if layer else x) @ dense[layer] + dense[layer + 1]
    return x


def _convolve(x: Any, taps: Any, padding: str) -> Any:
    return jax.lax.conv_general_dilated(
        x, taps, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _pool(x: Any) -> Any:
    # Much faster to train than jax.lax.reduce_window, whose gradient XLA scatters.
    images, height, width, channels = x.shape
    return x.reshape(images, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def from_shared(model: str, arrays: list[Any]) -> list[Any]:
    """The shared first weights in this model's layout."""
    if model == "logistic":
        return [arrays[0].T, arrays[1]]
    taps_1, bias_1, taps_2, bias_2, dense_1, *rest = arrays
    # The flattened image is (row, column, channel) here and (channel, row, column) there.
    dense_1 = dense_1.reshape(120, 16, 5, 5).transpose(2, 3, 1, 0).reshape(400, 120)
    convolutions = [taps_1.transpose(2, 3, 1, 0), bias_1, taps_2.transpose(2, 3, 1, 0), bias_2]
    return [*convolutions, dense_1, *(array.T for array in rest)]


class FedJax:
    """FedAvg by FedJAX in one process."""

    def __init__(self, task: Task) -> None:
        self._task, workload = task, task.workload
        score = logistic if workload.model == "logistic" else lenet5
        self._x, self._y = task.x, task.y.astype(np.int32)
        if workload.model == "lenet5":
            self._x = task.x.reshape(-1, 28, 28, 1)

        def total_loss(weights: Any, batch: Any) -> Any:
            chances = jax.nn.log_softmax(score(weights, batch["x"]))
            return -jnp.take_along_axis(chances, batch["y"][:, None], axis=1).sum()

        def client_step(weights: Any, batch: Any) -> Any:
            rate = workload.learning_rate / len(batch["y"])
            gradients = jax.grad(total_loss)(weights, batch)
            return jax.tree_util.tree_map(lambda w, g: w - rate * g, weights, gradients)

        self._train = fedjax.for_each_client(
            client_init=lambda weights, _: weights,
            client_step=client_step,
            client_final=lambda _, weights: weights,
        )
        self._total_loss = jax.jit(total_loss)
        block = BLOCK[workload.model]
        self._blocks = [
            jax.device_put(self._batch(slice(first, first + block)))
            for first in range(0, len(self._y), block)
        ]
        self._random = np.random.default_rng(0)
        self._weights: Any = None

    def _batch(self, rows: Any) -> dict[str, Any]:
        return {"x": self._x[rows], "y": self._y[rows]}

    def warm_up(self) -> None:
        """Every shape of a batch, every shape of a block of the loss."""
        _, clients = np.unique(self._task.batches, return_index=True)
        self._begin(self._task.workload.seeds[0])
        self._round(clients.tolist(), steps=2)
        self.evaluate()

    def run(self, seed: int, after_round: Callable[[], bool]) -> None:
        """Rounds; each has ended before the next begins."""
        self._begin(seed)
        round_ = 0
        done = False
        while not done:
            round_ += 1
            self._round(self._task.cohort(seed, round_), self._task.workload.local_steps)
            done = after_round()

    def _begin(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        arrays = from_shared(self._task.workload.model, self._task.initial(seed))
        self._weights = [jnp.asarray(array) for array in arrays]

    def _round(self, cohort: list[int], steps: int) -> None:
        clients = [(client, self._batches(client, steps), 0) for client in cohort]
        trained = self._train(self._weights, clients)
        sizes = self._task.sizes
        mean = fedjax.tree_util.tree_mean((weights, sizes[client]) for client, weights in trained)
        self._weights = jax.block_until_ready(mean)

    def _batches(self, client: int, steps: int) -> Iterator[dict[str, Any]]:
        start, size = self._task.starts[client], self._task.sizes[client]
        batch = self._task.batches[client]
        for _ in range(steps):
            rows = self._random.choice(size, batch, replace=False, shuffle=False)
            yield self._batch(start + rows)

    def evaluate(self) -> float:
        """Loss of the averaged weights."""
        losses = [self._total_loss(self._weights, block) for block in self._blocks]
        return sum(map(float, losses)) / len(self._y)


def run_worker(task: Task, seed: int, share: Share) -> None:
    """One seed; several workers have a core each, so that XLA takes one thread."""
    if share.workers > 1:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[share.number]})
    work(FedJax(task), task, seed)


if __name__ == "__main__":
    settings = {ONE: "one process, XLA's threads", A_CORE: "a process a core, one thread each"}
    main("fedjax", ["fedjax", "jax", "jaxlib"], settings, run_worker)
