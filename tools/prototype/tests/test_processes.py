from __future__ import annotations

import os
import subprocess

import pytest

from fedplan.errors import FedplanError
from processes import find_processes, kill_processes, start_process, wait_until
from state import new_id


@pytest.fixture
def prototype():
    id_ = new_id()
    yield id_
    kill_processes(id_)


def start(prototype, tmp_path, *command, role="device"):
    start_process(
        command, prototype=prototype, role=role, env=dict(os.environ), log=tmp_path / "log"
    )


def test_children_that_have_left_their_parents_are_found_and_killed_too(prototype, tmp_path):
    # The parent ends at once; its child has a session of its own.
    start(prototype, tmp_path, "sh", "-c", "setsid sleep 1000 & setsid sleep 1001 &")
    wait_until(
        lambda: (
            {found.command for found in find_processes(prototype)} == {"sleep 1000", "sleep 1001"}
        ),
        10,
        "the children did not come",
    )
    assert kill_processes(prototype) == 2
    assert find_processes(prototype) == []
    assert kill_processes(prototype) == 0


def test_others_are_left_alone(prototype, tmp_path):
    other = new_id()
    start(other, tmp_path, "sleep", "1000")
    stranger = subprocess.Popen([b"caf\xe9", "1000"], executable="sleep")  # no UTF-8 either
    try:
        assert kill_processes(prototype) == 0
        assert len(find_processes(other)) == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        assert kill_processes(other) == 1


def test_a_named_process_is_killed_only_while_it_is_named(prototype):
    stranger = subprocess.Popen(["sleep", "1000"])
    answers = iter([[stranger.pid], []])  # named when listed, no longer once its handle is held

    assert kill_processes(prototype, also=lambda: next(answers, [])) == 0
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_a_process_is_seen_while_it_becomes_another_program(prototype, tmp_path):
    turns = 'n=$1; [ $n = 0 ] && exec sleep 1000; exec sh -c "$0" "$0" $((n - 1))'
    start(prototype, tmp_path, "sh", "-c", turns, turns, "300")
    looks = 0
    while True:
        (seen,) = find_processes(prototype)
        if seen.command == "sleep 1000":
            break
        looks += 1
    assert looks > 3


def test_output_goes_to_the_log_and_arguments_are_not_read_by_a_shell(prototype, tmp_path):
    start(prototype, tmp_path, "echo", "$HOME; `id` 'x'")
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and log.read_text() != "", 10, "nothing was printed")
    assert log.read_text() == "$HOME; `id` 'x'\n"


def test_waiting_ends():
    with pytest.raises(FedplanError, match=r"it never comes \(waited 0.1 s\)"):
        wait_until(lambda: False, 0.1, "it never comes")
