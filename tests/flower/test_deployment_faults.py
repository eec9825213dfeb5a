"""What goes wrong with real processes: training goes on, or ends and says why; no round is lost."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from flower.deployment import copy_of_example, deployed, kill, needs_proc, stored_runs, wait_until

from fedplan.flower.conduct import RESTS
from fedplan.flower.journal import load_weights
from fedplan.participation.draws import pick

pytestmark = [pytest.mark.slow, needs_proc]

NODES = 3
ASKED = 4  # times, of the client that always raises
PATIENCE_S = 600  # for anything that is to happen: far longer than it takes
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
        "target_loss": 0.1, "num_server_rounds": rounds,
    } | more  # fmt: skip


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


@pytest.fixture(scope="module")
def eventful(tmp_path_factory, app):
    """The record of a training by turns in which a good deal goes wrong.

    One client always raises; one after the other a node comes late, a client is slow beyond the
    deadline, and a node is killed and comes back.
    """
    folder = tmp_path_factory.mktemp("eventful")
    always_raises, slow, killed, late = 0, 1, 2, 3
    with deployed(folder, 4, late=[late]) as there:
        order(there, always_raises, "raise")
        # Enough rounds for all of it; the test ends the training.
        server = there.begin(app, **config("eventful", 0, 4000, min_clients=3, local_steps=0))

        def says(what):
            wait_until(lambda: what in there.said("run"), PATIENCE_S, what)

        def trains_again(client):
            before = len(rounds_of(there, "eventful"))
            wait_until(
                lambda: any(client in one.cohort for one in rounds_of(there, "eventful")[before:]),
                PATIENCE_S,
                f"client {client} takes part again",
            )

        says("Round 3 with")
        there.start_node(late)
        says("New clients have come: 1.")
        trains_again(late)
        order(there, slow, "hang")
        says(f"client {slow} is not used: no answer within")
        (there.faults / f"{slow}.fault").unlink()
        trains_again(slow)
        there.kill_node(killed)
        wait_until(
            lambda: problems(training(there, "eventful")).get(killed), PATIENCE_S, "it is missed"
        )
        there.start_node(killed)
        trains_again(killed)
        wait_until(
            lambda: len(asked(training(there, "eventful"), always_raises)) >= ASKED,
            PATIENCE_S,
            "the client that always raises is asked again",
        )
        server.kill()
        return training(there, "eventful")


def asked(run, client):
    """Which of its turns a client was asked in, and did not sit out."""
    turns = [one for r in run.rounds for one in r.observations if one.client == client]
    return [place for place, one in enumerate(turns) if one.problem != RESTS]


def test_a_node_that_comes_late_is_in_the_plan_afterwards(eventful):
    known = [
        {client for group in record.setting.participation.groups for client in group}
        for record in eventful.rounds[1:]
    ]
    assert known[0] == {0, 1, 2} and known[-1] == {0, 1, 2, 3}
    assert any(3 in record.cohort for record in eventful.rounds)


def test_a_straggler_and_a_killed_node_are_missed_and_come_back(eventful):
    late = ("no answer within",)
    gone = (*late, "it is not there", "it failed with error 5")  # Flower's word
    for client, why in ((1, late), (2, gone)):
        missed = [
            record.round
            for record in eventful.rounds
            for one in record.observations
            if one.client == client and one.problem.startswith(why)
        ]
        trained = [record.round for record in eventful.rounds if client in record.cohort]
        assert missed and trained[0] < missed[0] and max(missed) < trained[-1]


def test_a_client_that_always_raises_is_asked_less_and_less(eventful):
    told = [one.problem for r in eventful.rounds for one in r.observations if one.client == 0]
    assert all(told) and "the battery is empty" in told[0]
    waits = [after - before - 1 for before, after in pairwise(asked(eventful, 0))]
    assert len(waits) >= ASKED - 1
    assert waits == [0, 1, 3, 7, *[15] * len(waits)][: len(waits)]


def test_no_failed_update_is_averaged_and_the_others_go_on(eventful):
    assert eventful.losses[-1] < 0.9 * eventful.losses[0]
    for record in eventful.rounds[1:]:
        used = {one.client for one in record.observations if not one.problem}
        assert used == set(record.cohort) and 0 not in used


def test_a_server_killed_three_times_comes_to_the_same_as_one_that_was_not(federation, app):
    federation.run(app, PATIENCE_S, **config("whole", 2, 7))
    whole = training(federation, "whole")
    draws = random.Random(1)
    seen = 0
    for _ in range(3):
        first = federation.begin(app, **config("server", 2, 7))
        wait_until(
            lambda now=seen: len(rounds_of(federation, "server")) > now, PATIENCE_S, "a round"
        )
        time.sleep(draws.uniform(0.0, whole.rounds[1].seconds))  # the moment that is tested
        for server in federation.pids("flwr-serverapp", part="superlink"):
            kill(server)
        first.kill()
        first.wait(PATIENCE_S)
        before = rounds_of(federation, "server")
        assert [record.loss for record in before] == list(whole.losses[: len(before)])
        seen = len(before)
    federation.run(app, PATIENCE_S, **config("server", 2, 7))
    run = training(federation, "server")
    assert run.status == "rounds" and run.losses == whole.losses
    assert [record.cohort for record in run.rounds] == [record.cohort for record in whole.rounds]
    assert run.rounds[: seen - 1] == before[:-1]  # a round of which no model was kept is made again
    one, other = (model(federation, study) for study in ("server", "whole"))
    assert all((one.weights[name] == other.weights[name]).all() for name in other.weights)


def test_another_learning_rate_under_the_name_of_a_study_is_refused(federation, app):
    federation.run(app, PATIENCE_S, **config("rate", 2, 1))
    before = training(federation, "rate")
    files = {path: path.read_bytes() for path in federation.folder.glob("rate-flower/**/*.npz")}
    federation.run(app, PATIENCE_S, **config("rate", 2, 3, learning_rate=0.02))
    said = federation.said("run")
    assert "study 'rate' was begun with another configuration: learning_rate was" in said, said
    assert training(federation, "rate") == before and files
    assert {path: path.read_bytes() for path in files} == files


def rounds_of(federation, study):
    """The rounds that a study has made so far."""
    runs = stored_runs(federation.folder, study)
    return runs[0].rounds if runs else ()
