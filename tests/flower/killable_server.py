"""A server to be killed: it trains with a federation in its own process, and says every round.

    python killable_server.py FOLDER

Clients 3 and 8 send numbers that are none in some rounds, and client 5 raises in every one: which,
depends on the round alone, so that a server which goes on meets the same.
"""

from __future__ import annotations

import sys

import numpy as np
from flower.conftest import CLIENTS, make_federation
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord
from flwr.serverapp.strategy import FedAdam

from fedplan.flower import Planned
from fedplan.models import Logistic
from fedplan.tasks import synthetic

ROUNDS = 30
RAISES, SPOILS = 5, {3: 3, 8: 4}  # the one; and every how many rounds the others


def spoil_every(rounds):
    """Replies that are not to be averaged, in every so many rounds."""

    def tamper(asked, reply):
        if asked.content["config"]["server-round"] % rounds == 0:
            shape = reply.content["arrays"]["weights"].shape
            bad = Array(np.full(shape, np.nan, np.float32))
            reply.content["arrays"] = ArrayRecord({"weights": bad})
        return reply

    return tamper


def main(folder: str) -> None:
    """Train until the end, or until killed."""
    federation = make_federation(Logistic(synthetic(1, 1, num_clients=CLIENTS)))
    for client, rounds in SPOILS.items():
        federation.node_of(client).tamper = spoil_every(rounds)
    federation.node_of(RAISES).tamper = lambda asked, _: Message(Error(2, "no"), reply_to=asked)

    def evaluate(round_, arrays):
        sys.stdout.write(f"evaluates {round_}\n")
        sys.stdout.flush()
        return MetricRecord({"loss": federation.evaluate(round_, arrays)[0]})

    Planned(
        FedAdam(eta=0.03, fraction_evaluate=0.0),
        target_loss=0.05,
        learning_rate=0.02,
        store=f"sqlite:///{folder}/fedplan.db",
        clock=federation.clock,
    ).start(federation.grid, federation.initial, num_rounds=ROUNDS, evaluate_fn=evaluate)


if __name__ == "__main__":
    main(sys.argv[1])
