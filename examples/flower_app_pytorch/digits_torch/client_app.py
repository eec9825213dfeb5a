"""The client: an ordinary Flower app, but for the two lines that are marked."""

from __future__ import annotations

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from digits_torch.task import evaluate, load_partition, make_model
from fedplan.flower import MeasuredClientApp, steps

app = MeasuredClientApp()  # 1: instead of ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train on this node's images."""
    model, data = model_of(message), data_of(context)
    config = message.content["config"]
    optimizer = torch.optim.SGD(model.parameters(), lr=config["learning-rate"])
    torch.manual_seed(config["seed"] + config["server-round"])
    loader = DataLoader(data, batch_size=64, shuffle=True)
    for x, y in steps(message, model, loader):  # 2: no epochs
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": len(data)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate_here(message: Message, context: Context) -> Message:
    """Evaluate the model on this node's images; asked for where the server has none."""
    data = data_of(context)
    loss, accuracy = evaluate(model_of(message), data)
    metrics = MetricRecord({"num-examples": len(data), "eval_loss": loss, "eval_acc": accuracy})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def model_of(message: Message) -> nn.Module:
    """The model that the server has sent."""
    model = make_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return model


def data_of(context: Context) -> TensorDataset:
    """The images of this node."""
    node = context.node_config
    return load_partition(int(node["partition-id"]), int(node["num-partitions"]))
