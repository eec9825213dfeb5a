"""The server: PlannedFedAvg where FedAvg would be."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from digits_torch.task import evaluate, load_test_set, make_model
from fedplan.flower import PlannedFedAvg, RoundRules

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train to the target, learning from the rounds how to."""
    config = context.run_config
    setting = (int(config["clients-per-round"]), int(config["local-steps"]))
    strategy = PlannedFedAvg(
        target_loss=float(config["target-loss"]),
        learning_rate=float(config["learning-rate"]),
        plan=setting if all(setting) else None,
        min_clients=int(config["min-clients"]),
        rules=RoundRules(deadline_s=float(config["deadline-s"]), wait_s=float(config["wait-s"])),
        study=str(config["study"]),
        store=f"sqlite:///{config['store']}",
    )
    strategy.start(
        grid,
        ArrayRecord(make_model().state_dict()),
        num_rounds=int(config["num-server-rounds"]),
        evaluate_fn=evaluate_centrally,
    )


def evaluate_centrally(_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Loss and accuracy on the test images, which no client trains on."""
    model = make_model()
    model.load_state_dict(arrays.to_torch_state_dict())
    loss, accuracy = evaluate(model, load_test_set())
    return MetricRecord({"loss": loss, "accuracy": accuracy})
