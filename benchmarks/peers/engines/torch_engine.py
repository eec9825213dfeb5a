"""A lean FedAvg loop in PyTorch: what a researcher writes by hand, with nothing left to shave off.

One process with torch's threads, or one a core, each with a federation (a seed) and one thread of
its own. Tensors are indexed directly, gradients applied in one call, clients averaged in
place.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from common import A_CORE, ONE, Share, Task, main, work
from torch import Tensor
from torch_model import BLOCK, make_model, mean_loss, set_weights, tensors, train


class TorchLoop:
    """FedAvg on one thread."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._x, self._y = tensors(task)
        self._model = make_model(task)

    def warm_up(self) -> None:
        """One round and one loss."""
        self.run(self._task.workload.seeds[0], lambda: True)
        self.evaluate()

    def run(self, seed: int, after_round: Callable[[], bool]) -> None:
        """Rounds of FedAvg; the average is kept beside the model that trains."""
        torch.manual_seed(seed)
        task, workload = self._task, self._task.workload
        set_weights(self._model, task.initial(seed))
        parameters: list[Tensor] = list(self._model.parameters())
        first = [p.detach().clone() for p in parameters]
        round_ = 0
        done = False
        while not done:
            round_ += 1
            cohort = task.cohort(seed, round_)
            samples = int(task.sizes[cohort].sum())
            average = [torch.zeros_like(p) for p in first]
            for client in cohort:
                part = slice(task.starts[client], task.starts[client + 1])
                with torch.no_grad():
                    torch._foreach_copy_(parameters, first)
                train(
                    self._model, self._x[part], self._y[part], steps=workload.local_steps,
                    batch=int(task.batches[client]), rate=workload.learning_rate,
                )  # fmt: skip
                with torch.no_grad():
                    share = float(task.sizes[client]) / samples
                    torch._foreach_add_(average, parameters, alpha=share)
            first = average
            with torch.no_grad():
                torch._foreach_copy_(parameters, first)
            done = after_round()

    def evaluate(self) -> float:
        """Loss of the averaged weights."""
        return mean_loss(self._model, self._x, self._y, BLOCK[self._task.workload.model])


def run_worker(task: Task, seed: int, share: Share) -> None:
    """One seed on one thread."""
    torch.set_num_threads(share.cores)
    work(TorchLoop(task), task, seed)


if __name__ == "__main__":
    settings = {ONE: "one process, a thread a core", A_CORE: "a process a core, one thread each"}
    main("torch", ["torch"], settings, run_worker)
