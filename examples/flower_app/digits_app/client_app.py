"""The client: an ordinary Flower app, but for the two lines that are marked."""

from __future__ import annotations

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

from digits_app.task import evaluate, load_partition, sgd_step
from fedplan.flower import MeasuredClientApp, steps

BATCH = 64

app = MeasuredClientApp()  # 1: instead of ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train on this node's images."""
    partition = int(context.node_config["partition-id"])
    x, y = load_partition(partition, int(context.node_config["num-partitions"]))
    weights = message.content["arrays"].to_numpy_ndarrays()
    config = message.content["config"]
    random = np.random.default_rng([config["seed"], config["server-round"], partition])
    for _ in steps(message, lambda: ArrayRecord(weights)):  # 2: instead of epochs
        batch = random.integers(len(y), size=BATCH)
        sgd_step(weights, x[batch], y[batch], config["learning-rate"])
    metrics = MetricRecord({"num-examples": len(y)})
    content = RecordDict({"arrays": ArrayRecord(weights), "metrics": metrics})
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate_here(message: Message, context: Context) -> Message:
    """Evaluate the model on this node's images; asked for where the server has none."""
    node = context.node_config
    x, y = load_partition(int(node["partition-id"]), int(node["num-partitions"]))
    loss, accuracy = evaluate(message.content["arrays"].to_numpy_ndarrays(), x, y)
    metrics = MetricRecord({"num-examples": len(y), "eval_loss": loss, "eval_acc": accuracy})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
