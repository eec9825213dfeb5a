"""The programs on the pages do what the pages say, on a federation here."""

from __future__ import annotations

import importlib

import pytest
from docs.pages import BLOCKS, ROOT
from flower.federation import InProcessGrid, Node, make_nodes
from flwr.app import ArrayRecord, MetricRecord

from fedplan.flower.app import client_app, pack, unpack
from fedplan.flower.exchange import WallClock
from fedplan.store import Store

PROGRAMS = [
    block
    for block in BLOCKS
    if block.language == "python"
    and not block.is_session
    and block.page != "CONTRIBUTING.md"  # test_new_law.py, test_new_plot.py
]
FOLLOWED = {
    "README.md",
    *(f"docs/how-to/flower{page}.md" for page in (
        "", "-clients-each-round", "-times-of-clients", "-stop-at-a-target", "-deadlines", "-resume"
    )),
}  # fmt: skip


class RealClock(WallClock):
    """Real seconds, in which a client has answered as soon as it was asked."""

    def take(self):
        return 0.0


def run_programs(page, grid, initial_arrays, evaluate):
    """Run the programs of a page as they stand; what its names are then."""
    names = {"grid": grid, "initial_arrays": initial_arrays, "evaluate": evaluate}
    for block in PROGRAMS:
        if block.page == page:
            exec(compile(block.text, page, "exec"), names)  # noqa: S102
    return names


@pytest.fixture
def follow(logistic, tmp_path, monkeypatch):
    """Follow a page on eight nodes with a small model."""
    monkeypatch.chdir(tmp_path)
    samples = logistic.samples()

    def evaluate(_round, arrays):
        loss, accuracy = logistic.evaluate(unpack(arrays), samples)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    grid = InProcessGrid(client_app(lambda _: logistic), make_nodes(8, comm_s=0), RealClock())
    return lambda page: run_programs(page, grid, pack(logistic.initial(0)), evaluate)


def stored_training():
    with Store("sqlite:///fedplan.db", readonly=True) as store:
        runs = [run for one in store.experiments() for run in store.find_runs(one.settings)]
    return max(runs, key=lambda run: run.num_rounds)


def test_every_page_with_a_program_is_followed():
    assert {block.page for block in PROGRAMS} == FOLLOWED


@pytest.mark.parametrize(("page", "nodes"), [("README.md", 3), ("docs/how-to/flower.md", 20)])
def test_training_to_a_target(page, nodes, tmp_path, monkeypatch):
    """The target and learning rate of these pages are those of the digits in examples/."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples" / "flower_app")
    client = importlib.import_module("digits_app.client_app")
    server = importlib.import_module("digits_app.server_app")
    devices = {
        100 + k: Node({"partition-id": k, "num-partitions": nodes}, comm_s=0) for k in range(nodes)
    }
    grid = InProcessGrid(client.app, devices, RealClock())
    initial = ArrayRecord(server.initial_weights())
    names = run_programs(page, grid, initial, server.evaluate_centrally)
    assert names["strategy"].status == "target", names["strategy"].message
    assert names["strategy"].decisions and names["strategy"].setting.groups <= nodes


def test_different_numbers_of_clients(follow):
    assert follow("docs/how-to/flower-clients-each-round.md")["strategy"].status == "rounds"
    sizes = [len(record.cohort) for record in stored_training().rounds]
    assert sizes == [0] + [2] * 4 + [4] * 4 + [8] * 4


def test_times_of_clients(follow, capsys):
    slowest_first = follow("docs/how-to/flower-times-of-clients.md")["slowest_first"]
    assert sum(rounds for _, rounds, _, _ in slowest_first) == 4 * 10
    assert all(computing > 0 <= rest for _, _, computing, rest in slowest_first)
    assert "s computing" in capsys.readouterr().out


def test_stop_at_a_target(follow, capsys):
    assert follow("docs/how-to/flower-stop-at-a-target.md")["strategy"].status == "target"
    losses = stored_training().losses
    assert len(losses) < 100 and max(losses[-2:]) <= 1.5 < losses[0]
    assert not capsys.readouterr().out


def test_deadlines(follow):
    assert follow("docs/how-to/flower-deadlines.md")["strategy"].status == "rounds"
    assert stored_training().num_rounds == 10


def test_resume(follow):
    grid = follow("docs/how-to/flower-resume.md")["grid"]
    trained = [sent for sent in grid.sent if sent.metadata.message_type == "train"]
    assert len(trained) == 4 * 10 and stored_training().num_rounds == 10
