"""The client."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict

from fedplan.flower import MeasuredClientApp, steps
from quickstart.task import Net, load_data
from quickstart.task import train as train_fn

app = MeasuredClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Train the model on local data."""
    net = Net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    trainloader = load_data(context)
    epochs, lr = context.run_config["local-epochs"], msg.content["config"]["lr"]
    train_loss = train_fn(net, steps(msg, net, trainloader), epochs, lr)
    metrics = {"train_loss": train_loss, "num-examples": len(trainloader.dataset)}
    content = {"arrays": ArrayRecord(net.state_dict()), "metrics": MetricRecord(metrics)}
    return Message(content=RecordDict(content), reply_to=msg)
