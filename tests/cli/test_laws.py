"""Every law of participation in every command that knows laws, in words and in JSON."""

from __future__ import annotations

import pytest

from fedplan.participation import LAWS

SMALL = ("demo", "num-clients=6", "seeds=1", "local-steps=10", "target-loss=1.2", "rounds=150")


@pytest.fixture(params=list(LAWS))
def law(request):
    return request.param


@pytest.fixture
def ask(fedplan, tmp_path, monkeypatch):
    """A command's answer as JSON, and in words, which are always whole sentences at the end."""
    monkeypatch.setenv("FEDPLAN_STORE", f"sqlite:///{tmp_path}/laws.db")

    def run(*words):
        answer, text = fedplan(*words, "--format", "json"), fedplan(*words)
        assert (answer.code, text.code) == (0, 0), answer.out + text.err
        assert answer.json["success"]
        message = answer.json["message"]
        assert " ".join(text.out.split()).endswith(" ".join(message.split()))
        assert message.endswith(".") and "turns costs" not in message and "None" not in text.out
        return answer.json, text.out

    return run


def shown(law):
    """What a table calls those who train in a round."""
    named = {"turns": "groups that take turns", "uniform": "clients per round  "}
    return named.get(law, f"clients per round ({law})")


def has_its_size(values, law):
    """Whether K, or the number of groups, is there and the other is not."""
    groups = values["groups"] if "groups" in values else values["participation"]["groups"]
    return (values["clients_per_round"] is None) == bool(groups) == (law == "turns")


@pytest.mark.parametrize("bound", [[], ["--ratio", 100]], ids=["no bound", "bound"])
def test_plan_and_frontier(ask, fleet_csv, law, bound):
    few = ("--max-clients-per-round", 6, "--max-local-steps", 12)
    words = ("--fleet", fleet_csv, "--participation", law, *bound, *few)
    plan, text = ask("plan", *words, "--energy-weight", 0.3)
    assert plan["participation"]["law"] == law and has_its_size(plan, law) and shown(law) in text
    assert plan["cost"] > 0 and len(plan["alternatives"]) >= 2
    frontier, text = ask("frontier", *words)
    assert frontier["participation"] == law and ("groups" in text) == (law == "turns")
    assert all(has_its_size(point, law) for point in frontier["points"])


def test_a_deadline_that_nobody_meets_is_told_what_the_law_can_do(fedplan, fleet_csv, law):
    words = ("--fleet", fleet_csv, "--participation", law, "--max-clients-per-round", 6)
    refused = fedplan("plan", *words, "--deadline-s", 9, "--format", "json")
    assert refused.code == 3 and refused.json["status"] == "infeasible"
    fastest = refused.json["best_attainable"]["deadline_s"]
    assert fastest["time_s"] > 9 and (fastest["clients_per_round"] is None) == (law == "turns")


def test_simulate_and_sweep(ask, fedplan, law):
    key = "groups" if law == "turns" else "clients-per-round"
    words = (*SMALL, f"participation={law}", f"{key}=2")
    simulated, text = ask("simulate", *words, "dropout=0.1")
    assert simulated["participation"] == law and simulated["dropout"] == 0.1 and shown(law) in text
    assert has_its_size(simulated, law) and simulated["runs"][0]["target_reached"]
    swept, text = ask("sweep", *words, "local-steps=5,10")
    assert swept["best"]["participation"] == law and shown(law) in text
    assert all(has_its_size(cell, law) for cell in swept["cells"])
    decided = fedplan("show", "demo").out.partition("decided")[2]
    assert "cost least" in decided and ("2 groups" in decided) == (law == "turns")


def test_run(ask, fedplan, law):
    found, text = ask("run", *SMALL, f"participation={law}")
    assert found["status"] == "reached" and has_its_size(found["plan"], law) and shown(law) in text
    assert found["plan"]["participation"]["law"] == law
    assert found["pilots"] == [] and found["plan"]["course"] == "fixed"
    decided = fedplan("show", "demo").out.partition("decided")[2]
    assert " steps" in decided and "clients_per_round" not in decided
