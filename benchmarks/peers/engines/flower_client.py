"""The Flower engine's ClientApp; a module of its own, so that an actor loads the data once."""

from __future__ import annotations

import os
from functools import cache

import torch
from common import Task
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor, nn
from torch_model import make_model, set_weights, tensors, train, train_as_written

DATA, WORKLOAD = "PEER_DATA", "PEER_WORKLOAD"  # environment variables with the two paths

app = ClientApp()


@cache
def _loaded() -> tuple[Task, nn.Module, Tensor, Tensor]:
    torch.set_num_threads(1)
    task = Task(os.environ[DATA], os.environ[WORKLOAD])
    return task, make_model(task), *tensors(task)


@app.train()
def local_run(message: Message, context: Context) -> Message:  # noqa: ARG001
    """E steps from the weights in the message, on the samples of the client it names."""
    task, model, x, y = _loaded()
    config = message.content["config"]
    client = int(config["client"])
    torch.manual_seed(int(config["key"]))
    set_weights(model, message.content["arrays"].to_numpy_ndarrays())
    part = slice(task.starts[client], task.starts[client + 1])
    run = train if task.workload.lean else train_as_written
    run(
        model, x[part], y[part], steps=task.workload.local_steps, batch=int(task.batches[client]),
        rate=task.workload.learning_rate,
    )  # fmt: skip
    arrays = ArrayRecord([parameter.detach().numpy() for parameter in model.parameters()])
    weight = MetricRecord({"num-examples": int(task.sizes[client])})
    return Message(RecordDict({"arrays": arrays, "metrics": weight}), reply_to=message)
