"""What the online course does with what rounds say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from course.made import fleet_of, problem_of, told

from fedplan.core.learning_rate import LearningRate
from fedplan.core.records import Stop
from fedplan.core.setting import RoundCost
from fedplan.course import Online
from fedplan.course.pressure import Pressure
from fedplan.course.steering import FEW, HEAVIEST, MOVE
from fedplan.errors import InputError


def follow(course, rounds, losses, elasticity):
    """Tell so many rounds, and what was asked for each."""
    steering = course.begin()
    steering.tell(told(0, 3.0))
    asked = []
    for round_ in range(1, rounds + 1):
        asked.append(steering.ask())
        steering.tell(told(round_, losses(round_), elasticity=elasticity(asked[-1])))
    return steering, asked


def falling(round_):
    return 3.0 - 0.3 * np.log(round_)


def test_local_steps_settle_where_they_cost_least():
    """With saturation s, E = sqrt(s c_m / c_p), from whichever side."""
    for saturation in (5.0, 400.0):
        course = Online(problem=problem_of())
        per_step, per_round = course.first.law.line()
        best = (saturation * per_round / per_step) ** 0.5
        steering, asked = follow(
            course,
            60,
            falling,
            lambda one: saturation / (saturation + one.local_steps),  # noqa: B023
        )
        assert asked[-1].local_steps == pytest.approx(best, rel=0.1)
        steps = [one.local_steps for one in asked]
        moves = [after / before for before, after in itertools.pairwise(steps)]
        assert max(moves) <= MOVE + 1 / min(steps) and min(moves) >= 1 / MOVE - 1 / min(steps)
        assert steering.hopeless is None


def test_a_rate_that_falls_wants_more_steps_than_one_that_stays():
    saturation = 20.0

    def last(rate):
        course = Online(problem=problem_of(rate=rate))
        _, asked = follow(
            course, 30, falling, lambda one: saturation / (saturation + one.local_steps)
        )
        return asked[-1].local_steps

    steady = last(LearningRate(initial=0.1))
    assert last(LearningRate(initial=0.1, schedule="harmonic")) > 1.2 * steady
    listed = tuple(0.1 / r for r in range(2, 400))
    assert last(LearningRate(initial=0.1, schedule="list", rates=listed)) > 1.2 * steady


def test_nothing_is_given_up_or_changed_before_a_loss_is_known():
    course = Online(problem=problem_of(), stop=Stop(max_rounds=200))
    steering, asked = follow(course, 60, lambda _: None, lambda _: 0.1)
    assert steering.hopeless is None and set(asked) == {course.setting}


def test_where_no_model_gets_better_groups_grow():
    course = Online(problem=problem_of())
    groups = course.setting.groups
    assert groups > 1
    _, asked = follow(course, 8 * groups, lambda _: 2.5, lambda _: 0.5)
    sizes = [one.groups for one in asked]
    assert sizes[2 * groups - 1] == groups  # two cycles are waited for
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1
    for one in asked:
        members = sorted(client for group in one.participation.groups for client in group)
        assert members == list(range(12))


def test_steps_become_fewer_while_the_loss_stands_still():
    """A signal that asks for more is not followed once that is more than luck, and steps halve."""
    course = Online(problem=problem_of())
    _, asked = follow(course, 4 * FEW, lambda _: 2.5, lambda _: 0.9)
    asked = asked[FEW:]
    steps = [one.local_steps for one in asked]
    assert steps == sorted(steps, reverse=True) and steps[-1] < steps[0]


def test_steps_are_a_quarter_of_what_is_wanted_however_long_the_loss_stands_still():
    """They halve twice at most: one client alone has nobody to undo its work."""
    course = Online(problem=problem_of(fleet_of(1)))
    per_step, per_round = course.first.law.line()
    for saturation in (20.0, 100.0, 400.0):
        elasticity = lambda one: saturation / (saturation + one.local_steps)  # noqa: B023, E731
        _, asked = follow(course, 60, lambda _: 2.5, elasticity)
        wanted = (saturation * per_round / per_step) ** 0.5
        assert {one.local_steps for one in asked[40:]} == {round(wanted / 4)}


def slowing(round_):
    """A fast fall for so long, and then one that leads nowhere soon, though it never stops."""
    return 3.0 - 0.1 * min(round_, 15) - 0.0005 * max(round_ - 15, 0)


@pytest.mark.parametrize(
    ("losses", "in_full"), [(lambda round_: 3.0 - 0.02 * round_, False), (slowing, True)]
)
def test_a_client_with_much_data_counts_in_full_where_the_end_recedes(losses, in_full):
    samples = np.array([1000.0, *[10.0] * 11])
    steering, asked = follow(Online(problem=problem_of().with_samples(samples)), 60, losses,
                             lambda _: 0.5)  # fmt: skip
    assert asked[0].participation.heaviest == HEAVIEST
    assert (asked[-1].participation.heaviest is None) == in_full
    assert any("counts by its data" in one.why for one in steering.decisions) == in_full


def test_where_nobody_has_much_data_an_end_that_recedes_changes_nothing():
    steering, _ = follow(Online(problem=problem_of()), 60, slowing, lambda _: 0.5)
    assert not any("counts by its data" in one.why for one in steering.decisions)


def test_a_client_with_much_data_counts_for_a_few_until_that_gets_no_further():
    samples = np.array([1000.0, *[10.0] * 11])
    problem = problem_of().with_samples(samples)
    course = Online(problem=problem)
    groups = course.setting.groups
    _, asked = follow(course, 6 * groups, lambda _: 2.5, lambda _: 0.5)

    heaviest = [one.participation.heaviest for one in asked]
    assert heaviest[0] == HEAVIEST and heaviest[-1] is None
    for setting, counts in ((asked[0], HEAVIEST / 12), (asked[-1], 1000 / 1110)):
        law = setting.participation
        rounds = [law.cohort(samples, 0, law.since + r + 1) for r in range(8 * law.cycle)]
        mine = sum(float(one.shares[one.clients == 0].sum()) for one in rounds)
        assert mine / len(rounds) == pytest.approx(counts, rel=0.15)


def test_every_change_is_a_decision_with_a_reason():
    course = Online(problem=problem_of())
    steering, asked = follow(course, 60, lambda _: 2.5, lambda _: 0.2)
    changes = [
        round_ + 1
        for round_, (one, next_) in enumerate(itertools.pairwise(asked), start=1)
        if one != next_
    ]
    made = [decision.round for decision in steering.decisions if decision.round <= 60]
    assert made == [1, *changes]
    assert all(decision.why for decision in steering.decisions)
    assert steering.decisions[-1].expected_rounds is not None


def test_replaying_the_rounds_gives_the_same_steering():
    course = Online(problem=problem_of())
    one, asked = follow(course, 40, falling, lambda _: 0.4)
    other, again = follow(course, 40, falling, lambda _: 0.4)
    assert asked == again and one.decisions == other.decisions


def test_ranges_of_steps_and_clients_are_kept():
    course = Online(
        problem=problem_of(min_local_steps=8, max_local_steps=12, max_clients_per_round=3)
    )
    for elasticity in (0.0, 1.0):
        _, asked = follow(course, 40, lambda _: 2.5, lambda _: elasticity)  # noqa: B023
        assert all(8 <= one.local_steps <= 12 for one in asked)
        assert all(len(g) <= 3 for one in asked for g in one.participation.groups)


def test_a_deadline_in_danger_makes_time_dearer():
    """Where only energy counts, groups are small; a deadline that would be missed changes that."""
    fleet = fleet_of(30)
    free = Online(problem=problem_of(fleet, weight=1.0, target=0.5))
    rushed = Online(problem=problem_of(fleet, weight=1.0, target=0.5, deadline_s=400.0))
    assert free.setting == rushed.setting  # nothing is known of rounds before the first
    slow = lambda round_: 3.0 - 0.5 * np.log(round_)  # noqa: E731
    _, calm = follow(free, 80, slow, lambda _: 0.5)
    _, hurried = follow(rushed, 80, slow, lambda _: 0.5)
    cost = lambda one: one.participation.round_cost(free.problem, one.local_steps)  # noqa: E731
    assert cost(hurried[-1]).time_s / cost(hurried[-1]).clients < (
        cost(calm[-1]).time_s / cost(calm[-1]).clients
    )


def test_a_deadline_that_the_shortest_training_would_miss_is_given_up_before_it_has_passed():
    course = Online(problem=problem_of(target=0.5, deadline_s=40.0))

    def slow(round_):
        return 3.0 - 0.65 * np.log(round_)  # at the target in round 47

    steering, _ = follow(course, 2 * course.setting.groups, slow, lambda _: 0.5)
    assert steering.hopeless is None
    steering, _ = follow(course, 38, slow, lambda _: 0.5)
    assert "The deadline of 40 s cannot be kept" in steering.hopeless
    assert "the loss will be about" in steering.hopeless and "Raise" in steering.hopeless


ROUND = "One more round would exceed the deadline of"


def test_limits_go_by_what_rounds_really_take():
    """Devices may be guessed: rounds that take a tenth of what was foretold leave time enough."""
    problem = problem_of(deadline_s=10.0)
    foretold = RoundCost(time_s=5.0, energy_j=1.0, clients=3)
    for seconds, ends in ((0.5, False), (5.0, True)):
        pressure = Pressure(problem)
        pressure.spend(told(1, 2.0, seconds=seconds), lambda: foretold)
        pressure.spend(told(2, 2.0, seconds=seconds), lambda: foretold)
        assert (pressure.exceeded(lambda: foretold) is not None) == ends
        lost = pressure.beyond(12.0, 2, foretold, lambda objective: 50.0 * objective.per_second)
        assert (lost is not None) == ends
        pressure.learn_costs()
        words = pressure.exceeded(lambda: foretold)
        assert words == (f"{ROUND} 10 s by more than a tenth" if ends else None)


def test_a_loss_that_does_not_fall_is_given_up_with_advice():
    course = Online(problem=problem_of(max_rounds=1000))
    steering, _ = follow(course, 100, lambda r: 2.0 + 0.01 * r, lambda _: 0.5)
    assert "learning rate" in steering.hopeless


def test_a_target_out_of_reach_is_given_up_and_says_what_can_be_reached():
    course = Online(problem=problem_of(target=0.01, max_rounds=1000))
    steering, _ = follow(course, 100, lambda r: 1.0 + 1.0 / r, lambda _: 0.5)
    assert "out of reach" in steering.hopeless and "by round 1,000" in steering.hopeless


def test_costs_that_turn_out_otherwise_make_other_groups():
    course = Online(problem=problem_of())
    steering = course.begin()
    steering.tell(told(0, 3.0))
    before = steering.ask()
    slow = fleet_of(seed=9)
    steering.learn_costs(slow, 0)
    assert steering.ask().participation.groups != before.participation.groups


def test_without_a_target_there_is_no_online_course():
    with pytest.raises(InputError, match="target_loss"):
        Online(problem=problem_of(target=None))


def test_where_clients_differ_and_the_rate_dies_out_all_are_heard_in_time():
    rates = {
        "dying": LearningRate(initial=0.1, schedule="exponential", decay=0.8),
        "lasting": LearningRate(initial=0.1),
    }
    groups = {}
    for name, rate in rates.items():
        course = Online(problem=problem_of(fleet_of(60), weight=1.0, rate=rate))
        steering, asked = follow(course, 12, falling, lambda one: 1.0 / (1.0 + one.local_steps))
        groups[name] = [one.groups for one in asked]
        told_so = [one for one in steering.decisions if "Clients differ" in one.why]
        assert len(told_so) == (name == "dying")
    assert groups["dying"][0] == groups["lasting"][0] == groups["lasting"][-1] > 7
    assert groups["dying"][-1] <= 7  # three quarters of what 0.8^r can teach


def test_groups_that_limits_keep_are_not_made_again():
    """A cap on clients at once needs more groups than the rate allows: nothing changes."""
    rate = LearningRate(initial=0.1, schedule="exponential", decay=0.5)
    course = Online(
        problem=problem_of(fleet_of(60), weight=1.0, rate=rate, max_clients_per_round=5)
    )
    steering, asked = follow(course, 12, falling, lambda one: 1.0 / (1.0 + one.local_steps))
    assert sum("Clients differ" in one.why for one in steering.decisions) <= 1
    assert min(one.groups for one in asked) == 12
