"""What commands say of a live run: what they say of a simulated one."""

from __future__ import annotations

import html

import pytest
from flower.conftest import make_federation
from flower.test_strategy import start

from fedplan.web import runs


@pytest.mark.parametrize(
    ("target_loss", "rounds", "said"),
    [
        (1.9, 40, ["1 of 1 run reached the target"]),
        (0.05, 3, ["0 of 1 run reached the target", "ended by rounds. The loss 0.05 was not"]),
    ],
)
def test_list_show_and_report(logistic, tmp_path, fedplan, target_loss, rounds, said):
    federation = make_federation(logistic)
    strategy, result = start(federation, tmp_path, target_loss=target_loss, num_rounds=rounds)
    store = ("--store", f"sqlite:///{tmp_path}/fedplan.db")
    assert "clients, asked, start-0, plan" in fedplan("list", *store).out
    shown = " ".join(fedplan("show", "flower", *store).out.split())
    assert "20 clients, of whose devices nothing was known" in shown
    assert "online: begins with 1 group, E=10" in shown
    assert all(words in shown for words in said)
    last = max(result.evaluate_metrics_serverapp)
    page = tmp_path / "report.html"
    fedplan("report", "flower", *store, "-o", page)
    report = html.unescape(page.read_text())
    if strategy.status == "target":
        assert f"Reached loss {target_loss:g} after {last} rounds" in report
        assert "trained, all in" in report and "expected: uniform sampling" in report
    else:
        assert "was not reached in 3 rounds" in report and "not reached" in report
    for section in ("Who trains when", "Training", "The bill", "What was decided"):
        assert f">{section}</h2>" in report
    used = [decision.why for decision in strategy.decisions if decision.round <= last]
    assert used and all(why in report for why in used)
    assert "Devices, by all that was observed of them" in report


def test_the_page_of_the_store_and_the_plot_have_a_live_run(logistic, tmp_path, fedplan):
    start(make_federation(logistic), tmp_path, target_loss=1.2, num_rounds=40)
    url = f"sqlite:///{tmp_path}/fedplan.db"
    (study,) = runs.listing(url)["studies"]
    (run,) = runs.runs_of(url, study["experiment"])["runs"]
    assert run["status"] == "target" and run["name"].startswith("online")
    asked = {"experiment": study["experiment"], "study": study["id"], "runs": [run["key"]]}
    drawn = runs.curves(url, asked)
    assert drawn["figure"] and not drawn["going"] and "target 1.2" in str(drawn["figure"])
    assert fedplan("plot", "flower", "--store", url, "-o", tmp_path / "live.png").code == 0


@pytest.mark.parametrize(
    ("why", "options", "said"),
    [("unavailable", {"plan": (5, 5)}, "no answer within"), ("hopeless", {}, "has not been below")],
)
def test_a_training_that_gave_up_says_so_and_not_that_it_is_over(
    logistic, tmp_path, fedplan, why, options, said
):
    federation = make_federation(logistic)
    if why == "unavailable":
        for node in federation.grid.nodes.values():
            node.tamper = lambda *_: None
    else:  # the loss rises from the first round on
        options = {"learning_rate": 500.0}
    strategy, _ = start(federation, tmp_path, target_loss=0.05, num_rounds=200, **options)
    assert strategy.status == why
    shown = " ".join(
        fedplan("show", "flower", "--store", f"sqlite:///{tmp_path}/fedplan.db").out.split()
    )
    assert f"ended by {why}" in shown and said in shown
