"""Processes that bear a mark in their environment, so that they and all they start can be found.

A recorded pid may have gone to a stranger, and says nothing of children. A mark is inherited, is
there before a process has run a line, and needs no record.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fedplan.errors import FedplanError

MARK = "FEDPLAN_PROTOTYPE"
_EXEC_S = 0.5  # starting a program takes milliseconds, with a cold disk more
_PF_KTHREAD = 0x00200000


@dataclass(frozen=True, slots=True)
class Found:
    """A running process of a prototype, and the role it was started for."""

    pid: int
    role: str
    command: str


def start_process(
    command: Sequence[str], *, prototype: str, role: str, env: Mapping[str, str], log: Path
) -> None:
    """Start a process that outlives this one; `log` gets what it prints."""
    # The shell leaves at once and init inherits the process, so that nobody here has to wait for
    # it; a session of its own keeps the terminal's signals away.
    with log.open("wb") as output:
        subprocess.run(
            ["sh", "-c", '"$@" </dev/null &', "sh", *command],
            env={**env, MARK: f"{prototype}/{role}"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=True,
        )


def find_processes(prototype: str) -> list[Found]:
    """Every running process of a prototype."""
    return [
        found
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and (found := _look_at(int(entry.name), prototype))
    ]


def _look_at(pid: int, prototype: str) -> Found | None:
    wanted = f"{MARK}={prototype}/".encode()
    try:
        marks = _environment(pid).split(b"\0")
        role = next((mark[len(wanted) :] for mark in marks if mark.startswith(wanted)), None)
        if role is None:
            return None
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or another user's
        return None
    return Found(pid, role.decode(), b" ".join(words).decode(errors="replace").strip())


def _environment(pid: int) -> bytes:
    # It reads as empty while a process becomes another program: look again, so that none slips
    # through. Dead processes and the kernel's own have none for good.
    deadline = time.monotonic() + _EXEC_S
    while not (content := Path(f"/proc/{pid}/environ").read_bytes()):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        is_kernels = int(fields[5]) & _PF_KTHREAD
        if state in "ZX" or is_kernels or time.monotonic() > deadline:
            break
        time.sleep(0.001)
    return content


def kill_processes(prototype: str, *, also: Callable[[], list[int]] = list) -> int:
    """Kill every process of a prototype, and those that `also` names; how many there were.

    Killed outright: what a federation has to keep, fedplan keeps through a kill.
    """
    killed: set[int] = set()

    def is_ours(pid: int) -> bool:
        return _look_at(pid, prototype) is not None or pid in also()

    def none_left() -> bool:
        pids = {found.pid for found in find_processes(prototype)} | set(also())
        killed.update(pid for pid in pids if _kill(pid, is_ours))
        return not pids

    wait_until(none_left, 30.0, "processes of the prototype did not end when killed")
    return len(killed)


def _kill(pid: int, is_ours: Callable[[int], bool]) -> bool:
    # The handle keeps its process whatever becomes of the number; asked after it is held, the
    # answer is about the process that the signal will reach.
    with suppress(ProcessLookupError), _handle(pid) as handle:
        if is_ours(pid):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
    return False


@contextmanager
def _handle(pid: int) -> Iterator[int]:
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def wait_until(
    is_so: Callable[[], bool], timeout_s: float, complaint: str, *, every_s: float = 0.05
) -> None:
    """Ask until it is so, or complain."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise FedplanError(f"{complaint} (waited {timeout_s:g} s).")
        time.sleep(every_s)
