"""The whole flow: start, learn, arrive, bill; and again from the store."""

from __future__ import annotations

import math

import pytest
from scripted import follow_script

from fedplan import InputError
from fedplan.core.records import RoundRecord
from fedplan.store import Store
from fedplan.studies import read_study
from fedplan.studies.experiment import build_experiment
from fedplan.studies.outcome import Bill, decisions_of
from fedplan.studies.workflow import learnt_from, recall_study, run_study

PAPER = ("course=paper", "pairs=[[5, 10], [10, 20], [5, 40]]", "upper-loss=1.2", "lower-loss=0.9")
FIXED = ("course=fixed", "participation=turns")


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


def test_the_demo_starts_at_once_and_every_round_is_on_the_bill(url):
    experiment, outcome, trained = run(url, "seeds=2")
    assert outcome.success and outcome.course == "online" and outcome.pilots == ()
    assert {step for step, _ in trained} == {"training"}
    runs = outcome.measured.runs
    assert outcome.measured.reached == 2 and all(one.course == "online" for one in runs)
    assert all(one.final_loss <= experiment.stop.target_loss for one in runs)
    assert outcome.all_in.time_s == pytest.approx(sum(one.time_s for one in runs) / 2)
    assert outcome.all_in == outcome.measured.bill
    assert all(one.decisions[0].round == 1 for one in runs)
    assert sum(group.clients for group in outcome.groups) == experiment.num_clients


def test_the_message_says_what_happened(url, monkeypatch):
    follow_script(monkeypatch)
    _, outcome, _ = run(url, "seeds=1")
    rounds = outcome.measured.runs[0].num_rounds
    assert outcome.message.startswith(
        f"Reached loss 0.6 after {rounds} rounds: 4 groups took turns; local steps went "
        "20 -> 40 -> 30. All in, from the first round on, it took "
    )
    assert outcome.message.endswith("By round 6 it expected 10 to 140 rounds, and was right.")


@pytest.mark.parametrize(
    ("interval", "right", "words"),
    [((1.0, 140.0), True, "was right"), ((1.0, 2.0), False, "took more"),
     ((140.0, 150.0), False, "took fewer")],
)  # fmt: skip
def test_the_first_forecast_is_checked(url, monkeypatch, interval, right, words):
    follow_script(monkeypatch, foretold=(70.0, interval))
    _, outcome, _ = run(url, "seeds=2")
    assert outcome.forecast.rounds == 70 and outcome.forecast.interval == interval
    assert outcome.as_predicted is right and words in outcome.message
    law = outcome.measured.runs[0].rounds[6].setting
    problem_cost = outcome.forecast.bill.time_s / 70
    assert law.local_steps == 40 and 0 < problem_cost < max(g.time_s for g in outcome.groups) * 3


def test_a_course_that_says_nothing_foretells_nothing(url, monkeypatch):
    follow_script(monkeypatch, foretold=None)
    _, outcome, _ = run(url, "seeds=1")
    assert outcome.forecast is None and outcome.as_predicted is None


@pytest.mark.parametrize("end", [math.inf, 151.0])  # 150 rounds are allowed
def test_a_forecast_that_leaves_open_whether_it_arrives_is_none(url, monkeypatch, end):
    follow_script(monkeypatch, foretold=(math.inf, (40.0, end)))
    _, outcome, _ = run(url, "seeds=1")
    assert outcome.forecast is None and "inf" not in outcome.message


def test_a_hopeless_training_says_why_and_is_not_trained_again(url, monkeypatch):
    follow_script(monkeypatch, gives_up=7)
    _, outcome, trained = run(url, "seeds=1")
    assert outcome.status == "hopeless" and not outcome.success and len(trained) == 7
    assert "given up after 7 rounds: 4 groups took turns" in outcome.message
    assert outcome.message.endswith("The loss stays where it is. Raise target-loss.")
    _, again, more = run(url, "seeds=1")
    assert again.message == outcome.message and not more


def test_a_second_time_nothing_is_trained_and_the_result_is_the_same(url):
    experiment, first, trained = run(url, "seeds=2")
    _, second, again = run(url, "seeds=2")
    assert trained and not again
    with Store(url, readonly=True) as store:
        recalled = recall_study(experiment, store)
    for other in (second, recalled):
        assert other.measured == first.measured and other.message == first.message
        assert other.alternatives == first.alternatives and other.groups == first.groups


def test_more_seeds_train_only_the_new_ones(url):
    run(url, "seeds=1")
    _, outcome, trained = run(url, "seeds=3")
    assert {job.seed for _, job in trained} == {1, 2} and outcome.measured.reached == 3


def test_what_was_decided_is_in_the_store(url):
    _, outcome, _ = run(url, "seeds=1")
    with Store(url, readonly=True) as store:
        (study,) = store.studies()
        steps = store.steps(study)
        (entry,) = store.runs(study.experiment.settings)
        stored = store.find_run(study.experiment.settings, entry, 0)
    assert study.name == "demo" and study.configuration["training"]["seeds"] == 1
    assert "course" not in study.configuration["planning"]  # nothing was said
    assert steps["plan"]["course"] == "online" and steps["training"] == {"reached": 1, "of": 1}
    assert steps["plan"]["local_steps"] == outcome.setting.local_steps
    assert stored.decisions == outcome.measured.runs[0].decisions


@pytest.mark.parametrize("law", ["turns", "shuffled", "uniform", "weighted"])
def test_a_participation_that_is_given_is_kept_to(url, law):
    _, outcome, trained = run(url, "seeds=1", f"participation={law}")
    assert outcome.course == "fixed" and outcome.success
    assert {step for step, _ in trained} == {"training"}
    (one,) = outcome.measured.runs
    assert one.setting == outcome.setting and one.setting.participation.law == law
    assert {record.setting.local_steps for record in one.rounds[1:]} == {one.local_steps}
    assert outcome.why and outcome.message.startswith(outcome.why)


def test_a_fixed_course_without_a_participation_takes_turns(url):
    _, outcome, _ = run(url, "seeds=1", "course=fixed")
    assert outcome.setting.participation.law == "turns"


@pytest.mark.parametrize("words", [PAPER, ("pilots=paper", *PAPER[1:])])
def test_the_papers_pilots_are_on_the_bill(url, words):
    experiment, outcome, _ = run(url, "seeds=2", *words)
    assert outcome.success and outcome.course == "paper" and outcome.forecast is None
    assert [one.setting.pair for one in outcome.pilots] == [(5, 10), (10, 20), (5, 40)]
    assert {one.seed for one in outcome.pilots}.isdisjoint({0, 1})
    pilots = Bill.of(outcome.pilots, experiment.objective)
    assert outcome.pilots_bill == pilots
    assert outcome.all_in.time_s == pytest.approx(pilots.time_s + outcome.measured.bill.time_s)
    assert outcome.all_in.cost == pytest.approx(pilots.cost + outcome.measured.bill.cost)
    assert outcome.pilots_share == pytest.approx(pilots.cost / outcome.measured.bill.cost)


@pytest.mark.parametrize(
    ("overrides", "status", "words"),
    [
        (["target-loss=0.01", "rounds=30"], "hopeless", "Raise target_loss, allow more rounds"),
        (["target-loss=0.7", "rounds=8"], "not reached", "Allow more rounds, or raise"),
        (["learning-rate=1e200"], "diverged", "lower learning-rate"),
        (["target-loss=9"], "nothing to learn", "Lower target-loss"),
        ([*FIXED, "deadline-s=1"], "infeasible", "deadline"),
        (["max-time-s=20"], "not reached", "in 20 s (max-time-s)"),
        ([*PAPER[:2], "upper-loss=1", "lower-loss=0.001", "rounds=20"], "out of reach",
         "allow more rounds"),
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


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["course=online", "participation=turns"], "Leave participation out, or set course=fixed"),
        ([*PAPER, "participation=turns"], "the paper draws its clients uniformly"),
    ],
)
def test_a_course_and_a_participation_that_do_not_go_together_are_refused(url, overrides, words):
    with pytest.raises(InputError, match=words):
        run(url, *overrides)


def test_a_live_federation_takes_any_course_that_its_clients_can_serve():
    from fedplan.studies.courses import choose_course

    for words in ([], ["course=fedtune"], ["participation=shuffled"]):
        study = read_study("demo", words)
        assert choose_course(study, live=True) == choose_course(study)
    with pytest.raises(InputError, match="course=oort asks clients for losses and gradients"):
        choose_course(read_study("demo", ["course=oort"]), live=True)


def test_a_study_that_was_cut_off_shows_how_far_it_came(url):
    _, whole, _ = run(url, "seeds=1")
    more = build_experiment(read_study("demo", ["seeds=3"]))
    with Store(url) as store:
        found = recall_study(more, store)
    assert found.status == "unfinished" and "1 of 3 runs are done" in found.message
    assert found.measured.runs == whole.measured.runs
    paper = build_experiment(read_study("demo", PAPER))
    with Store(url) as store:
        assert "pilots have not ended" in recall_study(paper, store).message


def test_prices_take_the_place_of_the_weight(url):
    experiment, outcome, _ = run(url, "seeds=1", "price-hour=3.6", "price-kwh=0.36")
    assert experiment.objective.unit == "money"
    assert math.isclose(outcome.all_in.cost, outcome.all_in.time_s / 1000, rel_tol=0.01)


def test_limits_that_were_kept_are_said(url):
    _, outcome, _ = run(url, "seeds=2", "deadline-s=100000")
    assert "Each kept the deadline of 100,000 s." in outcome.message
    _, outcome, _ = run(url, "seeds=2", "deadline-s=2")
    assert outcome.status == "hopeless" and "The deadline of 2 s has passed" in outcome.message


def test_what_a_run_teaches_explains_its_own_rounds(url, monkeypatch):
    """With the steps that were used, what was learnt says as many rounds as there were."""
    follow_script(monkeypatch, steps=(24,), at=(1,))
    _, outcome, _ = run(url, "seeds=1")
    (one,) = outcome.measured.runs
    known = learnt_from(one)
    assert float(known.full_rounds(24)) == pytest.approx(one.num_rounds)


def test_alternatives_are_those_of_the_same_training(url):
    _, outcome, _ = run(url, "seeds=1")
    names = [other.name for other in outcome.alternatives]
    assert names[0] == "uniform sampling, best K and E" and len(names) == 3
    assert all(other.prediction.cost > 0 for other in outcome.alternatives)
    best, *rest = outcome.alternatives
    assert all(best.prediction.cost <= other.prediction.cost * (1 + 1e-9) for other in rest)


def test_decisions_past_the_end_of_a_run_are_not_shown(url, monkeypatch):
    follow_script(monkeypatch, at=(1, 6, 11))
    _, outcome, _ = run(url, "seeds=1", "rounds=10", "target-loss=0.01")
    (one,) = outcome.measured.runs
    assert [d.round for d in decisions_of(one)] == [1, 6]


def test_a_run_that_ends_earlier_keeps_the_decisions_it_had_by_then(url, monkeypatch):
    """A longer run that is stored stands for a shorter one, decisions included."""
    follow_script(monkeypatch)
    _, long, _ = run(url, "seeds=1", "rounds=12", "target-loss=0.01")
    _, short, trained = run(url, "seeds=1", "rounds=7", "target-loss=0.01")
    assert not trained and isinstance(short.measured.runs[0].rounds[-1], RoundRecord)
    assert [d.round for d in short.measured.runs[0].decisions] == [1, 6]
    assert [d.round for d in long.measured.runs[0].decisions] == [1, 6, 11]
