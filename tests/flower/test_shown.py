"""What commands say of a live run: what they say of a simulated one."""

from __future__ import annotations

import html

import pytest
from flower.conftest import make_federation
from flower.test_strategy import start


@pytest.mark.parametrize(
    ("target_loss", "rounds", "said"),
    [
        (1.9, 40, ["1 of 1 runs reached the target"]),
        (0.05, 3, ["0 of 1 runs reached the target", "ended by rounds. The loss 0.05 was not"]),
    ],
)
def test_list_show_and_report(logistic, tmp_path, fedplan, target_loss, rounds, said):
    federation = make_federation(logistic)
    strategy, result = start(federation, tmp_path, target_loss=target_loss, num_rounds=rounds)
    store = ("--store", f"sqlite:///{tmp_path}/fedplan.db")
    assert "clients, start-0, plan, training" in fedplan("list", *store).out
    shown = " ".join(fedplan("show", "flower", *store).out.split())
    assert "20 clients, of whose devices nothing was known" in shown
    assert "online: begins with 1 groups, 10 steps" in shown
    assert all(words in shown for words in said)
    page = tmp_path / "report.html"
    fedplan("report", "flower", *store, "-o", page)
    report = html.unescape(page.read_text())
    assert "reached its target" in report if strategy.status == "target" else "rounds" in report
    last = max(result.evaluate_metrics_serverapp)
    used = [decision.why for decision in strategy.decisions if decision.round <= last]
    assert used and all(why in report for why in used)
    assert "Devices, by all that was observed of them" in report
