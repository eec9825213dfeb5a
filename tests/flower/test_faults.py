"""Clients that raise, are late, leave or come: a round is made of K answers, or it is not made."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest
from flower.conftest import CLIENTS, make_federation
from flower.federation import Node

from fedplan import InputError
from fedplan.core.problem import Problem
from fedplan.core.records import Stop
from fedplan.course.live import Live, alike
from fedplan.flower import exchange
from fedplan.flower.conduct import LATE, MOST_PATIENCE, SPREAD
from fedplan.flower.exchange import SLACK_S
from fedplan.flower.rules import RoundRules
from fedplan.participation import uniform


def test_a_client_that_raises_once_is_asked_again_where_nobody_else_is_left(federation):
    failures = iter([True])

    federation.node_of(3).tamper = lambda _, reply: None if next(failures, False) else reply
    clean = federation.runner().run(uniform(CLIENTS, 2), Stop(max_rounds=3), seed=1)
    assert clean.status == "rounds" and clean.rounds[1].cohort == tuple(range(CLIENTS))
    problems = [one for one in clean.rounds[1].observations if one.problem]
    assert [one.client for one in problems] == [3] and "no answer" in problems[0].problem
    # It waited for as long as one may take of whom nothing is known, and was then completed.
    assert clean.rounds[1].seconds > SLACK_S > clean.rounds[2].seconds


def test_an_app_that_raises_is_told_in_its_own_words(federation):
    federation.node_of(3).config["partition-id"] = "three"
    run = federation.runner().run(uniform(CLIENTS, 2), Stop(max_rounds=1))
    assert run.status == "unavailable" and "invalid literal for int()" in run.message
    assert "needs 20 answers, but got 19" in run.message and run.num_rounds == 0


def test_a_late_answer_is_not_used_and_does_not_leak_into_the_next_round(federation, simulator):
    runner = federation.runner(rules=RoundRules(deadline_s=10.0))
    assert runner.num_clients == CLIENTS
    federation.node_of(5).comm_s = 30.0  # its answer comes while a later round is under way
    run = runner.run(uniform(8, 2), Stop(max_rounds=12), seed=2)
    assert run.status == "rounds"
    assert all(5 not in record.cohort for record in run.rounds)
    asked = [one for record in run.rounds for one in record.observations if one.client == 5]
    assert asked and all("no answer within 10 s" in one.problem for one in asked)
    assert all(one.round_trip_seconds is None for one in asked)
    # Were a message to expire at its deadline, Flower would report it lost just before that.
    assert all(sent.metadata.ttl > 10.0 for sent in federation.grid.sent)


def silent(*_):
    """What a client answers that hangs."""


def online_run(federation, rounds, **options):
    problem = Problem(fleet=alike(CLIENTS), target_loss=0.01, learning_rate=federation.rate)
    runner = federation.runner(rules=RoundRules(), **options)  # with an hour to answer
    assert runner.wait_for(CLIENTS) == CLIENTS
    return runner.run(Live.online(problem, guessed=True), Stop(max_rounds=rounds, target_loss=0.01))


def waits_in_vain(run):
    """Seconds of the rounds in which somebody did not answer, and the longest anybody took."""
    waits = [r.seconds for r in run.rounds for one in r.observations if "no answer" in one.problem]
    trips = [one.round_trip_seconds or 0.0 for r in run.rounds for one in r.observations]
    return waits, max(trips)


def test_a_client_that_never_answers_keeps_no_round_for_long(federation):
    federation.node_of(5).tamper = silent
    run = online_run(federation, 40)
    assert run.status == "rounds"
    waits, longest = waits_in_vain(run)
    assert len(waits) >= 3 and max(waits) <= MOST_PATIENCE * (LATE * longest + SLACK_S) + 1
    assert waits[0] < SPREAD * longest + SLACK_S + 1  # of the first round, with nobody known


def test_one_that_always_raises_gives_another_that_hangs_no_longer(federation):
    federation.node_of(4).config["partition-id"] = "four"  # raises at once: it was never heard of

    def hang(_, told):
        if told.record.round == 6:
            federation.node_of(7).tamper = silent

    waits, longest = waits_in_vain(online_run(federation, 20, report=hang))
    assert waits and max(waits) <= MOST_PATIENCE * (LATE * longest + SLACK_S) + 1


def test_a_round_may_count_with_fewer_answers(federation):
    rules = RoundRules(deadline_s=10.0, min_replies=CLIENTS - 1)
    runner = federation.runner(rules=rules)
    assert runner.num_clients == CLIENTS
    federation.node_of(5).comm_s = 30.0
    run = runner.run(uniform(CLIENTS, 2), Stop(max_rounds=2))
    assert [len(record.cohort) for record in run.rounds[1:]] == [CLIENTS - 1] * 2


def test_a_reply_whose_upload_never_ends_holds_up_neither_others_nor_the_deadline(
    federation, monkeypatch
):
    monkeypatch.setattr(exchange, "PATIENCE_S", 2.0)
    rules = RoundRules(deadline_s=10.0, min_replies=CLIENTS - 1)
    runner = federation.runner(rules=rules)
    assert runner.num_clients == CLIENTS
    grid, ended = federation.grid, Event()
    pull = grid.pull_messages

    def pull_or_wait(message_ids):  # as Flower does: announced is not uploaded
        asked = [one.metadata for one in grid.sent if one.metadata.message_id in message_ids]
        if any(grid.nodes[one.dst_node_id] is federation.node_of(5) for one in asked):
            ended.wait(60)
        return list(pull(message_ids))

    grid.pull_messages = pull_or_wait
    try:
        run = runner.run(uniform(CLIENTS, 2), Stop(max_rounds=2))
    finally:
        ended.set()
    assert [len(record.cohort) for record in run.rounds[1:]] == [CLIENTS - 1] * 2
    for one in (one for record in run.rounds for one in record.observations):
        if one.client == 5:
            assert one.problem == "no answer within 10 s"
        else:
            assert not one.problem and one.round_trip_seconds < 2.0


def test_repeats_are_bounded_and_the_model_is_as_it_was(federation):
    for partition in range(12):
        federation.node_of(partition).tamper = lambda *_: None
    runner = federation.runner(rules=RoundRules(deadline_s=5.0, max_repeats=2))
    run = runner.run(uniform(10, 2), Stop(max_rounds=5), seed=1)
    assert run.status == "unavailable" and "no answer within 5 s" in run.message
    assert not runner.weights["weights"].any()


def test_clients_that_all_send_nan_have_diverged(federation):
    def explode(_, reply):
        array = reply.content["arrays"]["weights"]
        data = bytearray(array.data)
        data[-4:] = np.float32(np.nan).tobytes()
        array.data = bytes(data)
        return reply

    for node in federation.grid.nodes.values():
        node.tamper = explode
    run = federation.runner().run(uniform(5, 2), Stop(max_rounds=5))
    assert run.status == "diverged" and run.num_rounds == 0


def test_nodes_that_leave_are_not_asked_and_those_that_come_are(federation):
    grid = federation.grid
    gone = {partition: node_id(grid, partition) for partition in (1, 4, 9)}

    def report(_, told):
        if told.record.round == 2:
            for node in gone.values():
                del grid.nodes[node]
        if told.record.round == 6:
            grid.nodes[5555] = Node({"partition-id": 4})  # came back with another id

    run = federation.runner(report=report).run(uniform(17, 1), Stop(max_rounds=10), seed=3)
    assert run.status == "rounds"
    present = [set(record.cohort) for record in run.rounds]
    assert all(not cohort & {1, 4, 9} for cohort in present[3:7])
    assert any(4 in cohort for cohort in present[7:])
    assert all(not cohort & {1, 9} for cohort in present[7:])


def test_too_few_nodes_end_a_run_after_a_while(federation):
    grid = federation.grid

    def report(_, told):
        if told.record.round == 2:
            del grid.nodes[node_id(grid, 0)]

    before = federation.clock.now()
    run = federation.runner(report=report).run(uniform(CLIENTS, 1), Stop(max_rounds=10))
    assert run.status == "unavailable" and run.num_rounds == 2
    assert "needs 20 clients, but after 10 s 19 are there" in run.message
    assert federation.clock.now() - before < 60


def test_nodes_that_come_within_the_wait_are_waited_for(federation):
    grid = federation.grid
    late = {id_: grid.nodes.pop(id_) for id_ in list(grid.nodes)[:3]}
    wait = federation.clock.wait

    def arrive(seconds):
        wait(seconds)
        if federation.clock.now() > 5:
            grid.nodes.update(late)

    federation.clock.wait = arrive
    assert federation.runner().run(uniform(CLIENTS, 1), Stop(max_rounds=1)).status == "rounds"


def test_more_clients_than_ever_come_are_refused(federation):
    with pytest.raises(InputError, match="num_clients=20"):
        federation.runner().run(uniform(CLIENTS + 1, 1), Stop(max_rounds=1))


def test_a_restart_of_every_node_changes_no_cohort(logistic, federation):
    stop = Stop(max_rounds=4)
    one = federation.runner().run(uniform(6, 2), stop, seed=5)
    other = make_federation(logistic, first_id=777).runner().run(uniform(6, 2), stop, seed=5)
    assert one == other


def test_the_order_of_answers_does_not_number_the_clients(federation):
    for place, node in enumerate(federation.grid.nodes.values()):
        node.comm_s = 0.25 + 0.3 * (place % 5)
    runner = federation.runner()
    assert runner.num_clients == CLIENTS
    assert runner.names == tuple(f"partition-{client}" for client in range(CLIENTS))


def test_of_two_nodes_with_one_name_the_first_takes_part(federation, caplog):
    federation.grid.nodes[99] = Node({"partition-id": 3})
    runner = federation.runner()
    assert runner.num_clients == CLIENTS and "both call themselves partition-3" in caplog.text


def test_a_node_that_is_silent_is_not_waited_for_and_takes_part_once_it_answers(federation):
    silent = federation.node_of(4)
    silent.nameless = True
    runner = federation.runner()
    assert runner.num_clients == CLIENTS - 1
    silent.nameless = False
    federation.clock.sleep(60)
    runner.run(uniform(2, 1), Stop(max_rounds=3))
    assert runner.num_clients == CLIENTS and runner.names[-1] == "partition-4"


def test_nodes_without_a_name_go_by_their_ids(federation):
    for node in federation.grid.nodes.values():
        del node.config["partition-id"]
    runner = federation.runner()
    assert runner.num_clients == CLIENTS
    assert set(runner.names) == {f"node-{id_}" for id_ in federation.grid.nodes}


def node_id(grid, partition):
    return next(i for i, node in grid.nodes.items() if node.config["partition-id"] == partition)
