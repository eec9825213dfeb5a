"""A ClientApp for fedplan's own tasks: the simulator's clients, one per node.

A node trains the client with the number of its `partition-id`, with the draws the simulator would
make: the same study, K, E and seed have the same losses here and there.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

from fedplan.flower.client import (
    MeasuredClientApp,
    local_steps,
    partition_name,
    tell_halfway,
    wants_sketch,
)
from fedplan.flower.replies import LEARNING_RATE, NUM_EXAMPLES, SEED, SERVER_ROUND
from fedplan.models import Learner
from fedplan.models.learner import FloatArray
from fedplan.studies.study import study_from_text
from fedplan.studies.task import build_data, build_learner

WEIGHTS = "weights"


def pack(weights: FloatArray) -> ArrayRecord:
    """A learner's weights as Flower sends them."""
    return ArrayRecord({WEIGHTS: Array(weights)})


def unpack(arrays: ArrayRecord) -> FloatArray:
    """The weights that were packed, to be changed at will."""
    return np.array(arrays[WEIGHTS].numpy(), dtype=np.float32)


def client_app(learner_of: Callable[[Context], Learner], **measuring: Any) -> MeasuredClientApp:
    """An app whose nodes train clients of a learner; `measuring` is for `MeasuredClientApp`.

    A node goes by its partition, whatever else it is called: that says which client it trains.
    """
    app = MeasuredClientApp(name=lambda context: partition_name(_partition(context)), **measuring)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        learner, client = learner_of(context), _partition(context)
        config = message.content.config_records["config"]
        weights = unpack(message.content.array_records["arrays"])
        steps = local_steps(message)
        halfway = np.empty_like(weights) if steps > 1 and wants_sketch(message) else None
        learner.train_round(
            weights,
            np.array([client]),
            np.ones(1),
            steps,
            _number(config[LEARNING_RATE]),
            int(_number(config[SEED])),
            int(_number(config[SERVER_ROUND])),
            halfway,
        )
        if halfway is not None:
            tell_halfway(message, pack(halfway))
        metrics = MetricRecord({NUM_EXAMPLES: int(learner.sizes[client])})
        content = RecordDict({"arrays": pack(weights), "metrics": metrics})
        return Message(content, reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        learner, client = learner_of(context), _partition(context)
        end = int(learner.sizes[: client + 1].sum())
        rows = np.arange(end - learner.sizes[client], end)
        loss, accuracy = learner.evaluate(
            unpack(message.content.array_records["arrays"]), learner.samples(rows)
        )
        metrics = MetricRecord({NUM_EXAMPLES: len(rows), "eval_loss": loss, "eval_acc": accuracy})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def _partition(context: Context) -> int:
    return int(context.node_config["partition-id"])


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"a number was expected, but the server sent {value!r}")
    return value


@cache
def _learner(text: str) -> Learner:
    described = study_from_text(text)
    data = build_data(described.task)
    return build_learner(described.task, described.training, data)


# What Flower loads on the nodes of `fedplan run --runner flower`; `launch.py` has its config.
app = client_app(lambda context: _learner(str(context.run_config["study"])))
