"""The kernel's side of a prototype: network namespaces, rate limits and processor quotas.

Bridge, links and addresses exist in namespaces alone: nothing of the machine's own network is
touched, and all of it goes with its namespaces.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fedplan.errors import FedplanError, InputError
from processes import wait_until
from profiles import Device

NETWORK = "10.77.0"  # in namespaces alone, so that every prototype can have the same
LINK_ADDRESS = f"{NETWORK}.1"
_PERIOD_US = 100_000


def check_machine() -> None:
    """Refuse a machine that cannot shape devices, with everything that is missing."""
    problems = [] if os.geteuid() == 0 else ["root (try sudo)"]
    problems += [
        f"the command {tool} (of the package iproute2)"
        for tool in ("ip", "tc")
        if shutil.which(tool) is None
    ]
    problems += [] if _find_cgroups() else ["a cgroup file system with the cpu controller"]
    if problems:
        raise InputError(
            f"limiting processor and network needs what is missing here: {', '.join(problems)}. "
            "With --plain devices are ordinary processes without limits, and need none of it."
        )


class Commands:
    """Runs the system's commands; they hold `lock` too, so that none is overlooked when it ends."""

    def __init__(self, lock: int) -> None:
        self._lock = lock

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """What a command prints; if it fails, its own words are the error."""
        done = subprocess.run(
            words,
            env=env,
            pass_fds=[self._lock],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip()
            raise FedplanError(f"`{shlex.join(words)}` failed: {reason}")
        return done.stdout


def make_hub(commands: Commands, hub: str) -> None:
    """A namespace with a bridge, whose address is the SuperLink's."""
    commands.run("ip", "netns", "add", hub)
    commands.run("ip", "-n", hub, "link", "set", "lo", "up")
    commands.run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
    commands.run("ip", "-n", hub, "address", "add", f"{LINK_ADDRESS}/24", "dev", "bridge")
    commands.run("ip", "-n", hub, "link", "set", "bridge", "up")


def make_node(commands: Commands, hub: str, node: str, place: int, device: Device) -> None:
    """A namespace for a device, with a cable to the hub that is as slow as the device's."""
    port = f"device{place}"
    commands.run("ip", "netns", "add", node)
    commands.run("ip", "-n", node, "link", "set", "lo", "up")
    cable = ["type", "veth", "peer", "name", "eth0", "netns", node]
    commands.run("ip", "-n", hub, "link", "add", port, *cable)
    commands.run("ip", "-n", hub, "link", "set", port, "master", "bridge")
    address = f"{NETWORK}.{place + 2}/24"
    commands.run("ip", "-n", node, "address", "add", address, "dev", "eth0")
    # A queue shapes what leaves an interface: each end of the cable has one direction.
    _shape(commands, node, "eth0", device.up_mbit, device.delay_ms)
    _shape(commands, hub, port, device.down_mbit, device.delay_ms)
    commands.run("ip", "-n", node, "link", "set", "eth0", "up")
    commands.run("ip", "-n", hub, "link", "set", port, "up")


def _shape(
    commands: Commands, namespace: str, interface: str, mbit: float | None, delay_ms: float
) -> None:
    add = ("tc", "-n", namespace, "qdisc", "add", "dev", interface)
    parent = ["root"]
    if mbit is not None:
        # What may leave at once: 10 ms worth, but a packet at least.
        burst = max(1_600, round(mbit * 1e6 / 8 * 0.01))
        rate = f"{round(mbit * 1e6)}bit"
        limits = ["tbf", "rate", rate, "burst", str(burst), "latency", "400ms"]
        commands.run(*add, *parent, "handle", "1:", *limits)
        parent = ["parent", "1:1"]
    if delay_ms > 0:
        try:
            commands.run(*add, *parent, "netem", "delay", f"{delay_ms}ms", "limit", "10000")
        except FedplanError as error:
            raise FedplanError(
                f"{error}\nA delay needs the kernel's netem (module sch_netem). "
                "Leave delay-ms out where there is none."
            ) from error


def remove_namespaces(commands: Commands, names: Iterable[str]) -> int:
    """Remove the namespaces that are there, with all that is in them; how many there were."""
    there = [name for name in names if Path("/run/netns", name).exists()]
    for name in there:
        commands.run("ip", "netns", "delete", name)
    return len(there)


def in_namespace(namespace: str, command: Sequence[str]) -> list[str]:
    """The command that runs a command there."""
    return ["ip", "netns", "exec", namespace, *command]


def _find_cgroups() -> tuple[Path, int] | None:
    """Where cgroups with the cpu controller are made, and of which version they are."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(where), 1
        if kind == "cgroup2" and "cpu" in Path(where, "cgroup.controllers").read_text().split():
            return Path(where), 2
    return None


def make_quota(name: str, cpu: float | None) -> Path:
    """A cgroup that may use so much of a core; the file that takes in processes."""
    found = _find_cgroups()
    if found is None:
        raise FedplanError("there is no cgroup file system with the cpu controller any more.")
    root, version = found
    group = root / name
    try:
        if version == 2:
            # Usually on already; only then do the root's children have quotas.
            (root / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
        if cpu is not None:
            file, content = quota_setting(version, cpu)
            (group / file).write_text(content)
    except OSError as error:
        raise FedplanError(
            f"{group}, which limits the processor, cannot be made ({error.strerror}). "
            "In a container it usually may not; --plain does without."
        ) from error
    return group / "cgroup.procs"


def quota_setting(version: int, cpu: float) -> tuple[str, str]:
    """The file of a cgroup with its quota, and what to write there.

    >>> quota_setting(1, 0.25), quota_setting(2, 0.25)
    (('cpu.cfs_quota_us', '25000'), ('cpu.max', '25000 100000'))
    """
    quota = round(cpu * _PERIOD_US)
    if version == 1:
        return "cpu.cfs_quota_us", str(quota)  # of a period that is 100,000 if nobody says else
    return "cpu.max", f"{quota} {_PERIOD_US}"


def within_quota(procs: Path, command: Sequence[str]) -> list[str]:
    """The command that runs a command in a cgroup; all it starts is born there."""
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(procs), *command]


def processes_within(names: Iterable[str]) -> list[int]:
    """The processes in the cgroups, of those that are there."""
    pids: list[int] = []
    for group in _existing(names):
        with suppress(FileNotFoundError):
            pids += map(int, (group / "cgroup.procs").read_text().split())
    return pids


def remove_quotas(names: Iterable[str]) -> int:
    """Remove the cgroups that are there, whose processes have been killed; how many there were."""
    groups = _existing(names)
    for group in groups:
        wait_until(lambda group=group: _rmdir(group), 30.0, f"{group} is still in use")  # type: ignore[misc]
    return len(groups)


def _existing(names: Iterable[str]) -> list[Path]:
    found = _find_cgroups()
    return [found[0] / name for name in names if (found[0] / name).is_dir()] if found else []


def _rmdir(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # busy until the kernel has buried the last process
        return False
    return True
