"""Outcome: how a study ended, and its whole cost from the first round on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Literal, Protocol

from fedplan.core.constraints import Constraints
from fedplan.core.course import Decision
from fedplan.core.objective import Objective
from fedplan.core.plan import Alternative, GroupCost
from fedplan.core.problem import Problem
from fedplan.core.records import RunRecord, Stop
from fedplan.core.setting import Setting
from fedplan.notebook import Shown
from fedplan.studies.paper_pilots import Failure
from fedplan.words import expected, in_words

Status = (
    Literal["reached", "not reached", "hopeless", "infeasible", "unavailable", "unfinished"]
    | Failure
)


class Question(Protocol):
    """The target of a training, and what counts; experiments and studies of apps have it."""

    @property
    def name(self) -> str:
        """The study's name."""
        ...

    @property
    def stop(self) -> Stop:
        """When training is to end; with a target."""
        ...

    @property
    def objective(self) -> Objective:
        """What a second and a joule are worth."""
        ...

    @property
    def constraints(self) -> Constraints:
        """The limits."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A cost in seconds, in joules, and in the objective's unit."""

    time_s: float
    energy_j: float
    cost: float

    @classmethod
    def of(cls, runs: Sequence[RunRecord], objective: Objective) -> Bill:
        """The bill of all these runs together."""
        time_s = math.fsum(run.time_s for run in runs)
        energy_j = math.fsum(run.energy_j for run in runs)
        taken_part = sum(run.taken_part for run in runs)
        cost = float(objective.of_round(time_s, energy_j, taken_part))
        return cls(time_s=time_s, energy_j=energy_j, cost=cost)

    def times(self, factor: float) -> Bill:
        """The bill times a factor."""
        return Bill(**{name: factor * value for name, value in asdict(self).items()})

    def plus(self, other: Bill) -> Bill:
        """Both bills together."""
        return Bill(**{name: value + getattr(other, name) for name, value in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a training was expected to take, once its rounds showed it.

    round : the round before which this was forecast.
    rounds, interval : rounds in all, and their 90% interval.
    bill : of these rounds, each at the cost of the setting at the time.
    """

    round: float
    rounds: float
    interval: tuple[float, float]
    bill: Bill

    def interval_of(self, total: float) -> tuple[float, float]:
        """The range of a total that grows with the rounds, such as `bill.time_s`."""
        low, high = self.interval
        return total * low / self.rounds, total * high / self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The training runs: rounds and bill over the seeds that reached the target, or over all."""

    runs: tuple[RunRecord, ...]
    reached: int
    rounds: float
    rounds_sd: float
    bill: Bill

    @classmethod
    def of(cls, runs: Sequence[RunRecord], objective: Objective) -> Measured:
        """What training took in the runs that reached the target, or in all if none did."""
        counted = counted_runs(runs)
        rounds = [run.num_rounds for run in counted]
        return cls(
            runs=tuple(runs),
            reached=sum(run.status == "target" for run in runs),
            rounds=statistics.fmean(rounds),
            rounds_sd=statistics.stdev(rounds) if len(rounds) > 1 else 0.0,
            bill=Bill.of(counted, objective).times(1 / len(counted)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Shown):
    """The outcome of a study.

    course : the name of the course.
    setting : the first setting; None if training did not begin.
    groups : those that took turns at the beginning, if any.
    regret : how much more than the best the first setting can cost; None if unknown.
    why : how that setting was chosen.
    pilots, pilots_bill : of the paper's course only.
    forecast : what the rounds themselves predicted; None if they did not.
    alternatives : what other settings would have cost, judging by these runs.
    """

    status: Status
    course: str
    message: str
    setting: Setting | None = None
    groups: tuple[GroupCost, ...] = ()
    regret: float | None = None
    why: str = ""
    pilots: tuple[RunRecord, ...] = ()
    pilots_bill: Bill = Bill(time_s=0.0, energy_j=0.0, cost=0.0)
    measured: Measured | None = None
    forecast: Forecast | None = None
    alternatives: tuple[Alternative, ...] = ()

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {text}" for name, text in self._facts() if name != "message")
        return f"<Outcome: {found}>"

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "status", self.status
        yield "course", self.course
        if self.setting is not None:
            yield "began with", self.setting.label
        if (told := self.forecast) is not None:
            yield "rounds predicted", expected(told.rounds, told.interval, in_words)
        if (measured := self.measured) is not None:
            yield "rounds measured", in_words(measured.rounds)
        if (bill := self.all_in) is not None:
            yield "cost, all in", in_words(bill.cost)
        yield "message", self.message

    @property
    def success(self) -> bool:
        """Whether training reached the target."""
        return self.status == "reached"

    @property
    def all_in(self) -> Bill | None:
        """The cost of one training with everything before it; None without one."""
        if self.measured is None:
            return None
        return self.measured.bill.plus(self.pilots_bill)

    @property
    def pilots_share(self) -> float | None:
        """The cost of the pilots, as a share of one training."""
        if self.measured is None or not self.measured.bill.cost:
            return None
        return self.pilots_bill.cost / self.measured.bill.cost

    @property
    def as_predicted(self) -> bool | None:
        """Whether the measured rounds lie in the predicted interval."""
        if self.measured is None or self.forecast is None or not self.measured.reached:
            return None
        low, high = self.forecast.interval
        return low <= self.measured.rounds <= high


def counted_runs(runs: Sequence[RunRecord]) -> Sequence[RunRecord]:
    """The runs that reached the target, or all if none did."""
    return [run for run in runs if run.status == "target"] or runs


def decisions_of(run: RunRecord) -> tuple[Decision, ...]:
    """The decisions of a run that has rounds; for a fixed setting, that setting alone."""
    made = tuple(one for one in run.decisions if one.round <= max(run.num_rounds, 1))
    return made or (Decision.of(run.setting, 1),)


def forecast_of(runs: Sequence[RunRecord], problem: Problem, max_rounds: int) -> Forecast | None:
    """What the rounds predicted at first, on average over the runs that count; None if nothing.

    Each run's own rounds led to its forecast, so several are averaged as their rounds are.
    """
    found = [
        one for run in counted_runs(runs) if (one := _first_forecast(run, problem, max_rounds))
    ]
    if not found:
        return None
    numbers = [(one.round, one.rounds, *one.interval, *astuple(one.bill)) for one in found]
    columns = zip(*numbers, strict=True)
    round_, rounds, low, high, time_s, energy_j, cost = map(statistics.fmean, columns)
    bill = Bill(time_s=time_s, energy_j=energy_j, cost=cost)
    return Forecast(round=round_, rounds=rounds, interval=(low, high), bill=bill)


def _first_forecast(run: RunRecord, problem: Problem, max_rounds: int) -> Forecast | None:
    """The first that says the run will arrive in the rounds allowed; others leave that open."""
    for decision in decisions_of(run):
        if decision.expected_rounds and decision.interval and decision.interval[1] <= max_rounds:
            break
    else:
        return None
    used = [one.setting for one in run.rounds[: decision.round + 1] if one.setting is not None]
    setting = used[-1] if used else run.setting
    cost = setting.participation.round_cost(problem, setting.local_steps)
    paid = float(problem.objective.of_round(cost.time_s, cost.energy_j, cost.clients))
    a_round = Bill(time_s=cost.time_s, energy_j=cost.energy_j, cost=paid)
    return Forecast(
        round=decision.round,
        rounds=decision.expected_rounds,
        interval=decision.interval,
        bill=a_round.times(decision.expected_rounds),
    )


def runs_within(constraints: Constraints, runs: Sequence[RunRecord]) -> dict[str, int]:
    """For each limit on a total, how many runs reached the target within it."""
    spent = {"deadline_s": "time_s", "energy_budget_j": "energy_j", "max_rounds": "num_rounds"}
    return {
        name: sum(run.status == "target" and getattr(run, total) <= limit for run in runs)
        for name, total in spent.items()
        if (limit := getattr(constraints, name)) is not None
    }
