"""Pressure: limits on totals, the prices that keep a training within them, and when none can."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from fedplan.core.constraints import TOTALS, Constraints
from fedplan.core.objective import Objective
from fedplan.core.problem import Problem
from fedplan.core.records import RoundRecord, Stop
from fedplan.core.setting import RoundCost

GRACE = 1.1  # times a limit that may be spent: a training about to arrive is not cut off
# For each total: the rate of an objective that makes it dearer, and its limit in words.
_RATES = {"time_s": "per_second", "energy_j": "per_joule"}
_WORDS = {
    "time_s": ("deadline of {:g} s", "has passed"),
    "energy_j": ("energy budget of {:g} J", "is spent"),
}


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
        self._spent = dict.fromkeys(_RATES, 0.0)
        self.learn_costs()

    def spend(self, record: RoundRecord, foretold: Callable[[], RoundCost]) -> None:
        """Add what a round has used; its expected cost is asked for only if there are limits."""
        used = {"time_s": record.seconds, "energy_j": record.joules}
        for total, amount in used.items():
            self._spent[total] += amount
        for total, _ in _limited(self._limits):
            self._taken[total] += used[total]
            self._foretold[total] += getattr(foretold(), total)

    def learn_costs(self) -> None:
        """Forget how far off expected costs were: they are other ones from now on."""
        self._taken, self._foretold = (dict.fromkeys(_RATES, 0.0) for _ in range(2))

    def _really(self, total: str, foretold: float) -> float:
        """An expected amount, corrected by how far off others were: devices may be guessed."""
        before = self._foretold[total]
        return foretold * (self._taken[total] / before) if before else foretold

    def rises(self, rounds: float, round_: int, cost: RoundCost) -> bool:
        """Whether so many rounds would exceed a limit; its price is raised then."""
        left = rounds - round_
        paid = float(self.objective.of_round(cost.time_s, cost.energy_j, cost.clients))
        risen = False
        for total, limit in _limited(self._limits):
            each = getattr(cost, total)
            if self._spent[total] + left * each > limit:
                more = getattr(self.objective, _RATES[total]) + (paid / each if each else 0.0)
                self.objective = replace(self.objective, **{_RATES[total]: more})
                risen = True
        if self._limits.max_rounds is not None and rounds > self._limits.max_rounds:
            self.per_round += paid + self.per_round
            risen = True
        return risen

    def exceeded(self, coming: Callable[[], RoundCost]) -> str | None:
        """The limit, in words, that the next round would exceed by more than a tenth."""
        for total, limit in _limited(self._limits):
            spent, (name, ended) = self._spent[total], _WORDS[total]
            if spent + self._really(total, getattr(coming(), total)) > GRACE * limit:
                words = name.format(limit)
                if spent > limit:
                    return f"The {words} {ended}"
                return f"One more round would exceed the {words} by more than a tenth"
        return None

    def beyond(
        self, rounds: float, round_: int, cost: RoundCost, least: Callable[[Objective], float]
    ) -> str | None:
        """The limit, in words, that even so few rounds must exceed by more than a tenth.

        least : the least that the rest can cost by an objective; asked for only if the rest would
            exceed a limit as things are.
        """
        for total, limit in _limited(self._limits):
            spent, most = self._spent[total], GRACE * limit
            rest = (rounds - round_) * getattr(cost, total)
            if spent + self._really(total, rest) <= most:
                continue
            alone = Objective.weighted(float(total == "energy_j"))
            if spent + self._really(total, least(alone)) > most:
                return _WORDS[total][0].format(limit)
        return None

    def last_round(self, round_: int, cost: RoundCost) -> int | None:
        """The round by which a limit or the stop ends the training; None if nothing does."""
        rounds = self._ends.max_rounds
        last = math.inf if rounds is None else rounds
        for total, limit in _limited(self._ends):
            if each := getattr(cost, total):
                last = min(last, round_ + max(limit - self._spent[total], 0.0) / each)
        return None if math.isinf(last) else int(last)


def _limited(limits: Constraints) -> Iterator[tuple[str, float]]:
    """What is limited of seconds and joules, and to how much."""
    for name, total in TOTALS.items():
        limit = getattr(limits, name)
        if limit is not None and total in _RATES:
            yield total, limit
