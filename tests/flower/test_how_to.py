"""The code of the how-to pages on Flower does what the pages say, on a federation here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flower.federation import InProcessGrid, make_nodes
from flwr.app import MetricRecord

from fedplan.flower.app import client_app, pack, unpack
from fedplan.flower.exchange import WallClock
from fedplan.store import Store

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


class RealClock(WallClock):
    """Real seconds, in which a client has answered as soon as it was asked."""

    def take(self):
        return 0.0


@pytest.fixture
def follow(logistic, tmp_path, monkeypatch):
    """Run the code of a page as it stands; what its names are then."""
    monkeypatch.chdir(tmp_path)
    samples = logistic.samples()

    def evaluate(_round, arrays):
        loss, accuracy = logistic.evaluate(unpack(arrays), samples)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    names = {
        "grid": InProcessGrid(client_app(lambda _: logistic), make_nodes(8, comm_s=0), RealClock()),
        "initial_arrays": pack(logistic.initial(0)),
        "evaluate": evaluate,
    }

    def run(page):
        for code in re.findall(r"```python\n(.*?)```", (HOW_TO / page).read_text(), re.DOTALL):
            exec(compile(code, page, "exec"), names)  # noqa: S102
        return names

    return run


def stored_training():
    with Store("sqlite:///fedplan.db", readonly=True) as store:
        runs = [run for one in store.experiments() for run in store.find_runs(one.settings)]
    return max(runs, key=lambda run: run.num_rounds)


def test_different_numbers_of_clients(follow):
    assert follow("flower-clients-each-round.md")["strategy"].status == "rounds"
    sizes = [len(record.cohort) for record in stored_training().rounds]
    assert sizes == [0] + [2] * 4 + [4] * 4 + [8] * 4


def test_times_of_clients(follow, capsys):
    slowest_first = follow("flower-times-of-clients.md")["slowest_first"]
    assert sum(rounds for _, rounds, _, _ in slowest_first) == 4 * 10
    assert all(computing > 0 <= rest for _, _, computing, rest in slowest_first)
    assert "s computing" in capsys.readouterr().out


def test_stop_at_a_target(follow, capsys):
    assert follow("flower-stop-at-a-target.md")["strategy"].status == "target"
    losses = stored_training().losses
    assert len(losses) < 100 and max(losses[-2:]) <= 1.5 < losses[0]
    assert not capsys.readouterr().out


def test_deadlines(follow):
    assert follow("flower-deadlines.md")["strategy"].status == "rounds"
    assert stored_training().num_rounds == 10


def test_resume(follow):
    grid = follow("flower-resume.md")["grid"]
    trained = [sent for sent in grid.sent if sent.metadata.message_type == "train"]
    assert len(trained) == 4 * 10 and stored_training().num_rounds == 10
