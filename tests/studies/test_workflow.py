"""The whole flow: from pilots to the check of the prediction, and again from the store."""

from __future__ import annotations

import math

import pytest

from fedplan import InputError
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.building import build_experiment
from fedplan.studies.workflow import Bill, run_study


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def run(url, *overrides, study="demo"):
    experiment = build_experiment(read_study(study, overrides))
    trained = []
    with Store(url) as store:
        outcome = run_study(
            experiment, store,
            report=lambda step, job, record: trained.append((step, job)) if record.round else None,
        )  # fmt: skip
    return experiment, outcome, trained


def test_the_demo_is_planned_trained_and_checked(url):
    experiment, outcome, _ = run(url, "seeds=2")
    assert outcome.success and outcome.status == "reached"
    clients, steps = outcome.setting
    assert {(r.clients_per_round, r.local_steps) for r in outcome.measured.runs} == {
        (clients, steps)
    }
    assert outcome.measured.reached == 2 and outcome.as_predicted in (True, False)
    assert all(run.final_loss <= experiment.stop.target_loss for run in outcome.measured.runs)
    pilot_seeds = {run.seed for run in outcome.pilots}
    assert pilot_seeds.isdisjoint(run.seed for run in outcome.measured.runs)
    bill = Bill.of(outcome.pilots, experiment.objective)
    assert outcome.pilots_bill == bill and bill.cost == pytest.approx(bill.time_s)
    assert outcome.pilots_share == pytest.approx(bill.cost / outcome.measured.bill.cost)


def test_a_second_time_nothing_is_trained_and_the_result_is_the_same(url):
    _, first, trained = run(url, "seeds=2")
    _, second, again = run(url, "seeds=2")
    assert trained and not again
    assert (second.setting, second.message) == (first.setting, first.message)
    assert second.measured == first.measured and second.pilots == first.pilots


def test_more_seeds_train_only_the_new_ones(url):
    run(url, "seeds=1")
    _, outcome, trained = run(url, "seeds=3")
    assert {job.seed for _, job in trained} == {1, 2} and outcome.measured.reached == 3


def test_other_devices_are_planned_for_without_training_the_same_again(url):
    run(url, "seeds=1")
    _, outcome, trained = run(url, "seeds=1", "step-time-s=0.2", "step-time-sd-s=0.1")
    stored = [job for step, job in trained if step == "pilots"]
    assert outcome.success and len({job.setting for job in stored}) <= 4


def test_what_was_decided_is_in_the_store(url):
    _, outcome, _ = run(url, "seeds=1")
    with Store(url, readonly=True) as store:
        (study,) = store.studies()
        steps = store.steps(study)
    assert study.name == "demo" and study.configuration["training"]["seeds"] == 1
    assert steps["plan"]["clients_per_round"] == outcome.setting[0]
    assert len(steps["pilots"]) == len(outcome.pilots)


def test_the_papers_procedure_predicts_no_rounds(url):
    _, outcome, _ = run(
        url, "seeds=1", "pilots=paper", "pairs=[[5, 10], [10, 20], [5, 40]]", "upper-loss=1.2",
        "lower-loss=0.9",
    )  # fmt: skip
    assert outcome.success and outcome.forecast is None and outcome.as_predicted is None
    assert [(r.clients_per_round, r.local_steps) for r in outcome.pilots] == [
        (5, 10), (10, 20), (5, 40),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "status", "words"),
    [
        (["target-loss=0.01", "rounds=30"], "out of reach", "Raise target-loss"),
        (["learning-rate=1e200"], "diverged", "Lower learning-rate"),
        (["target-loss=9"], "nothing to learn", "Lower target-loss"),
        (["deadline-s=1"], "infeasible", "deadline of 1 s"),
        (["max-time-s=20"], "not reached", "in 20 s (max-time-s); the best run ended at"),
        (
            ["pilots=paper", "pairs=[[5, 10], [9, 20]]", "upper-loss=1", "lower-loss=0.001",
             "rounds=20"],
            "out of reach", "allow more rounds",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_ends_with_advice_and_everything_learnt_is_kept(
    url, overrides, status, words
):
    _, outcome, trained = run(url, "seeds=1", *overrides)
    assert outcome.status == status and not outcome.success
    assert words in outcome.message
    with Store(url, readonly=True) as store:
        (study,) = store.studies()
        assert study.num_runs == len({job for _, job in trained}) or not trained


def test_a_study_needs_devices_and_a_target(url, tmp_path):
    file = tmp_path / "bare.toml"
    file.write_text("[task]\ndata = 'synthetic'\n[training]\nlearning-rate = 0.1\n")
    with pytest.raises(InputError) as error:
        run(url, study=str(file))
    assert len(error.value.problems) == 2


def test_prices_take_the_place_of_the_weight(url):
    experiment, outcome, _ = run(url, "seeds=1", "price-hour=3.6", "price-kwh=0.36")
    assert experiment.objective.unit == "money"
    assert math.isclose(outcome.pilots_bill.cost, outcome.pilots_bill.time_s / 1000, rel_tol=0.01)
