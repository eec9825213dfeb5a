"""Courses on devices of which nothing is known; `tests/contracts` has what all of them promise."""

from __future__ import annotations

import pytest

from fedplan.core.constraints import Constraints
from fedplan.core.fleet import Fleet
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import Observation, RoundRecord
from fedplan.course import COURSES
from fedplan.course.live import Live, alike
from fedplan.participation import uniform
from fedplan.participation.grouping import Grouper

SECONDS = (0.1, 0.2, 0.4, 0.8)  # of a step


def problem_of(**options):
    return Problem(fleet=alike(len(SECONDS)), target_loss=0.5, **options)


def live(make, name="fixed", **options):
    return Live(name=name, make=make, problem=problem_of(**options), guessed=True)


def a_round(number, setting, clients=(0, 1, 2, 3), seconds=SECONDS):
    """What these clients took, with two seconds of every round trip on the way."""
    steps = setting.local_steps
    seen = tuple(
        Observation(
            client=client, local_steps=steps, train_seconds=seconds[client] * steps,
            round_trip_seconds=seconds[client] * steps + 2.0, examples=10.0,
        )
        for client in clients
    )  # fmt: skip
    return RoundRecord(
        round=number, loss=2.0 / (1 + number), accuracy=None, cohort=tuple(clients), seconds=1.0,
        joules=0.0, setting=setting, observations=seen,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        ({}, 10),
        ({"min_local_steps": 30}, 30),
        ({"max_local_steps": 4}, 4),
        ({"min_local_steps": 6, "max_local_steps": 6}, 6),
    ],
)
def test_first_rounds_keep_to_the_limits_on_local_steps(limits, steps):
    course = Live.online(problem_of(limits=Constraints(**limits)), guessed=True)
    assert course.setting.local_steps == steps


@pytest.mark.parametrize("energy_weight", [0.0, 0.5, 1.0])
def test_everybody_is_measured_at_once_whatever_counts(energy_weight):
    objective = Objective.weighted(energy_weight)
    assert Live.online(problem_of(objective=objective), guessed=True).setting.groups == 1


def test_a_course_is_made_once_every_client_was_seen_with_two_numbers_of_steps():
    problems = []
    course = live(lambda problem: problems.append(problem) or uniform(2, 7))
    steering = course.begin()
    for number, steps in ((1, 10), (2, 20)):
        assert steering.ask().local_steps == steps and not problems
        steering.tell(a_round(number, steering.ask()))
    assert steering.ask() == uniform(2, 7) and [one.round for one in steering.decisions] == [
        1,
        2,
        3,
    ]
    (problem,) = problems
    assert problem.fleet.step_time_s == pytest.approx(SECONDS)
    assert problem.fleet.comm_time_s == pytest.approx([2.0] * len(SECONDS))


def test_clients_that_never_answer_are_waited_for_a_while_and_no_longer():
    steering = live(lambda _: uniform(2, 7)).begin()
    for number in range(1, 5):
        assert steering.ask() != uniform(2, 7)
        steering.tell(a_round(number, steering.ask(), clients=(0, 1, 2)))
    assert steering.ask() == uniform(2, 7)


@pytest.mark.parametrize(
    ("slower", "stay"), [(1.1, True), (1.5, False), (2.0, False), (3.0, False)]
)
def test_groups_never_cost_a_tenth_more_than_the_best_for_long(slower, stay):
    """Every other device turns out to be slow, where the last four were thought to be."""
    thought, really = ([0.1] * 4 + [0.1 * slower] * 4, [0.1, 0.1 * slower] * 4)
    guess, truth = (
        Problem(
            fleet=Fleet(step_time_s=seconds, comm_time_s=2.0, samples=[10.0] * 8), target_loss=0.01
        )
        for seconds in (thought, really)
    )
    steering = Live.online(guess, guessed=False).begin()
    first = steering.ask()
    for number in range(1, 31):
        law = (setting := steering.ask()).participation
        who = law.cohort(guess.fleet.samples, 0, number).clients.tolist()
        steering.tell(a_round(number, setting, who, really))
    setting = steering.ask()
    best = Grouper(truth, setting.local_steps).group(setting.groups)
    now = setting.participation.round_cost(truth, setting.local_steps)
    assert now.time_s <= 1.1 * best.round_cost.time_s
    assert (setting.participation.groups == first.participation.groups) == stay


def test_what_cannot_be_on_these_devices_is_said_and_ends_the_training():
    steering = live(lambda _: "No plan meets the deadline.").begin()
    for number in (1, 2):
        assert steering.hopeless is None
        steering.tell(a_round(number, steering.ask()))
    assert steering.hopeless == "No plan meets the deadline."


def test_other_laws_and_other_problems_are_other_trainings():
    make = COURSES["fixed"]
    one, other = (
        Live(name="fixed", make=make, problem=problem_of(), guessed=True, about=(law,))
        for law in ("turns", "uniform")
    )
    assert one.setting == other.setting and one.identity != other.identity
