"""What goes wrong with real processes: training goes on, or ends and says why; no round is lost."""

from __future__ import annotations

import pytest
from flower.deployment import copy_of_example, deployed, kill, needs_proc, stored_runs, wait_until

from fedplan.flower.journal import load_weights
from fedplan.participation.draws import pick

pytestmark = [pytest.mark.slow, needs_proc]

NODES = 3
PATIENCE_S = 300  # for anything that is to happen: far longer than it takes
# The example's client; a file named after its partition makes it do what it should not.
FAULTY_CLIENT = """
import time
from pathlib import Path

import numpy as np
from digits_app import client_app
from fedplan.flower import MeasuredClientApp
from flwr.app import ArrayRecord


def misbehave(message, context, call_next):
    folder, partition = Path(context.node_config["faults"]), context.node_config["partition-id"]
    order = folder / f"{partition}.fault"
    fault = order.read_text() if order.exists() else ""
    if message.metadata.message_type != "train":
        return call_next(message, context)
    (folder / f"{partition}.training").touch()
    if fault == "raise":
        raise RuntimeError("the battery is empty")
    while fault == "hang" and order.exists():
        time.sleep(0.1)
    reply = call_next(message, context)
    if fault == "not a number":
        weights = [np.full_like(one, np.nan) for one in reply.content["arrays"].to_numpy_ndarrays()]
        reply.content["arrays"] = ArrayRecord(weights)
    if fault == "everything":
        reply.content["metrics"]["num-examples"] = 10**15
    return reply


app = MeasuredClientApp(mods=[misbehave])
app.train()(client_app.train)
app.evaluate()(client_app.evaluate_here)
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return copy_of_example(tmp_path_factory.mktemp("app") / "digits", client=FAULTY_CLIENT)


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with deployed(tmp_path_factory.mktemp("federation"), NODES) as deployment:
        yield deployment


@pytest.fixture(autouse=True)
def _all_is_well_again(federation):
    yield
    for file in federation.faults.iterdir():
        file.unlink()
    # Clients that hang, or whose server was killed, would live on.
    for client in federation.pids("flwr-clientapp"):
        kill(client)
    for partition in range(NODES):
        if partition not in federation.nodes:
            federation.start_node(partition)


def order(federation, partition, fault):
    (federation.faults / f"{partition}.fault").write_text(fault)


def config(study, clients, rounds, **more):
    return {
        "study": study, "clients_per_round": clients, "local_steps": 20, "learning_rate": 0.01,
        "target_loss": 0.1, "num_server_rounds": rounds, **more,
    }  # fmt: skip


def training(federation, study):
    """The one run of a study."""
    (run,) = stored_runs(federation.folder, study)
    return run


def model(federation, study):
    (file,) = (federation.folder / f"{study}-flower" / "training").glob("*/*.npz")
    return load_weights(file)


def first_asked(clients):
    """One of the clients that round 1 asks first, and the others there are."""
    one = int(pick(0, 1, NODES, clients)[0])
    return one, tuple(sorted(set(range(NODES)) - {one}))


def problems(run):
    return {
        one.client: one.problem
        for record in run.rounds
        for one in record.observations
        if one.problem
    }


def test_clients_that_raise_or_send_nonsense_are_replaced_and_not_averaged(federation, app):
    order(federation, 0, "raise")
    order(federation, 1, "not a number")
    federation.run(app, PATIENCE_S, **config("broken", 1, 2))
    run = training(federation, "broken")
    assert run.status == "rounds" and run.num_rounds == 2
    assert [record.cohort for record in run.rounds[1:]] == [(2,), (2,)]
    assert run.losses[2] < run.losses[1] < run.losses[0]
    found = problems(run)
    assert found.keys() == {0, 1}
    assert "the battery is empty" in found[0] and "not finite" in found[1]

    for partition in range(NODES):
        order(federation, partition, "everything")
    federation.run(app, PATIENCE_S, **config("broken", 1, 4))
    said = federation.said("run")
    assert "Training has ended (unavailable) after 2 rounds" in said, said
    assert "its num-examples must be above 0 and at most" in said
    assert training(federation, "broken") == run  # what was recorded is there still
    assert model(federation, "broken")[0] == 2


def test_a_straggler_is_not_waited_for_past_the_deadline(federation, app):
    straggler, others = first_asked(clients=2)
    order(federation, straggler, "hang")
    federation.run(app, PATIENCE_S, **config("late", 2, 1, deadline_s=40.0))
    run = training(federation, "late")
    assert run.status == "rounds" and run.rounds[1].cohort == others
    assert problems(run) == {straggler: "no answer within 40 s"} and run.rounds[1].seconds > 40


def test_a_node_that_is_killed_while_it_trains_is_replaced_and_welcome_back(federation, app):
    victim, others = first_asked(clients=2)
    order(federation, victim, "hang")
    process = federation.begin(app, **config("killed", 2, 2))
    at_work = federation.faults / f"{victim}.training"
    wait_until(at_work.exists, PATIENCE_S, "the client is training")
    federation.kill_node(victim)
    process.wait(PATIENCE_S)
    run = training(federation, "killed")
    assert run.status == "rounds", federation.said("run")
    assert [record.cohort for record in run.rounds[1:]] == [others, others]
    assert problems(run).keys() == {victim}

    # More clients than there are now, though not more than there were.
    federation.run(app, PATIENCE_S, **config("killed", 3, 4, min_clients=2, wait_s=10.0))
    said = federation.said("run")
    assert "Training has ended (unavailable) after 2 rounds" in said, said
    assert "Round 3 needs 3 clients, but after 10 s 2 are there" in said

    (federation.faults / f"{victim}.fault").unlink()
    federation.start_node(victim)
    federation.run(app, PATIENCE_S, **config("killed", 3, 4))
    again = training(federation, "killed")
    assert again.status == "rounds" and again.rounds[:3] == run.rounds
    assert [record.cohort for record in again.rounds[3:]] == [(0, 1, 2)] * 2


def test_a_server_that_is_killed_goes_on_from_its_last_round(federation, app):
    first = federation.begin(app, **config("server", 2, 5))
    wait_until(lambda: "Round 2 with" in federation.said("run"), PATIENCE_S, "two rounds are made")
    (server,) = federation.pids("flwr-serverapp", part="superlink")
    kill(server)
    first.kill()
    first.wait(PATIENCE_S)
    before = training(federation, "server")
    assert before.status == "unfinished" and before.num_rounds in (2, 3)

    federation.run(app, PATIENCE_S, **config("server", 2, 5))
    run = training(federation, "server")
    assert run.status == "rounds" and run.num_rounds == 5
    assert run.rounds[:3] == before.rounds[:3]
    assert f"Round {before.num_rounds - 1} with" not in federation.said("run")
    assert model(federation, "server")[0] == 5
