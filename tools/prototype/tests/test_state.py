from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from federation import down, status, up
from fedplan.errors import FedplanError, InputError
from processes import find_processes, start_process
from profiles import Device, read_profile
from state import State, locked, new_id, read_state, write_state

TOOL = Path(__file__).parents[1]


def make_state(**changes):
    fields = {
        "id": new_id(),
        "name": "lab",
        "owner": os.geteuid(),
        "plain": True,
        "devices": (Device(name="pi"), Device(name="phone", cpu=0.5, delay_ms=3.0)),
        "link_port": 4000,
        "node_ports": (4001, 4002),
    }
    return State(**{**fields, **changes})


def test_a_state_is_read_as_it_was_written(tmp_path):
    state = make_state()
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert read_state(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"devices": [{"nam": 1}]}', "null"])
def test_a_file_that_is_no_state_is_refused(tmp_path, content):
    (tmp_path / "prototype.json").write_text(content)
    for use in (down, status, read_state):
        with pytest.raises(InputError, match="not a file that"):
            use(tmp_path)


def test_names_that_lead_elsewhere_are_refused(tmp_path):
    for changes in ({"id": "../../etc"}, {"devices": (Device(name="../x"),)}):
        write_state(tmp_path, make_state(**changes))
        with pytest.raises(InputError, match="a name is none"):
            down(tmp_path)


def test_another_users_prototype_is_left_to_them(run_code):
    said = run_code("""
import os, tempfile
from pathlib import Path
from federation import down
from state import State, write_state
if os.geteuid() == 0:
    os.setuid(65534)
with tempfile.TemporaryDirectory() as folder:
    state = State(
        id="x", name="lab", owner=12345, plain=True, devices=(), link_port=1, node_ports=()
    )
    write_state(Path(folder), state)
    down(Path(folder))
""")
    assert "is another user's (number 12345)" in said


def test_down_removes_what_the_state_describes_however_little_there_is(tmp_path):
    state = make_state()
    write_state(tmp_path, state)  # killed before anything was made
    assert down(tmp_path).processes == 0
    assert down(tmp_path) is None

    write_state(tmp_path, state)  # killed with one device started
    start_process(
        ["sleep", "1000"], prototype=state.id, role="pi", env=dict(os.environ), log=tmp_path / "log"
    )
    assert [len(member.pids) for member in status(tmp_path)[1]] == [0, 1, 0]
    assert down(tmp_path).processes == 1
    assert find_processes(state.id) == []
    assert status(tmp_path) is None


def test_up_refuses_where_there_is_a_prototype_and_says_down(tmp_path):
    state = make_state()
    write_state(tmp_path, state)
    with pytest.raises(InputError, match="prototype down --folder"):
        up(tmp_path, "lab", read_profile("even", 1), plain=True, progress=lambda _: None)
    assert read_state(tmp_path) == state


def test_the_lock_ends_with_its_holder_and_with_the_commands_it_runs(tmp_path):
    holder = """
import subprocess, sys
from pathlib import Path
from state import locked
with locked(Path(sys.argv[1])) as lock:
    subprocess.Popen(["sleep", "3"], stdout=subprocess.DEVNULL)
    command = subprocess.Popen(["cat"], pass_fds=[lock])
    print(command.pid, flush=True)
    command.wait()
"""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", holder, tmp_path],
        cwd=TOOL,
        stdin=reader,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(reader)
    process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    with pytest.raises(FedplanError, match="at work"), locked(tmp_path, wait_s=0.3):
        pass
    os.close(writer)  # ends the command; the sleep may go on, which has nothing to do with the lock
    with locked(tmp_path, wait_s=10):
        pass
