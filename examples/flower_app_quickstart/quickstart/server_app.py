"""The server."""

from __future__ import annotations

from flwr.app import ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam

from fedplan.flower import Planned
from quickstart.task import Net, test

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and test after every round."""
    config = context.run_config
    strategy = Planned(
        FedAdam(fraction_evaluate=0.0, eta=config["server-rate"]),
        target_loss=config["target-loss"],
        min_clients=config["nodes"],
        store=f"sqlite:///{config['store']}",
    )
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(Net().state_dict()),
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )


def global_evaluate(_server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Loss and accuracy on data that no client has."""
    net = Net()
    net.load_state_dict(arrays.to_torch_state_dict())
    loss, accuracy = test(net)
    return MetricRecord({"loss": loss, "accuracy": accuracy})
