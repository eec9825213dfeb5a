"""Launch a study on a federation: a two-line Flower app, passed to `flwr run`."""

import json
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from fedplan import __version__
from fedplan.errors import FedplanError, InputError
from fedplan.store.database import path_of
from fedplan.studies.grid import Grid
from fedplan.studies.study import Study

_TAIL = 15  # lines of Flower's that say why it failed


def launch_study(
    study: Study,
    federation: str,
    store_url: str,
    *,
    follow: Callable[[str], None],
    grid: Grid | None = None,
) -> None:
    """Have a federation run a study into the store, or sweep this grid; returns when that is done.

    federation : the name of a SuperLink connection in Flower's configuration.
    follow : hears every line that Flower prints.

    An error that ended the study there is raised here again. The server writes its answer into
    the `desk` folder, and ends if that is gone.
    """
    store = path_of(store_url).absolute()
    with TemporaryDirectory(prefix="fedplan-") as desk:
        app = Path(desk) / "app"
        app.mkdir()
        config = {
            "study": study.to_text(),
            "federation": federation,
            "store": f"sqlite:///{store}",
            "models": str(store.parent),
            "desk": desk,
            "sweep": "" if grid is None else json.dumps(grid.keys),
        }
        (app / "pyproject.toml").write_text(_app(config), encoding="utf-8")
        code, tail = _follow([_flwr(), "run", "--stream", "--", str(app), federation], follow)
        answer = Path(desk) / "answer.json"
        if not answer.exists():
            raise FedplanError(
                f"Flower has ended ({code}) without an answer. Its last words:\n" + "".join(tail)
            )
        said = json.loads(answer.read_text(encoding="utf-8"))
    if not said["success"]:
        raise InputError(said["problems"]) if said["problems"] else FedplanError(said["message"])


def _app(config: dict[str, str]) -> str:
    """A Flower app whose parts are fedplan's; strings of JSON are strings of TOML, too."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in config.items()]
    return f"""[project]
name = "fedplan-study"
version = "{__version__}"
description = "A study of fedplan"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "fedplan"

[tool.flwr.app.components]
serverapp = "fedplan.flower.server:app"
clientapp = "fedplan.flower.app:app"

[tool.flwr.app.config]
""" + "\n".join([*lines, ""])


def _flwr() -> str:
    beside = Path(sys.executable).with_name("flwr")
    return str(beside) if beside.exists() else shutil.which("flwr") or "flwr"


def _follow(command: list[str], follow: Callable[[str], None]) -> tuple[int, deque[str]]:
    """Run a command, hand on its lines as they come, and keep the last of them."""
    settings = {"FLWR_TELEMETRY_ENABLED": "0", "PYTHONUNBUFFERED": "1"}
    tail: deque[str] = deque(maxlen=_TAIL)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **settings},
    ) as process:
        try:
            for line in process.stdout or ():
                tail.append(line)
                follow(line)
        except BaseException:
            process.terminate()
            raise
    return process.returncode, tail
