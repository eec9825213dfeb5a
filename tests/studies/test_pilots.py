"""Pilots: which are asked for, when it is enough, and what becomes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedplan import Constraints, InputError, Objective, draw_fleet
from fedplan.convergence.descent import Descent, law_of
from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import RoundRecord, RunRecord
from fedplan.planning.descent_plan import forecast, plan_descent
from fedplan.studies.pilots import DesignedPilots, PilotProblem

FIRST, TARGET = 2.3, 0.4


def make_problem(clients=50, weight=0.0, seed=7, **changes):
    fleet = draw_fleet(
        clients, step_time_s=(0.1, 0.03), comm_time_s=(2.0, 0.6), step_energy_j=(1e-3, 3e-4),
        comm_energy_j=(2e-2, 6e-3), seed=1,
    )  # fmt: skip
    values = {
        "fleet": fleet, "objective": Objective.weighted(weight), "constraints": Constraints(),
        "rate": LearningRate(initial=0.05), "target_loss": TARGET, "max_rounds": 2000, "seed": seed,
    }  # fmt: skip
    return PilotProblem(**{**values, **changes})


def make_truth(problem, **changes):
    law = law_of(problem.rate, len(problem.fleet), FIRST / TARGET)
    means = {name: mean for name, (mean, _) in law.PRIOR.items()}
    means["time"] = math.log(float(problem.rate.time(80.0)))
    if problem.rate.schedule != "harmonic":  # every part falls with the loss from the start
        means |= {"loss_power": 3.5, "sampling_power": 0.9, "curvature": 0.0}
    values = np.array(list({**means, **changes}.values()))
    return Descent(
        num_clients=len(problem.fleet), first_loss=FIRST, target_loss=TARGET, rate=problem.rate,
        parameters=values, covariance=1e-9 * np.eye(len(values)), reach=(1, 1000, 1, 1000),
    )  # fmt: skip


def train(trial, truth):
    """A run that descends as the truth says, until the trial's stop."""
    losses = np.geomspace(FIRST, TARGET / 2, 500)
    rounds = truth.rounds(
        trial.job.setting.clients_per_round, trial.job.setting.local_steps, losses
    )
    at = np.interp(np.arange(trial.stop.max_rounds + 1), rounds, losses)
    at[0] = FIRST
    records = [
        RoundRecord(round=r, loss=float(x), accuracy=0.5, cohort=(), seconds=1.0, joules=1.0)
        for r, x in enumerate(at)
    ]
    run = RunRecord(
        setting=trial.job.setting,
        seed=trial.job.seed, status="rounds", rounds=tuple(records),
    )  # fmt: skip
    return run.until(trial.stop)


def finish(pilots, truth):
    trials = []
    while (trial := pilots.ask()) is not None:
        trials.append(trial)
        assert len(trials) < 20
        pilots.tell(train(trial, truth))
    return trials


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9])
def test_a_few_pilots_lead_near_the_best(weight):
    problem = make_problem(weight=weight)
    truth = make_truth(problem, steps_share=-0.2, sampling_share=-0.9)
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, truth)
    choice = pilots.choice
    assert choice.status == "chosen" and choice.regret < 0.2
    cost = forecast(problem.fleet, truth, problem.objective, *choice.setting).prediction.cost
    # At a constant rate no fewer clients are planned for than a pilot had.
    piloted = Constraints(min_clients_per_round=min(r.clients_per_round for r in pilots.runs))
    best = plan_descent(problem.fleet, truth, problem.objective, piloted).forecast.prediction.cost
    assert cost <= 1.1 * best
    low, high = choice.forecast.rounds_interval
    assert low <= float(truth.rounds(*choice.setting)) <= high


def test_e_is_compared_with_the_same_cohorts_and_k_at_the_e_between():
    pilots = DesignedPilots(make_problem(), budget=0.8)
    finish(pilots, make_truth(make_problem()))
    first, second, third, fourth = pilots.runs
    assert first.clients_per_round == second.clients_per_round and first.seed == second.seed
    assert third.clients_per_round == fourth.clients_per_round == 2 and third.seed != fourth.seed
    assert second.local_steps < third.local_steps == fourth.local_steps < first.local_steps


@pytest.mark.parametrize(("schedule", "few", "runs"), [("constant", 2, 2), ("harmonic", 3, 1)])
def test_runs_with_few_clients_are_repeated_where_they_are_cheap(schedule, few, runs):
    rate = LearningRate(initial=0.1, schedule=schedule)
    for weight, repeats in ((0.0, runs), (1.0, 3)):
        problem = make_problem(weight=weight, rate=rate)
        pilots = DesignedPilots(problem, budget=0.4)
        finish(pilots, make_truth(problem))
        seeds = [run.seed for run in pilots.runs if run.clients_per_round == few]
        assert len(set(seeds)) == len(seeds) == repeats == len(pilots.runs) - 2


def test_the_dearer_clients_are_the_fewer_are_piloted():
    first = [DesignedPilots(make_problem(weight=w), budget=0.8).ask().job for w in (0.0, 0.95, 1.0)]
    many = [job.setting.clients_per_round for job in first]
    assert many == sorted(many, reverse=True) and many[0] == 50 and many[2] == 20


def test_where_training_is_shorter_than_pilots_the_cheaper_of_two_is_the_plan():
    problem = make_problem()
    truth = make_truth(problem, time=math.log(float(problem.rate.time(4.0))))
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, truth)
    costs = {
        (run.clients_per_round, run.local_steps): run.num_rounds
        * problem.round_cost(*run.setting.pair)
        for run in pilots.runs
    }
    assert len(costs) == 2 and pilots.choice.setting == min(costs, key=costs.get)
    assert pilots.choice.status == "chosen" and "too short" in pilots.choice.message
    assert pilots.choice.forecast.prediction.expected_rounds < 30


def test_a_training_just_longer_than_the_shortest_pilot_is_planned_for_like_any_other():
    problem = make_problem()
    truth = make_truth(problem, time=math.log(float(problem.rate.time(10.0))))
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, truth)
    assert pilots.runs[0].num_rounds == 12 and pilots.runs[0].status == "rounds"
    assert len(pilots.runs) == 4 and "too short" not in pilots.choice.message


def test_a_short_training_keeps_to_limits_too():
    problem = make_problem(constraints=Constraints(deadline_s=1e-3))
    truth = make_truth(problem, time=math.log(float(problem.rate.time(4.0))))
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, truth)
    assert pilots.choice.status == "infeasible" and pilots.choice.setting is None


def test_of_a_short_training_only_settings_within_the_limits_are_chosen():
    free = DesignedPilots(make_problem(), budget=0.8)
    truth = make_truth(make_problem(), time=math.log(float(make_problem().rate.time(4.0))))
    finish(free, truth)
    total = free.choice.forecast.prediction
    limits = Constraints(deadline_s=0.99 * total.time_s)
    held = DesignedPilots(make_problem(constraints=limits), budget=0.8)
    finish(held, truth)
    if held.choice.status == "chosen":
        assert held.choice.setting != free.choice.setting
        assert held.choice.forecast.prediction.time_s <= limits.deadline_s
    else:
        assert held.choice.status == "infeasible"


def test_pilots_end_well_above_the_target():
    pilots = DesignedPilots(make_problem(), budget=0.8)
    finish(pilots, make_truth(make_problem()))
    assert all(run.final_loss > 1.3 * TARGET for run in pilots.runs)


def test_pilots_go_further_only_where_the_budget_allows_it(monkeypatch):
    monkeypatch.setattr("fedplan.studies.pilots.TOLERANCE", 0.0)
    problem = make_problem()
    truth = make_truth(problem)
    lengths = []
    for budget in (0.01, 100.0):
        pilots = DesignedPilots(problem, budget)
        finish(pilots, truth)
        lengths.append(sum(run.num_rounds for run in pilots.runs))
    assert lengths[0] < lengths[1]


@settings(max_examples=30, deadline=None)
@given(
    clients=st.integers(1, 12),
    low_k=st.integers(1, 12),
    width_k=st.integers(0, 12),
    low_e=st.integers(1, 200),
    width_e=st.integers(0, 200),
)
def test_any_fleet_and_any_ranges_can_be_piloted(clients, low_k, width_k, low_e, width_e):
    low_k = min(low_k, clients)
    limits = Constraints(
        min_clients_per_round=low_k, max_clients_per_round=low_k + width_k,
        min_local_steps=low_e, max_local_steps=low_e + width_e,
    )  # fmt: skip
    problem = make_problem(clients=clients, constraints=limits)
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, make_truth(problem))
    choice = pilots.choice
    assert choice.status == "chosen"
    assert low_k <= choice.setting[0] <= min(low_k + width_k, clients)
    assert low_e <= choice.setting[1] <= low_e + width_e
    tried = [(run.clients_per_round, run.local_steps, run.seed) for run in pilots.runs]
    assert len(set(tried)) == len(tried)


def test_a_pilot_that_never_comes_down_says_so():
    problem = make_problem(max_rounds=5)
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, make_truth(problem))
    choice = pilots.choice
    assert choice.status == "out of reach" and choice.setting is None
    assert "5 rounds" in choice.message and "Raise target-loss" in choice.message


def test_a_pilot_that_diverges_says_so():
    pilots = DesignedPilots(make_problem(), budget=0.8)
    trial = pilots.ask()
    start = RoundRecord(round=0, loss=2.0, accuracy=0.1, cohort=(), seconds=0.0, joules=0.0)
    pilots.tell(
        RunRecord(
            setting=trial.job.setting,
            seed=0, status="diverged", rounds=(start,),
        )
    )  # fmt: skip
    assert pilots.ask() is None and pilots.choice.status == "diverged"
    assert "learning-rate (now 0.05)" in pilots.choice.message


def test_a_target_that_is_met_before_training_says_so():
    problem = make_problem(target_loss=5.0)
    pilots = DesignedPilots(problem, budget=0.8)
    pilots.tell(train(pilots.ask(), make_truth(problem)))
    assert pilots.ask() is None and pilots.choice.status == "nothing to learn"


def test_a_limit_nothing_meets_is_infeasible():
    problem = make_problem(constraints=Constraints(deadline_s=1.0))
    pilots = DesignedPilots(problem, budget=0.8)
    finish(pilots, make_truth(problem))
    assert pilots.choice.status == "infeasible" and "deadline of 1 s" in pilots.choice.message


def test_rates_that_no_law_is_known_for_are_refused():
    rate = LearningRate(initial=0.1, schedule="step", decay=0.5, decay_every=9)
    with pytest.raises(InputError, match="pilots are designed for constant, exponential, harm"):
        DesignedPilots(make_problem(rate=rate), 0.4)
