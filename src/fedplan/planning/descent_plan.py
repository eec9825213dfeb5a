"""Planning from a fitted descent: the (K, E) that stays cheap whatever the pilots leave open."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedplan.convergence.descent import CONFIDENCE, Descent
from fedplan.core.constraints import LIMIT_SLACK, TOTALS, Constraints
from fedplan.core.fleet import Fleet, FloatArray, IntArray
from fedplan.core.objective import Objective, costs_nothing
from fedplan.core.prediction import Prediction
from fedplan.participation.rankings import round_times_s
from fedplan.participation.uniform import round_energy_j, round_time_s
from fedplan.planning.descent_words import held_words, infeasible_words, kept_words
from fedplan.planning.surface import (
    affordable_lattice,
    between_neighbours,
    lattice,
    upper_quantile,
)

DRAWS = 100
QUANTILE = 0.75  # of the regrets over what is possible: the one that is made small
CUT_OFF = 10.0  # what a round costs more of a training that does not arrive in the rounds allowed
_NEVER = 1e9  # rounds
_FEW = 12  # values of K and of E that show whether any setting arrives


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What training with one (K, E) is expected to take: the median, and where 9 of 10 end."""

    prediction: Prediction
    rounds_interval: tuple[float, float]

    def interval(self, total: float) -> tuple[float, float]:
        """The range of a total that grows with the rounds, such as `prediction.time_s`."""
        low, high = self.rounds_interval
        expected = self.prediction.expected_rounds
        return total * low / expected, total * high / expected


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentPlan:
    """The choice, what it is expected to take, and what it may cost above the best.

    regret : with a probability of `QUANTILE` the choice costs no more than this share above the
        best setting. Infeasible plans have neither setting nor forecast.
    """

    status: Literal["chosen", "infeasible"]
    forecast: Forecast | None
    regret: float
    message: str

    @property
    def success(self) -> bool:
        """Whether there is a setting to use."""
        return self.forecast is not None


def forecast(
    fleet: Fleet, descent: Descent, objective: Objective, clients_per_round: int, local_steps: int
) -> Forecast:
    """Rounds, seconds, joules and cost of training to the target with (K, E).

    Where a rate that dies out makes it unlikely to arrive at all, they are what it takes if it
    does; the interval says how likely that is.
    """
    drawn = descent.rounds(clients_per_round, local_steps, parameters=descent.draws(DRAWS * 10))
    tail = (1.0 - CONFIDENCE) / 2.0
    low, rounds, high = (
        float(np.quantile(drawn, share, method="higher")) for share in (tail, 0.5, 1.0 - tail)
    )
    if math.isinf(rounds) and math.isfinite(low):
        rounds = float(np.median(drawn[np.isfinite(drawn)]))
    seconds = round_time_s(fleet, clients_per_round, local_steps)
    joules = float(round_energy_j(fleet, clients_per_round, local_steps))
    cost = float(objective.of_round(seconds, joules, clients_per_round))
    return Forecast(
        prediction=Prediction(
            clients_per_round=clients_per_round,
            local_steps=local_steps,
            expected_rounds=rounds,
            time_s=seconds * rounds,
            energy_j=joules * rounds,
            cost=cost * rounds,
        ),
        rounds_interval=(low, high),
    )


def plan_descent(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    constraints: Constraints | None = None,
    *,
    max_rounds: float = math.inf,
) -> DescentPlan:
    """Choose (K, E) by regret: the high quantile of what it costs above the best is smallest.

    max_rounds : where training is cut off. Unlike a limit in `constraints` it rules nothing out,
        but not arriving counts `CUT_OFF` times.

    The cost of an average guess would protect from nothing; a choice that is rarely far from the
    best is what a few short pilots can promise. No K or E is chosen that they say little of.
    """
    limits = constraints or Constraints()
    best: tuple[float, int, int] | None = None
    # Where every setting costs nothing the quickest is the useful one.
    searched = Objective.weighted(0.0) if costs_nothing(fleet, objective) else objective
    draws = descent.draws(DRAWS)
    arrives = _arrives(fleet, descent, limits, draws)
    # Where the rate dies out before any setting is there, none is better than another: the choice
    # is for the case that it does not. How surely limits are kept counts those cases all the same.
    compared = arrives if arrives.any() else np.ones_like(arrives)
    for table in _closing_in(fleet, descent, searched, limits, max_rounds, draws, compared):
        best = table.best()
        if best is None:
            message = infeasible_words(limits, table.least_kept(limits), CONFIDENCE)
            return DescentPlan(status="infeasible", forecast=None, regret=math.nan, message=message)
    if best is None:
        raise AssertionError("there is always a first lattice")
    regret, clients, steps = best
    expected = forecast(fleet, descent, objective, clients, steps)
    if math.isinf(expected.prediction.expected_rounds):
        return _never(clients, steps)
    low, high = expected.rounds_interval
    rounds = expected.prediction.rounds
    message = (
        f"Use {clients:,} of {len(fleet):,} clients per round and {steps:,} local "
        f"step{'s' if steps > 1 else ''}: in {QUANTILE:.0%} of what the pilots leave possible that "
        f"costs at most {regret:.1%} more than the best setting would. Expect "
        f"{rounds:,} round{'s' if rounds != 1 else ''} ({low:,.0f} to "
        f"{'never' if math.isinf(high) else format(high, ',.0f')})."
    )
    if arrives.mean() < CONFIDENCE:
        message += (
            f" That is if it gets there: in {1 - arrives.mean():.0%} of what the "
            "pilots leave possible the learning rate dies out before."
        )
    shares = _shares_kept(expected.prediction, limits, descent, draws)
    message += kept_words(limits, shares)
    ranges = settings_within_reach(fleet, descent, limits)
    message += held_words(limits, (clients, steps), ranges, len(fleet))
    return DescentPlan(status="chosen", forecast=expected, regret=regret, message=message)


def _arrives(
    fleet: Fleet, descent: Descent, limits: Constraints, draws: FloatArray
) -> NDArray[np.bool_]:
    """Which of the draws let any setting at all reach the target."""
    clients, steps = settings_within_reach(fleet, descent, limits)
    ks, es = (lattice(*ends, _FEW) for ends in (clients, steps))
    rounds = descent.rounds(ks[:, np.newaxis], es[np.newaxis, :], parameters=draws)
    return np.asarray(np.isfinite(rounds).any(axis=(1, 2)))


def _shares_kept(
    chosen: Prediction, limits: Constraints, descent: Descent, draws: FloatArray
) -> dict[str, float]:
    """In what share of the draws each limit on a total is kept."""
    rounds = descent.rounds(*chosen.pair, parameters=draws)
    totals = (chosen.time_s, chosen.energy_j, chosen.expected_rounds)
    return {
        name: float(np.mean(rounds * total / chosen.expected_rounds <= limit * (1 + LIMIT_SLACK)))
        for name, total in zip(TOTALS, totals, strict=True)
        if (limit := getattr(limits, name)) is not None
    }


def _never(clients: int, steps: int) -> DescentPlan:
    message = (
        f"Even the best setting, {clients:,} clients per round and {steps:,} local steps, most "
        "likely never reaches the target: the learning rate has died out before. Let it decay more "
        "slowly, or raise the target loss."
    )
    return DescentPlan(status="infeasible", forecast=None, regret=math.nan, message=message)


def settings_within_reach(
    fleet: Fleet, descent: Descent, limits: Constraints
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The smallest and largest K and E that the pilots say something of and the limits allow."""
    fewest, most, low_e, high_e = descent.reach
    low_k, high_k = limits.clients_range(len(fleet))
    if limits.min_clients_per_round is None:
        low_k = min(fewest, high_k)
    if limits.max_clients_per_round is None:
        high_k = max(low_k, min(most, high_k))
    low_e = limits.min_local_steps or min(low_e, limits.max_local_steps or low_e)
    return (low_k, high_k), (low_e, max(low_e, limits.max_local_steps or high_e))


class _Table:
    """Costs of a lattice of (K, E) under every draw that is compared; limits count all draws."""

    def __init__(
        self,
        fleet: Fleet,
        descent: Descent,
        objective: Objective,
        limits: Constraints,
        max_rounds: float,
        draws: FloatArray,
        compared: NDArray[np.bool_],
        ks: IntArray,
        es: IntArray,
    ) -> None:
        self.ks, self.es = ks, es
        k, e = ks[:, np.newaxis], es[np.newaxis, :]
        seconds, joules = round_times_s(fleet, ks, es), round_energy_j(fleet, k, e)
        rounds = np.minimum(descent.rounds(k, e, parameters=draws), _NEVER)
        self._totals = dict(zip(TOTALS, (seconds, joules, np.ones_like(joules)), strict=True))
        self._rounds = rounds
        counted = np.where(rounds > max_rounds, CUT_OFF * rounds, rounds)
        self.costs: FloatArray = objective.of_round(seconds, joules, k) * counted[compared]
        if limits.limits_totals:
            met = limits.met(seconds * rounds, joules * rounds, rounds)
            self.costs[:, met.mean(axis=0) < CONFIDENCE] = np.inf
        self.lowest: FloatArray = self.costs.min(axis=(1, 2))

    def best(self) -> tuple[float, int, int] | None:
        """Regret, K and E of the best choice; None where nothing meets the limits."""
        if not np.isfinite(self.lowest).all():
            return None
        lowest = self.lowest[:, np.newaxis, np.newaxis]
        regrets = upper_quantile(self.costs / lowest - 1.0, QUANTILE)
        row, column = np.unravel_index(np.argmin(regrets), regrets.shape)
        return float(regrets[row, column]), int(self.ks[row]), int(self.es[column])

    def least_kept(self, limits: Constraints) -> dict[str, tuple[float, int, int]]:
        """The least of each limited total that a setting keeps as surely as is asked, K and E.

        Infinite where none arrives as surely.
        """
        rounds = upper_quantile(self._rounds, CONFIDENCE)
        rounds = np.where(rounds < _NEVER, rounds, np.inf)
        least = {}
        for name, of_a_round in self._totals.items():
            if getattr(limits, name) is not None:
                totals = of_a_round * rounds
                row, column = np.unravel_index(np.argmin(totals), totals.shape)
                setting = int(self.ks[row]), int(self.es[column])
                least[name] = float(totals[row, column]), *setting
        return least


def _closing_in(
    fleet: Fleet,
    descent: Descent,
    objective: Objective,
    limits: Constraints,
    max_rounds: float,
    draws: FloatArray,
    compared: NDArray[np.bool_],
) -> Iterator[_Table]:
    """Ever finer lattices around the best choice of the one before, down to whole numbers."""
    clients, steps = settings_within_reach(fleet, descent, limits)
    size = affordable_lattice(fleet.count.size)
    ks, es = lattice(*clients, size), lattice(*steps, size)
    lowest: FloatArray | None = None
    while True:
        table = _Table(fleet, descent, objective, limits, max_rounds, draws, compared, ks, es)
        if lowest is not None:  # what was cheapest on a coarser lattice still counts
            table.lowest = np.minimum(table.lowest, lowest)
        yield table
        lowest = table.lowest
        found = table.best()
        if found is None:
            return
        _, best_k, best_e = found
        ks_next = between_neighbours(ks, int(np.searchsorted(ks, best_k)), size)
        es_next = between_neighbours(es, int(np.searchsorted(es, best_e)), size)
        if ks_next.size <= 3 and es_next.size <= 3:
            return
        ks, es = ks_next, es_next
