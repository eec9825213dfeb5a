"""A virtual environment for every peer, built once from its pinned requirements."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".benchmark-envs"
REQUIREMENTS = HERE / "requirements"
TAIL = 6  # lines of pip's complaint that are shown


class BuildError(Exception):
    """pip could not build an environment; the message ends with pip's last lines."""


def python_of(peer: str) -> Path:
    """The peer's interpreter; its environment is built where it is missing or out of date."""
    folder = FOLDER / peer
    requirements = REQUIREMENTS / f"{peer}.txt"
    stamp = folder / "built-from"
    recipe = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    interpreter = folder / "bin" / "python"
    if stamp.exists() and stamp.read_text() == recipe:
        return interpreter
    print(f"Building the environment of {peer} (once) ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], peer)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([str(interpreter), *install, "--requirement", str(requirements)], peer)
    stamp.write_text(recipe)
    return interpreter


def _run(command: list[str], peer: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        told = [line for line in lines if line.strip() and not line.startswith("WARNING: ")]
        message = "\n".join(told[-TAIL:])
        raise BuildError(f"the environment of {peer} could not be built. pip said:\n{message}")
