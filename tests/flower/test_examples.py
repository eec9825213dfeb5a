"""The example apps, server and clients, on a federation in this process."""

from __future__ import annotations

import difflib
import importlib
import tomllib
from pathlib import Path

import numpy as np
import pytest
from flower.deployment import stored_runs
from flower.federation import InProcessGrid, Node
from flower.test_how_to import RealClock
from flwr.app import Context, RecordDict

EXAMPLES = Path(__file__).parents[2] / "examples"
APPS = [("flower_app", "digits_app"), ("flower_app_pytorch", "digits_torch")]
NODES = 3


def run_config(folder):
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    return project["tool"]["flwr"]["app"]["config"]


@pytest.mark.parametrize(("folder", "package"), APPS)
def test_an_app_trains_to_its_target(monkeypatch, tmp_path, folder, package):
    if package == "digits_torch":
        pytest.importorskip("torch")
    monkeypatch.syspath_prepend(EXAMPLES / folder)
    server = importlib.import_module(f"{package}.server_app")
    client = importlib.import_module(f"{package}.client_app")
    nodes = {
        100 + k: Node({"partition-id": k, "num-partitions": NODES}, comm_s=0) for k in range(NODES)
    }
    grid = InProcessGrid(client.app, nodes, RealClock())
    config = run_config(EXAMPLES / folder) | {"store": f"{tmp_path}/fedplan.db", "target-loss": 1.0}
    server.app(grid, Context(1, 0, {}, RecordDict(), config))
    (run,) = stored_runs(tmp_path, config["study"])
    assert run.status == "target" and run.rounds[-1].accuracy > 0.6
    assert run.course == "online" and all(record.signal for record in run.rounds[1:])
    assert {sent.metadata.message_type for sent in grid.sent} == {"query.fedplan", "train"}


def test_the_converted_quickstart_trains_to_its_target(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    folder = EXAMPLES / "flower_app_quickstart"
    monkeypatch.syspath_prepend(folder)
    server = importlib.import_module("quickstart.server_app")
    client = importlib.import_module("quickstart.client_app")
    nodes = {k: Node({"partition-id": k, "num-partitions": 4}, comm_s=0) for k in range(4)}
    grid = InProcessGrid(client.app, nodes, RealClock())
    grid.run_config = run_config(folder) | {"store": f"{tmp_path}/fedplan.db", "target-loss": 1.0}
    server.app(grid, Context(1, 0, {}, RecordDict(), grid.run_config))
    (run,) = stored_runs(tmp_path, "flower")
    assert run.status == "target" and all(record.signal for record in run.rounds[1:])


def test_the_difference_of_the_converted_quickstart_is_the_one_that_is_shown():
    folder = EXAMPLES / "flower_app_quickstart"
    plain = folder / "plain"
    names = sorted(
        path.relative_to(plain).as_posix()
        for path in plain.rglob("*")
        if path.suffix in (".py", ".toml")
    )
    found = []
    for name in names:
        before, after = ((part / name).read_text().splitlines() for part in (plain, folder))
        found += difflib.unified_diff(before, after, f"plain/{name}", name, n=0, lineterm="")
    readme = (folder / "README.md").read_text()
    assert "\n".join(found) in readme
    gone, come = (sum(line[0] == sign and line[1] != sign for line in found) for sign in "-+")
    assert f"{gone} lines go and {come} come" in readme
    how_to = (EXAMPLES.parent / "docs" / "how-to" / "flower.md").read_text()
    assert f"every line that changes: {gone} go and {come} come" in how_to
    own = [folder / "pyproject.toml", *(folder / "quickstart").glob("*.py")]
    assert sorted(path.relative_to(folder).as_posix() for path in own) == names


def test_every_image_is_on_one_node(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "flower_app")
    task = importlib.import_module("digits_app.task")
    labels = [task.load_partition(node, 7)[1] for node in range(7)]
    assert sorted(np.concatenate(labels)) == sorted(task.DIGITS.y)
    most_frequent = [np.bincount(mine).max() / len(mine) for mine in labels]
    assert min(most_frequent) > 0.25  # nodes differ


@pytest.mark.parametrize(("folder", "package"), APPS)
def test_two_lines_of_the_client_are_fedplans(folder, package):
    text = (EXAMPLES / folder / package / "client_app.py").read_text()
    marked = [line for line in text.splitlines() if "  # 1: " in line or "  # 2: " in line]
    used = [
        line
        for line in text.splitlines()
        if ("MeasuredClientApp" in line or " steps(" in line) and "import" not in line
    ]
    assert used == marked and len(marked) == 2


def test_the_apps_have_the_same_settings_and_server():
    numpy_app, torch_app = (EXAMPLES / folder for folder, _ in APPS)
    assert run_config(numpy_app).keys() == run_config(torch_app).keys()
    servers = [
        (EXAMPLES / folder / package / "server_app.py").read_text().splitlines()
        for folder, package in APPS
    ]
    changed = [line for line in difflib.ndiff(*servers) if line.startswith(("+ ", "- "))]
    assert len(changed) <= 8, changed  # what a model is, and nothing else
