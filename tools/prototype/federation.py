"""Up, status and down of a prototype: a SuperLink and SuperNodes on one machine."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fedplan.errors import FedplanError, InputError
from files import write_whole
from machine import (
    Commands,
    check_machine,
    in_namespace,
    make_hub,
    make_node,
    make_quota,
    processes_within,
    remove_namespaces,
    remove_quotas,
    within_quota,
)
from processes import find_processes, kill_processes, start_process, wait_until
from profiles import LINK, Device
from state import State, forget_state, locked, new_id, read_state, write_state

LINK_PORT, NODE_PORT = 8000, 9094  # Flower's own, in namespaces, where they are always free
_LINK_WAIT_S, _NODES_WAIT_S = 120.0, 600.0  # a node at a tenth of a core takes a minute to start
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process of the prototype, with all that it has started."""

    name: str
    device: Device | None  # None: the SuperLink
    pid: int | None  # None: not running
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How much `down` has removed."""

    processes: int
    namespaces: int
    cgroups: int


def up(
    folder: Path, name: str, devices: Sequence[Device], *, plain: bool, progress: Progress
) -> State:
    """Start a SuperLink and a SuperNode for every device; all connected, or nothing is left."""
    tools = _Tools.find()
    if not plain:
        check_machine()
    folder = folder.resolve()
    with locked(folder) as lock:
        if read_state(folder) is not None:
            raise InputError(
                f"there is a prototype in {folder} already. Type `{down_command(folder)}` "
                "first, or choose another --name."
            )
        ports = _free_ports(len(devices) + 1) if plain else None
        state = State(
            id=new_id(),
            name=name,
            owner=os.geteuid(),
            plain=plain,
            devices=tuple(devices),
            link_port=ports[0] if ports else LINK_PORT,
            node_ports=ports[1:] if ports else (NODE_PORT,) * len(devices),
        )
        write_state(folder, state)
        commands = Commands(lock)
        try:
            _Start(folder, state, tools, commands, progress).start()
        except BaseException:
            progress("That failed; removing what was made ...")
            _remove(folder, state, commands)
            raise
    return state


def down(folder: Path) -> Removed | None:
    """Remove a prototype, whatever became of it; None if there is none."""
    if read_state(folder) is None:
        return None
    folder = folder.resolve()
    with locked(folder) as lock:
        state = read_state(folder)
        return None if state is None else _remove(folder, state, Commands(lock))


def _remove(folder: Path, state: State, commands: Commands) -> Removed:
    groups = () if state.plain else state.nodes
    removed = Removed(
        processes=kill_processes(state.id, also=lambda: processes_within(groups)),
        namespaces=0 if state.plain else remove_namespaces(commands, (*state.nodes, state.hub)),
        cgroups=remove_quotas(groups),
    )
    forget_state(folder)  # last: until then, `down` can be repeated
    return removed


def status(folder: Path) -> tuple[State, list[Member]] | None:
    """The prototype of a folder and its processes; None if there is none."""
    state = read_state(folder)
    if state is None:
        return None
    found = find_processes(state.id)
    parts = [(LINK, None), *((device.name, device) for device in state.devices)]
    members = []
    for name, device in parts:
        program = "flower-superlink" if device is None else "flower-supernode"
        mine = [process for process in found if process.role == name]
        heads = [process.pid for process in mine if program in process.command]
        pids = tuple(sorted(process.pid for process in mine))
        members.append(Member(name=name, device=device, pid=min(heads, default=None), pids=pids))
    return state, members


def _home(folder: Path) -> Path:
    return folder / "flwr"


def next_commands(folder: Path, state: State) -> dict[str, str]:
    """The lines to type to run an app of Flower's, or a study of fedplan's, on a prototype."""

    def line(program: str, *words: str) -> str:
        found = shutil.which(program, path=_search_path()) or program
        command = ["env", f"FLWR_HOME={_home(folder.resolve())}", found, "run", *words]
        return shlex.join(command if state.plain else in_namespace(state.hub, command))

    return {
        "app": line("flwr", "APP", state.name),
        "study": line("fedplan", "STUDY", "--runner", "flower", "--federation", state.name),
    }


def down_command(folder: Path) -> str:
    """The line to type to remove a prototype."""
    tool = str(Path(__file__).resolve().parent)
    return shlex.join([sys.executable, tool, "down", "--folder", str(folder)])


@dataclass(frozen=True, slots=True)
class _Tools:
    """Flower's commands, of the environment that fedplan is in."""

    superlink: str
    supernode: str
    flwr: str

    @classmethod
    def find(cls) -> _Tools:
        if sys.platform != "linux":
            raise InputError("a prototype needs Linux.")
        path = _search_path()
        found = [
            shutil.which(name, path=path)
            for name in ("flower-superlink", "flower-supernode", "flwr")
        ]
        if None in found:
            raise FedplanError(
                "a prototype needs the package flwr, which is not installed. "
                "Type: pip install '.[flower]' in the checkout."
            )
        return cls(*(str(name) for name in found))


def _search_path() -> str:
    # Flower starts its own helpers by name, so they must be found, activated or not.
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _free_ports(count: int) -> tuple[int, ...]:
    with ExitStack() as stack:  # all at once, so that they differ
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in sockets)


class _Start:
    """Brings up what a state describes."""

    def __init__(
        self, folder: Path, state: State, tools: _Tools, commands: Commands, progress: Progress
    ) -> None:
        self._folder, self._state, self._tools = folder, state, tools
        self._commands, self._progress = commands, progress
        self._started: list[str] = []

    def start(self) -> None:
        state = self._state
        (self._folder / "logs").mkdir(exist_ok=True)
        if not state.plain:
            from certs import Certificates

            self._certificates = Certificates(self._folder / "certs")
            self._certificates.make((device.name for device in state.devices), [state.host])
            make_hub(self._commands, state.hub)
        self._write_connection()
        self._progress(f"Starting the SuperLink at {state.address} ...")
        self._start_link()
        wait_until(self._link_listens, _LINK_WAIT_S, "the SuperLink did not come to listen")
        for place, device in enumerate(state.devices):
            self._progress(f"Starting {device.name} ...")
            self._start_node(place, device)
        self._progress("Waiting for the devices to connect ...")
        complaint = f"not all devices connected; see {self._folder / 'logs'}"
        wait_until(self._all_online, _NODES_WAIT_S, complaint, every_s=2.0)

    def _write_connection(self) -> None:
        """Flower's own file of SuperLinks, with this one in it, for `flwr run`."""
        home = _home(self._folder)
        home.mkdir(exist_ok=True)
        trust = (
            "insecure = true"
            if self._state.plain
            else f"root-certificates = {json.dumps(str(self._certificates.ca))}"
        )
        name = json.dumps(self._state.name)
        content = (
            f"[superlink]\ndefault = {name}\n\n[superlink.{name}]\n"
            f"address = {json.dumps(self._state.address)}\n{trust}\n"
        )
        write_whole(home / "config.toml", content.encode())

    def _start_link(self) -> None:
        state = self._state
        command = [self._tools.superlink, "--host", state.host, "--port", str(state.link_port)]
        # An app runs with what is installed here: without the flag Flower would install packages.
        command += ["--disable-runtime-dependency-installation"]
        if state.plain:
            command += ["--insecure"]
        else:
            certificates = self._certificates
            command += ["--ssl-ca-certfile", str(certificates.ca)]
            command += ["--ssl-certfile", str(certificates.server)]
            command += ["--ssl-keyfile", str(certificates.server_key)]
            command += ["--enable-supernode-auth"]
            command = in_namespace(state.hub, command)
        self._launch(LINK, command)

    def _start_node(self, place: int, device: Device) -> None:
        state = self._state
        config = f'partition-id={place} num-partitions={len(state.devices)} name="{device.name}"'
        command = [self._tools.supernode, "--superlink", state.address, "--node-config", config]
        command += ["--host", "127.0.0.1", "--port", str(state.node_ports[place])]
        if state.plain:
            self._launch(device.name, [*command, "--insecure"])
            return
        certificates, node = self._certificates, state.nodes[place]
        command += ["--root-certificates", str(certificates.ca)]
        command += ["--auth-supernode-private-key", str(certificates.node_key(device.name))]
        self._flwr("supernode", "register", str(certificates.public_key(device.name)), state.name)
        make_node(self._commands, state.hub, node, place, device)
        procs = make_quota(node, device.cpu)
        self._launch(device.name, within_quota(procs, in_namespace(node, command)))

    def _launch(self, name: str, command: Sequence[str]) -> None:
        # Each has a home of its own, as real devices have: Flower unpacks apps there.
        home = self._folder / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        environment = self._environment(home)
        start_process(
            command, prototype=self._state.id, role=name, env=environment, log=self._log(name)
        )
        self._started.append(name)

    def _environment(self, home: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": _search_path(),
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }

    def _flwr(self, *words: str) -> str:
        state, command = self._state, [self._tools.flwr, *words]
        return self._commands.run(
            *(command if state.plain else in_namespace(state.hub, command)),
            env=self._environment(_home(self._folder)),
        )

    def _link_listens(self) -> bool:
        pid = self._check_alive()[LINK]
        try:  # seen from outside: the file is of the network namespace that the process is in
            lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return False
        host = int.from_bytes(socket.inet_aton(self._state.host), sys.byteorder)
        wanted = [f"{host:08X}:{self._state.link_port:04X}", "0A"]  # 0A: listening
        return any([row[1], row[3]] == wanted for row in map(str.split, lines))

    def _all_online(self) -> bool:
        self._check_alive()
        answer = json.loads(self._flwr("supernode", "list", self._state.name, "--format", "json"))
        online = [node for node in answer["nodes"] if node["status"] == "online"]
        return len(online) == len(self._state.devices)

    def _check_alive(self) -> dict[str, int]:
        """The pids of what has been started; an error, with its last words, if one has ended."""
        pids = {process.role: process.pid for process in find_processes(self._state.id)}
        for name in self._started:
            if name not in pids:
                words = self._log(name).read_text(errors="replace").splitlines()[-15:]
                raise FedplanError("\n".join([f"{name} has ended. Its last words:", *words]))
        return pids

    def _log(self, name: str) -> Path:
        return self._folder / "logs" / f"{name}.log"
