"""Plans by turns: groups, their frequencies and the local steps, chosen together.

At a number of local steps the devices are cut into every likely number of groups, and the cheapest
is kept: more groups wait less, and add rounds. For these groups the best number of steps has a
closed form, at which devices are grouped again, until the steps stay.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from fedplan.convergence.bound import Bound
from fedplan.core.constraints import MAX_STEPS, Constraints
from fedplan.core.fleet import QUANTITIES, Fleet, rising_order
from fedplan.core.learning_rate import LearningRate
from fedplan.core.plan import GroupCost, LazyLaw
from fedplan.core.problem import Problem
from fedplan.core.setting import Participation, Prediction
from fedplan.errors import InputError
from fedplan.participation.grouping import Grouper, Grouping
from fedplan.planning.predict import Convergence, clock, late_rounds, predicted, rounds_of_turns
from fedplan.planning.steps import best_integer_steps, steps_range

_REPEATS = 4  # regroupings at most: two or three are the rule
_STEPS_TRIED = 24  # numbers of local steps looked at where a limit on totals binds
_STRIDE = 1.3  # from one number of groups to the next: the cost is flat around its least
_MOST_GROUPS = 256  # more take long to find, and save little
# The part of all that a dying rate can teach within which every group has trained. Chosen on six
# tasks (docs/decisions/0014): with 0.5 training costs a quarter more, with 0.9 some fail.
_HEARD_BY = 0.75
_PATIENCE = 2  # numbers of groups that may be worse before the search ends
_MANY = 8192  # devices; of more, this many stand for all while steps and groups are searched for


Law = TypeVar("Law", bound=Participation | LazyLaw, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice(Generic[Law]):
    """A law, and what training by it is expected to take; no cost is below `lower_bound`."""

    law: Law
    prediction: Prediction
    lower_bound: float | None = None

    @property
    def groups(self) -> tuple[GroupCost, ...]:
        """The groups that take turns, if any."""
        return tuple(getattr(self.law, "rows", ()))


def choose_groups(problem: Problem, local_steps: int, rounds: float) -> Grouping:
    """The number of groups with the lowest cost, if all clients at once need these rounds.

    >>> fleet = Fleet(step_time_s=[1.0, 1.1, 8.0, 9.0], comm_time_s=0.0)
    >>> choose_groups(Problem(fleet=fleet), 1, rounds=4.0).whole().groups
    ((0, 1), (2, 3))
    """
    check_group_sizes(problem)
    return min(
        _groupings(problem, local_steps, rounds), key=lambda one: _training_cost(one, rounds)
    )


def group_sizes_fit(problem: Problem) -> bool:
    """Whether all clients can be in groups of the sizes that the limits allow."""
    n = len(problem.fleet)
    low, high = problem.limits.clients_range(n)
    return -(-n // high) <= n // low


def check_group_sizes(problem: Problem) -> None:
    """Refuse limits on clients per round that no groups can keep to."""
    if not group_sizes_fit(problem):
        low, high = problem.limits.clients_range(len(problem.fleet))
        raise InputError(
            f"{len(problem.fleet):,} clients cannot be cut into groups of {low:,} to {high:,}. "
            "Widen min_clients_per_round and max_clients_per_round."
        )


def _training_cost(grouping: Grouping, rounds: float) -> float:
    """What training costs, without the head start that all groups have; seconds without prices."""
    cost = grouping.round_cost
    objective = grouping.problem.objective
    paid = float(objective.of_round(cost.time_s, cost.energy_j, cost.clients))
    return (paid or cost.time_s) * (rounds + late_rounds(rounds, len(grouping.visits)))


def _groupings(problem: Problem, local_steps: float, rounds: float) -> Iterator[Grouping]:
    """Cuts into more and more groups, until more have not paid for a while."""
    grouper = Grouper(problem, local_steps)
    fewest, most = grouper.range
    most = max(fewest, min(most, _MOST_GROUPS, most_turns(problem.learning_rate)))
    best, worse, number = math.inf, 0, fewest
    while number <= most and worse < _PATIENCE:
        found = grouper.group(number)
        if found is not None:
            cost = _training_cost(found, rounds)
            worse = 0 if cost < best else worse + 1
            best = min(best, cost)
            yield found
        following = max(number + 1, int(number * _STRIDE))
        number = most if number < most < following else following


def most_turns(rate: LearningRate | None, after: int = 0) -> int:
    """Rounds, after so many, until most of what the rate still allows is used up.

    With more groups than that, the last ones train when little can be learnt any more. A constant
    or harmonic rate never comes to an end, and sets no bound that matters.
    """
    if rate is None:
        return _MOST_GROUPS
    ends, done = clock(rate)
    used = float(np.interp(after, ends, done, left=0.0))
    return int(ends[np.searchsorted(done, used + _HEARD_BY * (done[-1] - used))]) - after


def plan_turns(problem: Problem, convergence: Convergence) -> Choice[Grouping] | None:
    """The cheapest groups and local steps; None if nothing meets the limits."""
    chosen = _unlimited(problem, convergence)
    if problem.limits.are_met_by(chosen.prediction):
        return chosen
    allowed = [
        choice
        for choice in likely_turns(problem, convergence)
        if problem.limits.are_met_by(choice.prediction)
    ]
    return min(allowed, key=lambda choice: choice.prediction.cost, default=None)


def turns_steps_range(limits: Constraints, convergence: Convergence) -> tuple[int, int]:
    """Smallest and largest E worth looking at."""
    if isinstance(convergence, Bound):
        return steps_range(limits, convergence)
    lowest = limits.min_local_steps or 1
    return lowest, max(lowest, limits.max_local_steps or MAX_STEPS)


def _unlimited(problem: Problem, convergence: Convergence) -> Choice[Grouping]:
    """The cheapest choice without limits on totals: steps, groups, steps, ... until they stay."""
    low, high = turns_steps_range(problem.limits, convergence)
    whole, problem = problem, thinned(problem)
    fleet = problem.fleet
    balance = fleet.mean("comm_time_s") / fleet.mean("step_time_s")
    steps = int(np.clip(round(balance), low, min(high, max(low, 1000))))
    seen: dict[int, tuple[float, Grouping]] = {}
    for _ in range(_REPEATS):
        if steps in seen:
            break
        rounds = float(convergence.full_rounds(steps))
        grouping = choose_groups(problem, steps, rounds)
        seen[steps] = _training_cost(grouping, rounds), grouping
        steps = _best_steps(convergence, *grouping.line(), low, high)
    steps = min(seen, key=lambda tried: seen[tried][0])
    grouping, rounds = seen[steps][1], float(convergence.full_rounds(steps))
    if whole is not problem:
        number = len(grouping.visits)
        grouping = Grouper(whole, steps).group(number) or choose_groups(whole, steps, rounds)
    return _choice(grouping, steps, rounds)


def thinned(problem: Problem) -> Problem:
    """The same problem with fewer devices, each of which stands for some of similar speed.

    >>> fleet = Fleet(step_time_s=np.linspace(1.0, 2.0, 8193), comm_time_s=1.0)
    >>> few = thinned(Problem(fleet=fleet)).fleet
    >>> len(few), few.count.size
    (8193, 4097)
    """
    fleet = problem.fleet
    if fleet.count.size <= _MANY or not fleet.is_ungrouped:
        return problem
    balance = fleet.mean("comm_time_s") / fleet.mean("step_time_s")
    order = rising_order(fleet.round_times_s(balance))
    starts = np.arange(0, order.size, -(-order.size // _MANY))
    stands_for = np.diff(starts, append=order.size)
    kept = order[starts + stands_for // 2]
    columns = {name: getattr(fleet, name)[kept] for name in (*QUANTITIES, "samples")}
    return replace(problem, fleet=Fleet(**columns, count=stands_for))


def _best_steps(
    convergence: Convergence, per_step: float, per_round: float, low: int, high: int
) -> int:
    if isinstance(convergence, Bound):
        return int(
            best_integer_steps(per_step, per_round, convergence.a0, convergence.b0, low, high)
        )
    wanted = convergence.best_steps(per_step, per_round)
    if wanted == math.inf and high == MAX_STEPS:
        raise InputError(
            "local steps cost nothing by these weights, so that more of them help without end. "
            "Give max_local_steps."
        )
    below = int(np.clip(math.floor(min(wanted, high)), low, high))
    return min(
        (below, min(below + 1, high)),
        key=lambda e: (per_step * e + per_round) * float(convergence.full_rounds(e)),
    )


def likely_turns(problem: Problem, convergence: Convergence) -> Iterator[Choice[Grouping]]:
    """Choices over a ladder of steps and every likely number of groups."""
    low, high = turns_steps_range(problem.limits, convergence)
    balance = problem.fleet.mean("comm_time_s") / problem.fleet.mean("step_time_s")
    furthest = int(np.clip(100 * max(balance, 10.0), low, high))
    ladder = np.unique(np.rint(np.geomspace(low, furthest, _STEPS_TRIED)).astype(int))
    for steps in ladder.tolist():
        rounds = float(convergence.full_rounds(steps))
        for grouping in _groupings(problem, steps, rounds):
            yield _choice(grouping, steps, rounds)


def _choice(grouping: Grouping, steps: int, full_rounds: float) -> Choice[Grouping]:
    problem = grouping.problem
    rounds = rounds_of_turns(full_rounds, len(grouping.visits), problem.learning_rate)
    prediction = predicted(problem, grouping.round_cost, rounds, steps, clients=None)
    return Choice(law=grouping, prediction=prediction)
