"""Flower's simulation engine, tuned: actors with one thread each, no data loader.

The federation is Flower's own: `run_simulation` with its Ray backend, a ServerApp with its FedAvg
strategy, a ClientApp for every client. Tuned means: as many actors as cores and one thread in each;
every actor loads the data once and indexes tensors; the strategy names the clients of the round
itself, so exactly K; the server's loss uses the cores while the actors rest; little is logged.
Lean means more: no optimiser, and a server that looks for replies every 10 ms, not every 100.
Federations side by side, one actor each, may be faster still: while one waits for a message,
another trains.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import flower_client
import torch
from common import A_CORE, ONE, Share, Task, main, work
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import Tensor
from torch_model import BLOCK, make_model, mean_loss, set_weights, tensors

ENDLESS = 10**9


class Enough(Exception):  # noqa: N818
    """Ends Flower's training loop, which only knows a number of rounds."""


class ExactCohorts(FedAvg):
    """FedAvg over exactly the clients of the round."""

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(fraction_evaluate=0.0, min_available_nodes=len(task.sizes))
        self._task, self._seed = task, seed

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """One message a client, with the weights and its number."""
        nodes = sorted(grid.get_node_ids())
        for client in self._task.cohort(self._seed, server_round):
            key = (self._seed * 100_003 + server_round) * 100_003 + client
            settings = ConfigRecord({**config, "client": client, "key": key})
            content = RecordDict({"arrays": arrays, "config": settings})
            yield Message(content, dst_node_id=nodes[client], message_type=MessageType.TRAIN)


class Flower:
    """FedAvg by Flower's simulation engine."""

    def __init__(self, task: Task, grid: Grid, threads: int) -> None:
        self._task, self._grid, self._threads = task, grid, threads
        self._pool = ThreadPoolExecutor(threads)
        self._x, self._y = tensors(task)
        self._model = make_model(task)
        self._arrays: Any = None

    def warm_up(self) -> None:
        """Wait for all nodes, then two rounds, so that every actor has loaded its data."""
        while len(list(self._grid.get_node_ids())) < len(self._task.sizes):
            time.sleep(0.1)
        for _ in range(2):
            self.run(self._task.workload.seeds[0], lambda: True)
        self.evaluate()

    def run(self, seed: int, after_round: Callable[[], bool]) -> None:
        """Flower's own loop over rounds."""

        def hook(server_round: int, arrays: ArrayRecord) -> None:
            self._arrays = arrays
            if server_round > 0 and after_round():
                raise Enough

        first = ArrayRecord(list(self._task.initial(seed)))
        strategy = ExactCohorts(self._task, seed)
        try:
            strategy.start(self._grid, first, num_rounds=ENDLESS, evaluate_fn=hook)
        except Enough:
            return

    def evaluate(self) -> float:
        """Loss of the averaged weights, in the server; every thread takes a part of the samples.

        PyTorch's own threads would wait for each other after every operation.
        """
        set_weights(self._model, self._arrays.to_numpy_ndarrays())
        block = BLOCK[self._task.workload.model]

        def total(x: Tensor, y: Tensor) -> float:
            return mean_loss(self._model, x, y, block) * len(y)

        parts = zip(self._x.chunk(self._threads), self._y.chunk(self._threads), strict=True)
        return sum(self._pool.map(lambda part: total(*part), parts)) / len(self._y)


def run_worker(task: Task, seed: int, share: Share) -> None:
    """A whole federation: the server here, the actors in processes of Ray's."""
    torch.set_num_threads(1)
    os.environ[flower_client.DATA], os.environ[flower_client.WORKLOAD] = sys.argv[1:3]
    logging.getLogger("flwr").setLevel(logging.ERROR)
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:  # noqa: ARG001
        if task.workload.lean:
            grid.pull_interval = 0.01
        work(Flower(task, grid, share.cores), task, seed)

    run_simulation(
        server_app=server,
        client_app=flower_client.app,
        num_supernodes=len(task.sizes),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {
                "address": "local",
                "num_cpus": share.cores,
                "log_to_driver": False,
                "logging_level": "error",
                "_node_ip_address": "127.0.0.1",  # spares Ray the search for a way out
            },
        },
    )


if __name__ == "__main__":
    settings = {
        ONE: "one federation, an actor a core",
        A_CORE: "a federation a core, one actor each",
    }
    main("flower", ["flwr", "ray", "torch"], settings, run_worker)
