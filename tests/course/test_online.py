"""The online course on the simulator: it arrives, and says when it cannot."""

from __future__ import annotations

import pytest
from course.made import fleet_of, problem_of, trained

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Stop
from fedplan.course import Online
from fedplan.participation import uniform
from fedplan.simulation import Job


def run(problem, *, rounds=400, seed=0):
    simulator, problem = trained(problem)
    stop = Stop(max_rounds=rounds, target_loss=problem.target_loss)
    return simulator.run(Online(problem=problem), stop, seed=seed), simulator, problem


def cost(problem, run):
    return float(problem.objective.of_round(run.time_s, run.energy_j, run.taken_part))


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_it_arrives_for_less_than_all_clients_with_the_same_steps(weight):
    made, simulator, problem = run(problem_of(target=0.25, weight=weight))
    assert made.status == "target" and made.course == "online" and made.label == "online"
    stop = Stop(max_rounds=400, target_loss=0.25)
    everyone = simulator.run(uniform(12, made.rounds[-1].setting.local_steps), stop)
    assert everyone.status == "target"
    assert cost(problem, made) < cost(problem, everyone)


def test_the_same_seed_gives_the_same_run_on_one_thread_and_two():
    simulator, problem = trained(problem_of(target=0.9))
    course, stop = Online(problem=problem), Stop(max_rounds=100, target_loss=0.9)
    jobs = [Job(course=course, seed=seed) for seed in range(3)]
    alone = [simulator.run(job.course, stop, seed=job.seed) for job in jobs]
    assert list(simulator.run_all(jobs, stop, threads=2)) == alone


def test_other_devices_or_limits_make_another_course():
    one = Online(problem=problem_of())
    others = [
        Online(problem=problem_of(fleet_of(seed=1))),
        Online(problem=problem_of(weight=0.5)),
        Online(problem=problem_of(target=0.6)),
        Online(problem=problem_of(max_rounds=9)),
        Online(problem=problem_of(rate=LearningRate(initial=0.1))),
    ]
    assert len({course.identity for course in (one, *others)}) == 6
    assert one.identity == Online(problem=problem_of()).identity


@pytest.mark.parametrize(
    ("target", "rate"),
    [
        (1e-4, LearningRate(initial=0.05)),
        (0.5, LearningRate(initial=0.05, schedule="exponential", decay=0.3)),
        (0.5, LearningRate(initial=1e-9)),
        (0.5, LearningRate(initial=1000.0)),
    ],
    ids=["target too low", "rate dies out", "rate far too small", "rate far too large"],
)
def test_what_is_hopeless_is_given_up_early(target, rate):
    made, _, _ = run(problem_of(target=target, rate=rate, max_rounds=2000), rounds=2000)
    assert made.status in ("hopeless", "diverged")
    # Where the loss falls all the while, it takes long to see that it will not fall far enough.
    assert made.num_rounds <= (1100 if target < 0.01 else 200)
    assert made.message or made.status == "diverged"


def test_a_deadline_that_cannot_be_kept_is_given_up_early():
    made, _, problem = run(problem_of(target=0.02, deadline_s=2000.0), rounds=10_000)
    assert made.status == "hopeless"
    assert made.time_s <= problem.limits.deadline_s


@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("part", [0.05, 0.2, 0.4, 0.6, 0.8])
def test_no_round_begins_that_would_exceed_a_limit_by_a_tenth(weight, part):
    free, _, _ = run(problem_of(target=0.25, weight=weight))
    for name, total in (("deadline_s", "time_s"), ("energy_budget_j", "energy_j")):
        limit = part * getattr(free, total)
        made, _, _ = run(problem_of(target=0.25, weight=weight, **{name: limit}))
        assert made.num_rounds == 1 or getattr(made, total) <= 1.1 * limit
        assert made.status == "target" or made.message.endswith(("time or energy.", "slowly."))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("target", [0.9, 0.25])
def test_a_target_is_not_given_up_while_the_loss_stands_still_and_groups_can_grow(target, seed):
    free, _, _ = run(problem_of(target=target), seed=seed)
    made, _, problem = run(problem_of(target=target, deadline_s=1.25 * free.time_s), seed=seed)
    assert made.status == "target" and made.time_s <= problem.limits.deadline_s


@pytest.mark.parametrize("num_clients", [1, 2])
def test_few_clients(num_clients):
    fleet = fleet_of(num_clients)
    simulator, problem = trained(problem_of(fleet, target=1.5), num_clients=num_clients)
    made = simulator.run(Online(problem=problem), Stop(max_rounds=50, target_loss=1.5))
    assert made.status == "target"


def test_a_target_that_is_met_already():
    made, _, _ = run(problem_of(target=5.0))
    assert (made.status, made.num_rounds) == ("target", 0)
