"""Pressure: limits on totals, and the prices that keep a training within them."""

from __future__ import annotations

import math
from dataclasses import replace

from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord, Stop
from fedplan.participation.grouping import Grouping

GRACE = 1.1  # times a limit that may be spent: a training about to arrive is not cut off


class Pressure:
    """What has been spent, and the extra prices of limited totals.

    Each time a total is expected to exceed its limit, the price of what it limits rises by as much
    as a round costs now, so that it weighs as much as everything else together.
    """

    def __init__(self, problem: Problem, stop: Stop | None = None) -> None:
        self._limits = self._ends = problem.limits
        if stop is not None:  # the end of a training is no reason to pay more for its rounds
            self._ends = self._limits.tightened(
                max_rounds=stop.max_rounds,
                deadline_s=stop.max_time_s,
                energy_budget_j=stop.max_energy_j,
            )
        self.objective: Objective = problem.objective
        self.per_round = 0.0  # what a limit on rounds adds to the cost of each
        self._time_s = self._energy_j = 0.0

    def spend(self, record: RoundRecord) -> None:
        """What a round has used up."""
        self._time_s += record.seconds
        self._energy_j += record.joules

    def rises(self, rounds: float, round_: int, grouping: Grouping) -> bool:
        """Whether a limit would be exceeded by so many rounds; its price has risen then."""
        cost, left, limits = grouping.round_cost, rounds - round_, self._limits
        paid = float(self.objective.of_round(cost.time_s, cost.energy_j, cost.clients))
        risen = False
        if self._exceeds(limits.deadline_s, self._time_s + left * cost.time_s):
            more = paid / cost.time_s if cost.time_s else 0.0
            self.objective = replace(self.objective, per_second=self.objective.per_second + more)
            risen = True
        if self._exceeds(limits.energy_budget_j, self._energy_j + left * cost.energy_j):
            more = paid / cost.energy_j if cost.energy_j else 0.0
            self.objective = replace(self.objective, per_joule=self.objective.per_joule + more)
            risen = True
        if self._exceeds(limits.max_rounds, rounds):
            self.per_round += paid + self.per_round
            risen = True
        return risen

    @property
    def exceeded(self) -> str | None:
        """The limit on time or energy that was exceeded by more than a tenth, in words."""
        limits = self._limits
        if self._exceeds(limits.deadline_s, self._time_s / GRACE):
            return f"The deadline of {limits.deadline_s:g} s has passed"
        if self._exceeds(limits.energy_budget_j, self._energy_j / GRACE):
            return f"The energy budget of {limits.energy_budget_j:g} J is spent"
        return None

    def last_round(self, round_: int, grouping: Grouping) -> int | None:
        """The round by which a limit or the stop ends the training; None if nothing does."""
        cost, limits = grouping.round_cost, self._ends
        ends = [
            math.inf if limits.max_rounds is None else limits.max_rounds,
            round_ + _rounds_left(limits.deadline_s, self._time_s, cost.time_s),
            round_ + _rounds_left(limits.energy_budget_j, self._energy_j, cost.energy_j),
        ]
        last = min(ends)
        return None if math.isinf(last) else int(last)

    @staticmethod
    def _exceeds(limit: float | None, total: float) -> bool:
        return limit is not None and total > limit


def _rounds_left(limit: float | None, spent: float, per_round: float) -> float:
    if limit is None or not per_round:
        return math.inf
    return max(limit - spent, 0.0) / per_round
