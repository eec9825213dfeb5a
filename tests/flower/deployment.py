"""A federation of real processes on the loopback interface: a SuperLink and its SuperNodes.

Flower starts further processes of its own, some in sessions of their own, so what belongs to a
federation is told by its FLWR_HOME, which all of them inherit.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from fedplan.core.records import RunRecord
from fedplan.store import Store

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flower_app"
BIN = Path(sys.executable).parent
PART = "FEDERATION_PART"  # in the environment of a part's processes: its name
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="finds its processes in /proc, as on Linux"
)
START_S, GONE_S, POLL_S = 300.0, 120.0, 0.1


class Deployment:
    """A SuperLink, SuperNodes by their partition, and the runs that were started on them."""

    def __init__(
        self,
        folder: Path,
        num_nodes: int,
        seconds_per_batch: Sequence[float] = (),
        late: Sequence[int] = (),
    ) -> None:
        self.folder, self.num_nodes, self._late = folder, num_nodes, late
        self._seconds_per_batch = seconds_per_batch or [0.0] * num_nodes
        self.home = folder / "flwr-home"
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._others: list[subprocess.Popen[bytes]] = []
        self._port = free_port()

    def start(self) -> None:
        """Start everything; the server waits for the nodes itself."""
        self.home.mkdir(parents=True)
        address = f"127.0.0.1:{self._port}"
        (self.home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{address}"\n'
            "insecure = true\n"
        )
        link = self._spawn(
            "superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1",
            "--port", str(self._port), "--disable-runtime-dependency-installation",
        )  # fmt: skip
        self._others.append(link)
        wait_until(lambda: self._is_up(link), START_S, "the SuperLink answers")
        for partition in sorted(set(range(self.num_nodes)) - set(self._late)):
            self.start_node(partition)

    def start_node(self, partition: int) -> None:
        """Start the SuperNode of a partition."""
        config = (
            f'partition-id={partition} num-partitions={self.num_nodes} faults="{self.faults}" '
            f"seconds-per-batch={float(self._seconds_per_batch[partition])}"
        )
        self.nodes[partition] = self._spawn(
            f"node-{partition}", "flower-supernode", "--insecure", "--host", "127.0.0.1",
            "--port", str(free_port()), "--superlink", f"127.0.0.1:{self._port}",
            "--node-config", config,
        )  # fmt: skip

    @property
    def faults(self) -> Path:
        """Where a test says what is to go wrong, and the clients what they are doing."""
        folder = self.folder / "faults"
        folder.mkdir(exist_ok=True)
        return folder

    def kill_node(self, partition: int) -> None:
        """End a SuperNode at once, and every process it has started."""
        node = self.nodes.pop(partition)
        for pid in self.pids(part=f"node-{partition}"):
            kill(pid)
        node.wait(GONE_S)

    def run(self, app: Path, seconds: float, **config: float | str) -> Path:
        """Run an app to its end; the folder with its store."""
        run = self.begin(app, **config)
        try:
            run.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"not over within {seconds:g} s; it said:\n{self.said('run')}")
        return self.folder

    def begin(self, app: Path, **config: float | str) -> subprocess.Popen[bytes]:
        """Start an app; the process shows its log, and ends when the app does."""
        defaults = {"store": str(self.folder / "fedplan.db"), "min-clients": self.num_nodes}
        wanted = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"][
            "config"
        ]
        known = {key: value for key, value in defaults.items() if key in wanted}
        known |= {key.replace("_", "-"): value for key, value in config.items()}
        words = " ".join(f"{key}={json.dumps(value)}" for key, value in known.items())
        run = self._spawn("run", "flwr", "run", str(app), "here", "--stream", "--run-config", words)
        self._others.append(run)
        return run

    def said(self, name: str) -> str:
        """What a process has written so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def pids(self, word: str = "", *, part: str = "") -> list[int]:
        """Processes of this federation, or of one part of it, with this word in their command."""
        marks = {f"FLWR_HOME={self.home}", *([f"{PART}={part}"] if part else [])}
        return [
            int(process.name)
            for process in Path("/proc").iterdir()
            if process.name.isdigit()
            and marks <= set(read(process / "environ").split("\0"))
            and word in read(process / "cmdline")
        ]

    def stop(self) -> None:
        """End every process, whatever state it is in."""

        def is_over() -> bool:
            for pid in self.pids():
                kill(pid)
            return not self.pids()

        wait_until(is_over, GONE_S, "all processes are gone")
        for process in [*self.nodes.values(), *self._others]:
            process.wait(GONE_S)  # nobody else would collect what it left

    def _spawn(self, name: str, program: str, *words: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "FLWR_HOME": str(self.home),
            PART: name,
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",  # seconds; 1 by default, which is a wait
            "OMP_NUM_THREADS": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [str(BIN / program), *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=environment, cwd=self.folder, start_new_session=True,
            )  # fmt: skip

    def _is_up(self, link: subprocess.Popen[bytes]) -> bool:
        assert link.poll() is None, self.said("superlink")
        try:
            return httpx.get(f"http://127.0.0.1:{self._port}/health", timeout=2).is_success
        except httpx.HTTPError:
            return False


@contextmanager
def deployed(
    folder: Path,
    num_nodes: int = 3,
    seconds_per_batch: Sequence[float] = (),
    late: Sequence[int] = (),
) -> Iterator[Deployment]:
    """A running federation, of which nothing is left afterwards.

    Apps may make nodes slow; those that are late are for the test to start.
    """
    deployment = Deployment(folder, num_nodes, seconds_per_batch, late)
    try:
        deployment.start()
        yield deployment
    finally:
        deployment.stop()


def stored_runs(folder: Path, study: str) -> list[RunRecord]:
    """The runs that a study has made."""
    with Store(f"sqlite:///{folder}/fedplan.db", readonly=True) as store:
        return [
            run
            for one in store.experiments()
            if one.settings.get("study") == study
            for run in store.find_runs(one.settings)
        ]


def wait_until(is_so: Callable[[], object], seconds: float, what: str) -> None:
    """Look again and again, for so long at most."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not so within {seconds:g} s: {what}"
        time.sleep(POLL_S)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def copy_of_example(folder: Path, *, client: str = "") -> Path:
    """The example app, with another module for the client if one is given."""
    app = Path(shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__")))
    if client:
        (app / "digits_app" / "other_client.py").write_text(client)
        project = app / "pyproject.toml"
        text = project.read_text().replace(
            "digits_app.client_app:app", "digits_app.other_client:app"
        )
        project.write_text(text)
    return app


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it has ended by itself meanwhile


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # the process has ended, or is somebody else's
