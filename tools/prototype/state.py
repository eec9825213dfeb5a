"""What a prototype consists of, written down before any of it is made.

Every name is known beforehand, so one file, written once, is enough to remove all of it at any
moment. `locked` keeps `up` and `down` apart; the lock ends with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fedplan.errors import InputError
from files import write_whole
from machine import LINK_ADDRESS
from processes import wait_until
from profiles import Device, is_name

_STATE, _LOCK = "prototype.json", ".lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A prototype: which devices, where they listen, and how its parts are called."""

    id: str
    name: str
    owner: int  # the user whose processes these are
    plain: bool
    devices: tuple[Device, ...]
    link_port: int
    node_ports: tuple[int, ...]

    @property
    def hub(self) -> str:
        """The namespace of bridge and SuperLink."""
        return f"fedplan-{self.id}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """A namespace and a cgroup have the name for each device."""
        return tuple(f"{self.hub}-{device.name}" for device in self.devices)

    @property
    def host(self) -> str:
        """Where the SuperLink listens: loopback, or the bridge, and nowhere else."""
        return "127.0.0.1" if self.plain else LINK_ADDRESS

    @property
    def address(self) -> str:
        """The SuperLink's, for SuperNodes and for `flwr`."""
        return f"{self.host}:{self.link_port}"


def new_id() -> str:
    """A name that no other prototype of the machine has."""
    return secrets.token_hex(5)


def write_state(folder: Path, state: State) -> None:
    """Write the state, which must not be there."""
    content = json.dumps(asdict(state), indent=2) + "\n"
    write_whole(folder / _STATE, content.encode())


def read_state(folder: Path) -> State | None:
    """The prototype of a folder, if there is one."""
    path = folder / _STATE
    try:
        content = json.loads(path.read_text())
        content["devices"] = tuple(Device(**device) for device in content["devices"])
        content["node_ports"] = tuple(content["node_ports"])
        state = State(**content)
        # They become parts of paths that root removes.
        if not all(map(is_name, [state.id, *(device.name for device in state.devices)])):
            raise ValueError("a name is none")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is not a file that `up` of this tool has written ({error})."
        ) from error
    if os.geteuid() not in (0, state.owner):
        raise InputError(
            f"the prototype in {folder} is another user's (number {state.owner}), and you may not "
            "see or end its processes. Try sudo."
        )
    return state


def forget_state(folder: Path) -> None:
    """What the folder described is gone."""
    (folder / _STATE).unlink()


@contextmanager
def locked(folder: Path, *, wait_s: float = 10.0) -> Iterator[int]:
    """Hold the folder against other `up` and `down`; the descriptor that holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{folder} cannot be written in ({error.strerror}).") from error
    try:
        wait_until(
            lambda: _try_lock(handle),
            wait_s,
            f"another `up` or `down` is at work in {folder}; wait for it, or stop it",
        )
        yield handle
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
